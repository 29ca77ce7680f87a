"""Averages over training sets: the fixed point that both theories share.

The pool's order parameters make each example's cavity, a theory turns the cavities into sources,
and the sources make the order parameters: G = (K⁻¹ + diag u)⁻¹, R = G γ, V_i = Σ_j G_ij² w_j.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.curves.base import Order, Pool, Sources
from cavity.curves.theories import Theory
from cavity.fixed_point import Solution, solve
from cavity.priors import DensePosterior, DensePrior
from cavity.sites import Sites, cavity

__all__ = ["Averages", "Path", "prior_cavities", "solve_averages"]

_MEMORY = 4
_BACK = 3
"""Sizes whose cavities say where those of the next one will be."""
_FAR = 1.0
"""How far ahead to believe that, in units of what they span."""


class Averages(NamedTuple):
    """What a theory says about random training sets of one size.

    Attributes
    ----------
    pool : Order
        At each example, whether it was drawn or not.
    held_out : Order
        At each example, over the training sets that it is not in.
    sources : Sources
    converged : bool
    n_iter : int
    residual : float
    """

    pool: Order
    held_out: Order
    sources: Sources
    converged: bool
    n_iter: int
    residual: float

    def at(self, prior: DensePrior, K_star: Array, prior_variance: Array) -> Order:
        """Return the averages at new inputs.

        Parameters
        ----------
        prior : DensePrior
            The pool's.
        K_star : array of shape (m, n)
            Prior covariances of the new latent values with the pool's.
        prior_variance : array of shape (m,)
        """
        posterior = prior.condition(Sites(self.sources.u, self.sources.gamma))
        q = posterior.predict(K_star, prior_variance)
        response = posterior.cross_covariance(K_star)
        return Order(q.variance, q.mean, self.sources.w @ response**2)


def prior_cavities(prior: DensePrior) -> Order:
    """Return the cavities before anything is learned."""
    zero = np.zeros_like(prior.diag)
    return Order(prior.diag, zero, zero)


class Path:
    """Cavities along a curve: where those of the last sizes lead for the next one.

    Parameters
    ----------
    prior : DensePrior
    """

    def __init__(self, prior: DensePrior) -> None:
        self._scale = prior.diag
        self._passed: list[tuple[float, Array]] = []
        self._begin = prior_cavities(prior)

    def pass_by(self, size: float, cavities: Order) -> None:
        """Take note of the cavities at a size."""
        here = float(np.log(size)), _pack(cavities, self._scale)
        self._passed = [*self._passed[1 - _BACK :], here]

    def ahead(self, size: float) -> Order:
        """Return cavities on the polynomial, in the log of the size, through the last ones."""
        if not self._passed:
            return self._begin
        log_m, x = zip(*self._passed, strict=True)
        far = np.log(size) - log_m[-1] > _FAR * np.ptp(log_m)
        return _unpack(x[-1] if far else _lagrange(log_m, np.log(size)) @ np.stack(x), self._scale)


def _lagrange(nodes: Sequence[float], at: float) -> Array:
    """Return the weights of the values at some nodes in the polynomial through them."""
    gaps = np.subtract.outer(nodes, nodes) + np.eye(len(nodes))
    offsets = np.tile(at - np.array(nodes), (len(nodes), 1))
    np.fill_diagonal(offsets, 1.0)
    return np.prod(offsets / gaps, axis=1)


class _Point:
    """Cavities, the sources they lead to, and the cavities that these give back."""

    def __init__(self, scale: Array, prior: DensePrior, c: Order, sources: Sources) -> None:
        self.scale = scale
        self.sources = sources
        posterior = prior.condition(Sites(sources.u, sources.gamma))
        self.pool, self.held_out = _order(posterior, sources.w)
        size = self.held_out.G + self.held_out.V
        self.residual = float(
            max(
                np.max(np.abs(np.log(self.held_out.G / c.G))),
                np.max(np.abs(self.held_out.R - c.R) / np.sqrt(size)),
                np.max(np.abs(self.held_out.V - c.V) / size),
            )
        )
        # From the prior, the way to the solution leads over larger residuals: all is let through
        # but what is not a number.
        self.merit = 0.0 if np.isfinite(self.residual) else -np.inf

    def target(self) -> Array:
        return _pack(self.held_out, self.scale)


def _order(posterior: DensePosterior, w: Array) -> tuple[Order, Order]:
    """Return the order parameters with each example's own source, and without it."""
    local = posterior.local
    c = cavity(local)
    others = posterior.others_square_product(w)
    (R, G), rest = local.q, local.rest
    return Order(G, R, others + G**2 * w), Order(c.variance, c.mean, others / rest**2)


def _pack(c: Order, scale: Array) -> Array:
    """Return one vector without dimension."""
    return np.concatenate([np.log(c.G), c.R / np.sqrt(scale), c.V / scale])


def _unpack(x: Array, scale: Array) -> Order:
    log_G, R, V = x.reshape(3, -1)
    # Extrapolation may overshoot; neither variance can be below zero, nor G above the prior's.
    return Order(np.minimum(np.exp(log_G), scale), R * np.sqrt(scale), np.maximum(V, 0.0) * scale)


def solve_averages(
    pool: Pool, theory: Theory, start: Order, *, tol: float, max_iter: int
) -> Averages:
    """Find the order parameters of random training sets.

    Parameters
    ----------
    pool : Pool
    theory : Theory
    start : Order
        Cavities to begin with.
    tol : float
        Residual at which to stop: change of the log variances, of the means in standard
        deviations, of the spread relative to the variance.
    max_iter : int
    """
    scale = pool.prior.diag

    def evaluate(x: Array) -> _Point:
        c = _unpack(x, scale)
        return _Point(scale, pool.prior, c, theory(c))

    found: Solution[_Point] = solve(
        evaluate, _pack(start, scale), tol=tol, max_iter=max_iter, memory=_MEMORY
    )
    last = found.state
    return Averages(
        last.pool, last.held_out, last.sources, found.converged, found.n_iter, found.residual
    )
