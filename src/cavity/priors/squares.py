"""Squared posterior covariances between examples."""

from cavity.arrays import Array, add_to_diagonal, namespace, put, symmetric_product
from cavity.priors.dense import DensePosterior


class OthersSquares:
    """Σ_ij² off the diagonal, for products.

    Σ_ij = −[B⁻¹]_ij/(s_i s_j), except where a site is next to nothing.

    Parameters
    ----------
    posterior : DensePosterior
    """

    def __init__(self, posterior: DensePosterior) -> None:
        B = posterior.B_inverse()
        xp = namespace(B)
        self._posterior = posterior
        self._u = xp.where(posterior.cancels, 1.0, posterior.sites.tau)
        B *= B
        self._B = add_to_diagonal(B, -xp.linalg.diagonal(B))

    def product(self, w: Array) -> Array:
        """Return Σ_{j≠i} Σ_ij² w_j for each i."""
        xp = namespace(w)
        cancels = self._posterior.cancels
        total = symmetric_product(self._B, xp.where(cancels, 0.0, w / self._u)) / self._u
        weak = xp.nonzero(cancels)[0]
        return self._with_weak(total, weak, w) if weak.shape[0] else total

    def _with_weak(self, total: Array, weak: Array, w: Array) -> Array:
        """Add what the weakest sites give to the others, and put in what they get."""
        xp = namespace(w)
        q = self._posterior
        squares = q.cross_covariance(xp.take(q.prior.K, weak, axis=0)) ** 2
        own = xp.take(q.local().q.variance, weak) ** 2 * xp.take(w, weak)
        total = total + squares @ xp.take(w, weak)
        return put(total, weak, squares.T @ w - own)
