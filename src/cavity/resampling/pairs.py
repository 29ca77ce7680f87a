"""What pairs of examples add to the averages over training sets.

The theory of single examples puts each one into the average of all others. How the precision of
an example deviates from its average, t, then averages to zero, and what is left out begins where
two examples i and j each deviate twice, in turn:

    ΔG_aa = Σ_{i≠j} G_ai τ_i G_ij³ τ_j G_ja,   τ_i = ⟨t_i²⟩.

It makes the average posterior variance larger: by some ten per cent where training sets are
small, and next to nothing where nearly all examples are drawn. With Gaussian noise it also
gives the squared error: the posterior mean misses y by −G K⁻¹ y, so that the average squared error
is the slope, at ε = 0, of the average −G when K is replaced by K − ε y yᵀ. With other
likelihoods it changes the variance by less than one per cent on most data sets tried: it is
left out.
"""

from typing import NamedTuple

import numpy as np

from cavity.arrays import Array, add_outer, matmul, row_blocks
from cavity.resampling.averages import Averages
from cavity.resampling.laws import Occupancy
from cavity.resampling.orders import Order, Pool
from cavity.resampling.theories import curvature_moments
from cavity.sites import Sites

__all__ = ["with_pairs"]

# Of the central difference that takes the slope in ε, relative to G over the squared error.
_STEP = 1e-3
_BLOCK = 256


class _Medium(NamedTuple):
    """The average G between examples, each one's cavity variance, and the strengths τ."""

    G: Array
    cavity: Array
    tau: Array

    def moved(self, slope: "_Medium", step: float) -> "_Medium":
        """Return the medium at another ε, in the place of this one's matrix."""
        for i, j in row_blocks(len(self.tau), _BLOCK):
            self.G[i:j] += step * slope.G[i:j]
        return _Medium(self.G, self.cavity + step * slope.cavity, self.tau + step * slope.tau)


def with_pairs(pool: Pool, found: Averages, occupancy: Occupancy) -> Averages:
    """Return the averages of a Gaussian likelihood with what pairs of examples add to them."""
    sources = found.sources
    G = pool.prior.condition(Sites(sources.u, sources.gamma)).covariance()
    # Matrices enough without the one that the posterior leaves behind.
    pool.prior.scratch.take()
    moments = curvature_moments(pool, occupancy, found.held_out)
    medium = _Medium(G, found.held_out.G, _strength(moments, found))
    (gain, held_out_gain), (error, held_out_error) = _gains_and_slopes(
        medium, _slope(pool, found, medium, moments)
    )
    trust = _trust(pool, found.pool.G, gain)
    return found._replace(
        pool=_more(found.pool, trust * gain, trust * error),
        held_out=_more(found.held_out, trust * held_out_gain, trust * held_out_error),
    )


def _more(order: Order, variance: Array, error: Array) -> Order:
    """Add to the variance, and to the squared error (R − y)² + V."""
    return Order(order.G + variance, order.R, np.maximum(order.V + error, 0.0))


def _trust(pool: Pool, G: Array, gain: Array) -> Array:
    """Return how much of the gain to believe: all of a small one; none leads above the prior."""
    room = np.maximum(pool.prior.diag - G, np.finfo(float).tiny)
    return 1.0 / (1.0 + np.maximum(gain, 0.0) / room)


def _strength(moments: tuple[Array, Array, Array], found: Averages) -> Array:
    """Return τ = Var(κ) (1 + u G_c)⁴ for precisions κ = −d2 of an example in its cavity."""
    first, second, _ = moments
    return (second - first**2) * _back(found) ** 4


def _back(found: Averages) -> Array:
    """Return 1 + u G_c = G_c/G_aa: from the medium with an example to that without it."""
    return 1.0 + found.sources.u * found.held_out.G


def _slope(
    pool: Pool, found: Averages, medium: _Medium, moments: tuple[Array, Array, Array]
) -> _Medium:
    """Return how the medium changes with ε: −dG/dε is the average product of two errors."""
    first, second, third = moments
    c, (u, _, w, _) = found.held_out, found.sources
    miss = found.pool.R - pool.y
    held_out = (c.R - pool.y) ** 2 + c.V
    back = _back(found)
    errors = add_outer(matmul(medium.G * -w, medium.G), -1.0, miss)
    # dκ/dε = κ² e_c, as −dG_c/dε is the held-out error e_c; du/dε = w.
    spread = 2.0 * (third - first * second) * held_out
    tau = spread * back**4 + 4.0 * (second - first**2) * back**3 * (w * c.G - u * held_out)
    return _Medium(errors, -held_out, tau)


def _gains_and_slopes(medium: _Medium, slope: _Medium) -> tuple[Array, Array]:
    """Return ΔG and by how much pairs change the squared errors, at the pool and held out.

    The average of the two ends of the central difference is ΔG to the same order.
    """
    step = -_STEP * float(np.mean(medium.cavity) / np.mean(slope.cavity))
    medium = medium.moved(slope, step)
    above = _gains(medium)
    below = _gains(medium.moved(slope, -2.0 * step))
    return 0.5 * (above + below), (below - above) / (2.0 * step)


def _gains(medium: _Medium) -> Array:
    """Return ΔG at the pool, and at examples that are held out, as two rows.

    Without example a the medium is G_ij + c G_ia G_ja, c = (G_c/g − 1)/g, and i and j are others:
    the cube of that sum goes term by term.
    """
    G, cavity, tau = medium
    g = np.diagonal(G).copy()
    c = (cavity / g - 1.0) / g
    blocks = [slice(*ends) for ends in row_blocks(len(g), _BLOCK)]
    pool, held_out = np.zeros((2, len(g)))
    for k, times in enumerate((1.0, 3.0, 3.0)):
        M = _without_diagonal(_power(G, 3 - k))
        for a in blocks:
            Z = tau[:, None] * _without_diagonal(_power(G[:, a], k + 1), a.start)
            held_out[a] += times * c[a] ** k * np.einsum("ij,ij->j", Z, matmul(M, Z))
            if k == 0:
                own = 2.0 * g[a] * tau[a] * np.einsum("ij,ij->j", M[:, a], Z)
                pool[a] = held_out[a] + own
    for a in blocks:
        # The last of the four matrices is one everywhere off its diagonal.
        Z = tau[:, None] * _without_diagonal(_power(G[:, a], 4), a.start)
        held_out[a] += c[a] ** 3 * (Z.sum(axis=0) ** 2 - np.einsum("ij,ij->j", Z, Z))
    return np.stack([pool, (cavity / g) ** 2 * held_out])


def _power(A: Array, k: int) -> Array:
    """Return A^k elementwise, by products: powers of NumPy's are slow from the cube on."""
    P = A.copy()
    for _ in range(k - 1):
        P *= A
    return P


def _without_diagonal(A: Array, start: int = 0) -> Array:
    """Set A[start + j, j] to zero, in place."""
    columns = np.arange(A.shape[1])
    A[start + columns, columns] = 0.0
    return A
