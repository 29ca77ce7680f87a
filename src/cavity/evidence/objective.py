"""The negative log evidence as an optimiser sees it, and the optimiser."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import optimize

from cavity.arrays import Array, NotPositiveDefiniteError
from cavity.evidence.evidence import Evaluation, Evidence
from cavity.evidence.length_scales import Coordinates
from cavity.inference import WarmStart
from cavity.priors import KernelRule

if TYPE_CHECKING:
    from cavity.evidence.tuning import Progress

_HOPELESS = 1e50
"""Score of a failed evaluation if there is no other to compare it with."""
_L_BFGS_B: Any = {
    "method": "L-BFGS-B",
    "jac": True,
    "options": {"maxcor": 50, "ftol": 5e-9, "gtol": 2e-4},
}
"""It remembers more steps than usual: an evaluation costs far more than a step, and many
relevances make long curved valleys. It stops when the possible gain is below the tolerance of the
inference, about 1e-7 of the evidence; going on took up to half of the time on small tables.
"""
_ROUNDS = 4
"""Maximum runs of L-BFGS-B, each from where the last one failed or stopped too early."""


@contextmanager
def named_failure(rule: KernelRule) -> Iterator[None]:
    """Turn a failed factorisation into an error that names the kernel and the remedy."""
    try:
        yield
    except NotPositiveDefiniteError as error:
        raise NotPositiveDefiniteError(
            f"The kernel, {getattr(rule, 'kernel', rule)}, is not returning a positive definite "
            "matrix. Try gradually increasing the 'alpha' parameter of your "
            "GaussianProcessRegressor estimator. In a classifier, add a WhiteKernel or use "
            f'likelihood="probit". Check the scale of the inputs, too ({error}).'
        ) from error


class _Best(NamedTuple):
    """The best evaluation of a search so far."""

    theta: Array
    value: float
    usable: bool
    starts: Sequence[WarmStart] | None = None


class Objective:
    """The negative log evidence along one optimiser's path, each fit starting from the last.

    A failed evaluation is reported as a point far worse than any seen, so that a line search backs
    off instead of ending. It fails if the kernel matrix is not positive definite, if the evidence
    is not a number, or if the inference stops far from a solution where others have been solved.
    """

    def __init__(self, evidence: Evidence, progress: Progress | None) -> None:
        self.evidence, self.progress = evidence, progress
        self.starts: Sequence[WarmStart] | None = None
        self.worst = -np.inf
        self.best = _Best(None, np.inf, False)
        self.n_evaluations = self.n_failures = 0
        self.failure: NotPositiveDefiniteError | None = None
        self._met_usable = False

    @property
    def succeeded(self) -> bool:
        """Whether any evaluation did."""
        return self.worst > -np.inf

    def __call__(self, theta: Array, eval_gradient: bool = True, penalty: float = 0.0) -> Any:
        """Return the negative log evidence plus a penalty, with its gradient if wanted.

        The evidence's hyperprior counts with it; the penalty has no part in the gradient.
        """
        if self.progress:
            self.progress.begin_evaluation()
        self.n_evaluations += 1
        theta, value, slope = np.array(theta, dtype=float), np.inf, np.zeros(len(theta))
        try:
            # What overflows is judged below, by the value that comes out.
            with np.errstate(all="ignore"):
                found = self.evidence.at(theta, self.starts)
                if self.starts is not None and not found.usable:
                    # A start that is right for other hyperparameters can lead to a wrong solution.
                    found = self.evidence.at(theta)
                slope = -found.gradient if eval_gradient else slope
                value, slope = self._with_prior(theta, penalty - found.value, slope)
            accepted = self._accepts(found, value, slope)
        except NotPositiveDefiniteError as error:
            self.failure, accepted = error, False
        if self.progress:
            self.progress.end_evaluation(penalty - value if accepted else -np.inf)
        if not accepted:
            self.n_failures += 1
            value, slope = self._far_worse(), np.zeros(len(theta))
        return (value, slope) if eval_gradient else value

    def _with_prior(self, theta: Array, value: float, slope: Array) -> tuple[float, Array]:
        """Add the hyperprior to a negative log evidence and its gradient."""
        prior = self.evidence.hyperprior
        if prior is None:
            return value, slope
        return value - prior.log_density(theta), slope - prior.gradient(theta)

    def check(self) -> None:
        """Raise an error that names the kernel if no evaluation has succeeded."""
        if self.failure is not None and not self.succeeded:
            with named_failure(self.evidence.rule):
                raise self.failure

    def _accepts(self, found: Evaluation, value: float, slope: Array) -> bool:
        """Whether an evaluation may guide the search; if so, go on from it."""
        if not (np.isfinite(value) and np.isfinite(slope).all()):
            self.failure = NotPositiveDefiniteError("its evidence is not a number")
            return False
        if self._met_usable and not found.usable:
            return False
        self._met_usable, self.starts = found.usable, found.starts
        self.worst = max(self.worst, value)
        if (found.usable, -value) > (self.best.usable, -self.best.value):
            self.best = _Best(found.theta, value, found.usable, found.starts)
        return True

    def _far_worse(self) -> float:
        return 10.0 * (1.0 + abs(self.worst)) if self.succeeded else _HOPELESS


def l_bfgs_b(
    objective: Objective, theta: Array, bounds: Array, around: Array | None = None
) -> tuple[Array, float]:
    """Minimise the objective by L-BFGS-B in `Coordinates`; return the best point found.

    The coordinates are those of the kernel as it was given, moved inside the bounds: random starts
    say nothing about the right magnitude. If the search ends on a slope, it goes on in those
    ``around`` where it ended.
    """
    evidence = objective.evidence
    given = np.clip(evidence.theta, *bounds.T) if around is None else around
    coordinates = Coordinates(evidence.names, given)
    limits, revived = coordinates.limits(bounds), False

    def at(u: Array) -> tuple[float, Array]:
        here = np.clip(coordinates.theta(u), bounds[:, 0], bounds[:, 1])
        value, slope = objective(here)
        return value, coordinates.slope(here, slope)

    u = np.clip(coordinates.of(theta), *limits)
    for _ in range(_ROUNDS):
        begin, failures = u, objective.n_failures
        found = optimize.minimize(at, u, bounds=limits.T, **_L_BFGS_B)
        if found.success or objective.n_failures == failures:
            begin = u = np.clip(found.x, *limits)
        elif objective.succeeded:
            # A line search gives up after several failed evaluations.
            u = np.clip(coordinates.of(objective.best.theta), *limits)
        if np.array_equal(u, begin) and not revived:
            revived, u = True, np.clip(_revive(at, coordinates, u), *limits)
        if np.array_equal(u, begin):
            break
    if not objective.succeeded:
        return theta, found.fun
    steep = around is None and coordinates.is_steep(found.x, found.jac, limits)
    return _best_or_further(objective, bounds, steep)


def _best_or_further(objective: Objective, bounds: Array, steep: bool) -> tuple[Array, float]:
    # A line search that gives up before a failed point has that point as its result.
    best = objective.best
    if steep:
        return l_bfgs_b(objective, best.theta, bounds, around=best.theta)
    return best.theta, best.value


def _revive(
    at: Callable[[Array], tuple[float, Array]], coordinates: Coordinates, u: Array
) -> Array:
    """Return where to start again: with shorter scales where the evidence favours them.

    One evaluation; on a set with a second optimum it gained 0.8 nats.
    """
    shorter = coordinates.revived(u)
    if np.array_equal(shorter, u):
        return u
    return coordinates.worthwhile(u, shorter, at(shorter)[1])
