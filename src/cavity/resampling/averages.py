"""Averages over training sets: the fixed point that both theories share.

The pool's order parameters make each example's cavity, a theory turns the cavities into sources,
and the sources make the order parameters.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.priors import DensePrior
from cavity.resampling.averaged import Medium
from cavity.resampling.orders import Order, Pool, Sources
from cavity.resampling.theories import Theory
from cavity.sites import Sites
from cavity.solvers.fixed_point import Solution, solve

__all__ = ["Averages", "Path", "prior_cavities", "solve_averages"]

_PLAIN, _MEMORY = 15, 4
"""Rounds without a memory, which hinders far from the solution; from then on with one."""
_LOOKS, _ENOUGH = 3, 0.05
"""How often to look ahead after a factorisation, or until so little is left of the residual."""
_FAR_OFF = 1.0
"""Change from which on the first order foresees nothing."""
_FASTEST = 0.05
"""The contraction of an iteration is not believed beyond this."""
_BACK = 4
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
        u, gamma, w, u_chi = self.sources
        posterior = prior.condition(Sites(self.sources.response, gamma))
        q = posterior.predict(K_star, prior_variance)
        V = w @ posterior.cross_covariance(K_star) ** 2
        if u_chi is None:
            return Order(q.variance, q.mean, V)
        spread = prior.condition(Sites(u, gamma)).predict(K_star, prior_variance)
        return Order(spread.variance, q.mean, V, q.variance)


def prior_cavities(prior: DensePrior) -> Order:
    """Return the cavities before anything is learned."""
    zero = np.zeros_like(prior.diag)
    return Order(prior.diag, zero, zero)


class Path:
    """Cavities along a curve: where those of the last sizes lead for the next one.

    It goes down from all examples where a fit to them is known, and up from none elsewhere.

    Parameters
    ----------
    pool : Pool
    """

    def __init__(self, pool: Pool) -> None:
        self._scale = pool.prior.diag
        self._passed: list[tuple[float, Array]] = []
        self._begin, self._down = prior_cavities(pool.prior), pool.whole is not None
        if pool.whole is not None:
            self.pass_by(pool.prior.size, pool.whole)

    def order(self, sizes: Array) -> Array:
        """Return the order in which to visit the sizes."""
        return np.argsort(-sizes if self._down else sizes, kind="stable")

    def pass_by(self, size: float, cavities: Order) -> None:
        """Take note of the cavities at a size."""
        here = float(np.log(size)), _pack(cavities, self._scale)
        others = [passed for passed in self._passed if passed[0] != here[0]]
        self._passed = [*others[1 - _BACK :], here]

    def ahead(self, size: float) -> Order:
        """Return cavities on the polynomial, in the log of the size, through the last ones."""
        if not self._passed:
            return self._begin
        log_m, x = zip(*self._passed, strict=True)
        far = abs(np.log(size) - log_m[-1]) > _FAR * np.ptp(log_m)
        return _unpack(x[-1] if far else _lagrange(log_m, np.log(size)) @ np.stack(x), self._scale)


def _lagrange(nodes: Sequence[float], at: float) -> Array:
    """Return the weights of the values at some nodes in the polynomial through them."""
    gaps = np.subtract.outer(nodes, nodes) + np.eye(len(nodes))
    offsets = np.tile(at - np.array(nodes), (len(nodes), 1))
    np.fill_diagonal(offsets, 1.0)
    return np.prod(offsets / gaps, axis=1)


def _distance(a: Order, b: Order) -> float:
    """Return the largest change.

    Of a log variance, of a mean in standard deviations, of a spread relative to the variance.
    """
    size = a.G + a.V
    changes = [
        np.abs(np.log(a.G / b.G)),
        np.abs(np.log(a.response / b.response)),
        np.abs(a.R - b.R) / np.sqrt(size),
        np.abs(a.V - b.V) / size,
    ]
    return float(np.max(changes))


class _Ahead:
    """Cavities as the last medium foresees them, one look after the other."""

    # All is let through: what is foreseen wrongly is put right by the next medium.
    merit = 0.0

    def __init__(self, pool: Pool, medium: Medium, theory: Theory, x: Array) -> None:
        self._scale = pool.prior.diag
        c = _unpack(x, self._scale)
        self._image = medium.ahead(theory(c))
        self.residual = _distance(self._image, c)

    def target(self) -> Array:
        return _pack(self._image, self._scale)


class _Point:
    """Cavities, the sources they lead to, and the cavities that these give back.

    The latter are closer to the solution, by the factor at which the iteration contracts; the
    residual is theirs.
    """

    def __init__(self, pool: Pool, theory: Theory, x: Array, last: "_Point | None") -> None:
        self._examples, self._theory = pool, theory
        self.cavities = _unpack(x, pool.prior.diag)
        self.sources = theory(self.cavities)
        self._medium: Medium | None = Medium(pool.prior, self.sources)
        self.pool, self.held_out = self._medium.pool, self._medium.held_out
        self._change = _distance(self.held_out, self.cavities)
        self.residual = self._change * (1.0 if last is None else self._contraction(last))
        # From the prior, the way to the solution leads over larger residuals: all is let through
        # but what is not a number.
        self.merit = 0.0 if np.isfinite(self.residual) else -np.inf

    def _contraction(self, last: "_Point") -> float:
        """How much closer to each other two points have come, doubled to be safe."""
        moved = _distance(self.cavities, last.cavities)
        if moved == 0.0:
            return 1.0
        closer = 2.0 * _distance(self.held_out, last.held_out) / moved
        return min(1.0, max(_FASTEST, closer))

    def target(self) -> Array:
        """Where the medium's first order leads, the theory being followed all the way."""
        # Its matrices are not needed any more, and the next medium will want their place.
        medium, self._medium = self._medium, None
        x = _pack(self.held_out, self._examples.prior.diag)
        if medium is None or self._change > _FAR_OFF:
            return x
        found = solve(
            lambda x: _Ahead(self._examples, medium, self._theory, x),
            x,
            tol=_ENOUGH * self._change,
            max_iter=_LOOKS,
            memory=_LOOKS,
        )
        return found.state.target()


def _pack(c: Order, scale: Array) -> Array:
    """Return one vector without dimension."""
    return np.concatenate([np.log(c.G), np.log(c.response), c.R / np.sqrt(scale), c.V / scale])


def _unpack(x: Array, scale: Array) -> Order:
    log_G, log_chi, R, V = x.reshape(4, -1)
    # Extrapolation may overshoot; neither variance can be below zero, nor G above the prior's.
    G, chi = (np.minimum(np.exp(log), scale) for log in (log_G, log_chi))
    return Order(G, R * np.sqrt(scale), np.maximum(V, 0.0) * scale, chi)


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
    last: _Point | None = None

    def evaluate(x: Array) -> _Point:
        nonlocal last
        point = _Point(pool, theory, x, last)
        if np.isfinite(point.residual):
            # What is not a number leaves no trace in the contraction.
            last = point
        return point

    x = _pack(start, pool.prior.diag)
    found: Solution[_Point] = solve(evaluate, x, tol=tol, max_iter=min(max_iter, _PLAIN))
    n_iter = found.n_iter
    if not found.converged and n_iter < max_iter:
        found = solve(evaluate, found.x, tol=tol, max_iter=max_iter - n_iter, memory=_MEMORY)
        n_iter += found.n_iter
    end = found.state
    return Averages(
        end.pool,
        end.held_out,
        end.sources,
        found.converged,
        n_iter,
        found.residual,
    )
