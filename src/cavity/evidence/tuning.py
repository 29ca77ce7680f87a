"""The search for the hyperparameters of most evidence: climbs from several starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from joblib import Parallel, delayed
from scipy import optimize

from cavity.arrays import Array, NotPositiveDefiniteError
from cavity.evidence.length_scales import Coordinates
from cavity.inference import Fit, Start

if TYPE_CHECKING:
    from cavity.evidence.evidence import Evidence

__all__ = ["Optimizer", "Optimum", "Watcher", "best_of", "climb", "maximise", "starting_points"]

_TUNING_TOL = {True: 1e-4, False: 1e-6}
"""Residual of an inference that is good enough for a search, by whether its evidence is stationary
in what is iterated: then its error is the square of the residual."""
_USABLE = 1e-2
"""Residual of an inference that stopped early, up to which its evidence still guides a search."""
_HOPELESS = 1e50
"""Score of a failed evaluation where there is no other to compare with."""
_MEMORY = 50
"""Steps that L-BFGS-B remembers. More than usual: an evaluation costs far more than a step, and
many relevances make long curved valleys."""
_ROUNDS = 4
"""The most times that L-BFGS-B is sent off, from where it has been led astray or stopped."""

Optimizer = Callable[..., tuple[Array, float]]
"""scikit-learn's signature: optimizer(objective, initial_theta, bounds) → (theta, minimum)."""


class Watcher(Protocol):
    """Whoever wants to know how a climb gets on."""

    def begin(self) -> None:
        """Hear that an evaluation of the evidence begins."""

    def end(self, value: float) -> None:
        """Hear the log evidence that it ended with: −∞ where it failed."""


@dataclass(frozen=True)
class Optimum:
    """Where a climb ended.

    Attributes
    ----------
    theta : array of shape (p,)
        The hyperparameters found.
    value : float
        The log evidence there; −∞ if no evaluation succeeded.
    trusted : bool
        Whether the inference of the best evaluation had come close to a solution.
    n_evaluations : int
    seconds : float
    failure : NotPositiveDefiniteError or None
        Why no evaluation succeeded.
    """

    theta: Array
    value: float
    trusted: bool
    n_evaluations: int
    seconds: float
    failure: NotPositiveDefiniteError | None = None


class _Best(NamedTuple):
    """The lowest point of a descent so far."""

    theta: Array
    value: float
    usable: bool


class _Descent:
    """The negative log evidence along one optimiser's path, each fit starting from the last.

    A failed evaluation is reported as a point far worse than any seen, so that a line search backs
    off instead of ending. It fails if the kernel matrix is not positive definite, if the evidence
    is not a number, or if the inference stops far from a solution where others have been solved.
    """

    def __init__(self, evidence: Evidence, watcher: Watcher | None) -> None:
        self.evidence = evidence
        self.watcher = watcher
        self.starts: Sequence[Start] | None = None
        self.worst = -np.inf
        self.best = _Best(None, np.inf, False)
        self.n_evaluations = self.n_failures = 0
        self.failure: NotPositiveDefiniteError | None = None
        self._met_usable = False

    @property
    def succeeded(self) -> bool:
        """Whether any evaluation did."""
        return self.worst > -np.inf

    def __call__(self, theta: Array, eval_gradient: bool = True) -> Any:
        if self.watcher:
            self.watcher.begin()
        self.n_evaluations += 1
        found = self._evaluate(np.asarray(theta, dtype=float), eval_gradient)
        if self.watcher:
            self.watcher.end(-np.inf if found is None else -found[0])
        self.n_failures += found is None
        value, slope = found or self._far_worse(theta)
        return (value, slope) if eval_gradient else value

    def _evaluate(self, theta: Array, eval_gradient: bool) -> tuple[float, Array] | None:
        try:
            fits = self._fits(theta)
            value = -sum(fit.log_evidence for fit in fits)
            slope = -self.evidence.gradient(theta, fits) if eval_gradient else np.zeros(0)
        except NotPositiveDefiniteError as error:
            self.failure = error
            return None
        if not (np.isfinite(value) and np.isfinite(slope).all()):
            self.failure = NotPositiveDefiniteError("its evidence is not a number")
            return None
        return (value, slope) if self._accepts(theta, value, fits) else None

    def _fits(self, theta: Array) -> list[Fit]:
        fits = self.evidence.fits(theta, self.starts)
        if self.starts is None or _is_usable(fits):
            return fits
        # A start that is right for other hyperparameters can lead astray.
        return self.evidence.fits(theta)

    def _accepts(self, theta: Array, value: float, fits: Sequence[Fit]) -> bool:
        """Whether the evidence of these fits may guide the search; if so, go on from them."""
        usable = _is_usable(fits)
        if self._met_usable and not usable:
            return False
        self._met_usable = usable
        self.starts = [fit.start for fit in fits]
        self.worst = max(self.worst, value)
        if value < self.best.value:
            self.best = _Best(theta.copy(), value, usable)
        return True

    def _far_worse(self, theta: Array) -> tuple[float, Array]:
        value = 10.0 * (1.0 + abs(self.worst)) if self.succeeded else _HOPELESS
        return value, np.zeros_like(theta)


def _is_usable(fits: Sequence[Fit]) -> bool:
    return all(fit.report.converged or fit.report.residual <= _USABLE for fit in fits)


def maximise(
    evidence: Evidence,
    theta: Array,
    bounds: Array,
    *,
    optimizer: Optimizer | None = None,
    n_restarts: int = 0,
    rng: np.random.RandomState | np.random.Generator | None = None,
    n_jobs: int | None = None,
) -> Optimum:
    """Climb the evidence from the given hyperparameters, and from random ones.

    Parameters
    ----------
    evidence : Evidence
    theta : array of shape (p,)
        First start.
    bounds : array of shape (p, 2)
        Log bounds; restarts are drawn uniformly inside them.
    optimizer : callable, optional
        With scikit-learn's signature, of the objective in theta. If not given, L-BFGS-B in
        `Coordinates`, in which length scales that grow out of all bounds come to an end soon.
    n_restarts : int
    rng : numpy random generator, needed for restarts
    n_jobs : int or None
        How many climbs go on at a time.
    """
    begin = starting_points(theta, bounds, n_restarts, rng)
    run = Parallel(n_jobs=n_jobs)
    return best_of(run(delayed(climb)(evidence, start, bounds, optimizer) for start in begin))


def starting_points(
    theta: Array,
    bounds: Array,
    n_restarts: int,
    rng: np.random.RandomState | np.random.Generator | None,
) -> list[Array]:
    """Return the first start, moved inside the bounds, and random ones."""
    first = np.clip(theta, bounds[:, 0], bounds[:, 1])
    if not n_restarts:
        return [first]
    if rng is None or not np.isfinite(bounds).all():
        raise ValueError(
            "Restarts of the optimizer are drawn inside the kernel's bounds: "
            "n_restarts_optimizer > 0 requires that all bounds are finite."
        )
    return [first, *(rng.uniform(bounds[:, 0], bounds[:, 1]) for _ in range(n_restarts))]


def climb(
    evidence: Evidence,
    theta: Array,
    bounds: Array,
    optimizer: Optimizer | None = None,
    watcher: Watcher | None = None,
) -> Optimum:
    """Run one optimiser from one start."""
    begin = time.perf_counter()
    descent = _Descent(_loosened(evidence), watcher)
    best, value = (optimizer or _l_bfgs_b)(descent, theta, bounds=bounds)
    cost = descent.n_evaluations, time.perf_counter() - begin
    if descent.failure is not None and not descent.succeeded:
        return Optimum(theta, -np.inf, False, *cost, descent.failure)
    return Optimum(np.asarray(best, dtype=float), -float(value), descent.best.usable, *cost)


def best_of(optima: Sequence[Optimum]) -> Optimum:
    """Return the climb that came highest, the first of equals; raise if all have failed.

    A high evidence that no solution stands behind counts only where there is no other.
    """
    best = max(optima, key=lambda optimum: (optimum.trusted, optimum.value))
    if best.failure is not None:
        raise best.failure
    return best


def _loosened(evidence: Evidence) -> Evidence:
    """Return the evidence to a precision that an optimiser can use."""
    method = evidence.method
    tol = max(method.tol, _TUNING_TOL[method.is_stationary])
    return replace(evidence, method=replace(method, tol=tol))


def _l_bfgs_b(descent: _Descent, theta: Array, bounds: Array) -> tuple[Array, float]:
    rule = descent.evidence.rule
    # Those of the kernel as it was given: random starts say nothing about the right magnitude.
    coordinates = Coordinates(rule.names, rule.theta)
    limits = coordinates.limits(bounds)

    def at(u: Array) -> tuple[float, Array]:
        here = np.clip(coordinates.theta(u), bounds[:, 0], bounds[:, 1])
        value, slope = descent(here)
        return value, coordinates.slope(here, slope)

    u = np.clip(coordinates.of(theta), *limits)
    looked = False
    for _ in range(_ROUNDS):
        begin, failures = u, descent.n_failures
        found = optimize.minimize(
            at, u, method="L-BFGS-B", jac=True, bounds=limits.T, options={"maxcor": _MEMORY}
        )
        if found.success or descent.n_failures == failures:
            begin, u = found.x, coordinates.awake(found.x, found.jac)
        elif descent.succeeded:
            # A line search that meets failures gives up after some of them.
            u = coordinates.of(descent.best.theta)
        u = np.clip(u, *limits)
        if np.array_equal(u, begin) and not looked:
            looked, u = True, np.clip(_second_look(at, coordinates, u), *limits)
        if np.array_equal(u, begin):
            break
    # A line search that gives up before a failed point has that point as its result.
    return (descent.best.theta, descent.best.value) if descent.succeeded else (theta, found.fun)


def _second_look(
    at: Callable[[Array], tuple[float, Array]], coordinates: Coordinates, u: Array
) -> Array:
    """Return where to climb from again: with the scales that should not have gone to the end."""
    roused = coordinates.roused(u)
    if np.array_equal(roused, u):
        return u
    return coordinates.climbing(u, roused, at(roused)[1])
