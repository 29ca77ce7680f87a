"""The pool under the average sources of its examples, and what other sources would make of it.

G = (K⁻¹ + diag u)⁻¹, R = G γ, V_i = Σ_j G_ij² w_j. Once G is there, the cavities that nearby
sources lead to cost next to nothing: to first order, with G_ij/(1 − u_i G_ii) the response of
example i's cavity to example j,

    δG_i = −Σ_j G_ij² δu_j,   δR_i = Σ_j G_ij (δγ_j − R_j δu_j)      (both without example i).
"""

import numpy as np

from cavity.priors import DensePrior
from cavity.resampling.orders import Order, Sources
from cavity.sites import Local, Sites, cavity

__all__ = ["Medium"]

# The first order is not believed beyond this change of a log variance.
_FARTHEST = 2.0


class Medium:
    """Order parameters under given sources.

    Where inference does not respond as its own variance says, predictions and their spread
    follow from the response χ = (K⁻¹ + diag u_χ)⁻¹ instead of G.

    Parameters
    ----------
    prior : DensePrior
    sources : Sources

    Attributes
    ----------
    pool : Order
        With each example's own source.
    held_out : Order
        Without it.
    """

    def __init__(self, prior: DensePrior, sources: Sources) -> None:
        self._sources = sources
        spread = None if sources.u_chi is None else _local(prior, sources)
        self._posterior = prior.condition(Sites(sources.response, sources.gamma))
        self._local = self._posterior.local
        self._squares = self._posterior.others_squares()
        self.pool, self.held_out = self._orders(spread)

    def _orders(self, spread: Local | None) -> tuple[Order, Order]:
        (R, chi), c = self._local.q, cavity(self._local)
        w = self._sources.w
        others = self._squares.product(w)
        V, V_c = others + chi**2 * w, others / self._local.rest**2
        if spread is None:
            return Order(chi, R, V), Order(c.variance, c.mean, V_c)
        return (
            Order(spread.q.variance, R, V, chi),
            Order(cavity(spread).variance, c.mean, V_c, c.variance),
        )

    def ahead(self, sources: Sources) -> Order:
        """Return the cavities that other sources would lead to, to first order."""
        (R, chi), _, alpha, rest = self._local
        c = self.held_out
        du = sources.response - self._sources.response
        felt = self._squares.product(du) / rest**2
        grow = np.exp(np.clip(-felt / c.response, -_FARTHEST, _FARTHEST))
        push = sources.gamma - self._sources.gamma - R * du
        moved = (self._posterior.respond(push) - chi * push) / rest + alpha * felt
        # The responses between two examples change about as much as their variances do.
        V = grow**2 * self._squares.product(sources.w) / rest**2
        return Order(c.G * grow, c.R + moved, V, None if c.chi is None else c.chi * grow)


def _local(prior: DensePrior, sources: Sources) -> Local:
    return prior.condition(Sites(sources.u, sources.gamma)).local
