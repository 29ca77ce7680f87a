"""Variances that must agree with the posterior they help to make.

EP's cavities and the variational marginals are self-consistent: given the variances the means are
found by Newton's method, and the posterior so found gives the variances back. Iterated on their
logarithms with the means solved in between, this converges where updating means and variances
side by side oscillates (separable data under a wide prior).
"""

from collections.abc import Callable

from cavity.arrays import Array, namespace
from cavity.fixed_point import solve
from cavity.inference.base import Problem, Report, Start
from cavity.inference.newton import Response, Steps, solve_means
from cavity.priors import DensePosterior
from cavity.sites import Local

__all__ = ["solve_consistent"]

_INNER_ITERATIONS = 100
_MEMORY = 5
_WARM = 1e-3
# Changes below this that do not fall any more are rounding.
_NOISE = 1e-6
# The means need not be better known than the variances that they depend on.
_INNER_SHARE = 1e-3


class _Point:
    """Log variances, the posterior that belongs to them, and the variances this one gives back.

    The posterior is closer to the fixed point than the variances it was made with, by the factor
    at which the iteration contracts; ``residual`` says how far off the posterior is.
    """

    def __init__(
        self, x: Array, posterior: DensePosterior, updated: Array, last: "_Point | None"
    ) -> None:
        self.x, self.posterior = x, posterior
        self._target = namespace(updated).log(updated)
        self.change = _distance(self._target, x)
        self.residual = self.change * (1.0 if last is None else self._contraction(last))
        self.merit = -self.change
        if last is not None and last.change < _NOISE and self.change > 0.5 * last.change:
            # Only rounding is left, which no further step will take away.
            self.residual = 0.0

    def _contraction(self, last: "_Point") -> float:
        """How much closer to each other two points have come, doubled to be safe."""
        moved = _distance(self.x, last.x)
        return min(1.0, 2.0 * _distance(self._target, last.target()) / moved) if moved else 1.0

    def target(self) -> Array:
        return self._target


def _distance(a: Array, b: Array) -> float:
    xp = namespace(a)
    return float(xp.max(xp.abs(a - b)))


class _Climb:
    """Evaluates one set of variances after the other, each starting from the last means."""

    def __init__(
        self,
        problem: Problem,
        respond: Callable[[Problem, Array], Response],
        read_off: Callable[[Local, Array], Array],
        start: Start | None,
        tol: float,
    ) -> None:
        self.problem, self.respond, self.read_off = problem, respond, read_off
        self.tol = tol
        self.steps = Steps(problem.prior)
        self.last: _Point | None = None
        if start is None:
            self.alpha = namespace(problem.y).zeros_like(problem.prior.diag)
            # Far from the variances sought it does not pay to solve for the means.
            self.inner_tol = float("inf")
        else:
            self.alpha, self.steps.nearby = start.alpha, start.nearby
            self.inner_tol = _WARM

    def __call__(self, log_variance: Array) -> _Point:
        means = solve_means(
            self.problem,
            self.respond(self.problem, namespace(log_variance).exp(log_variance)),
            self.alpha,
            self.steps,
            tol=self.inner_tol,
            max_iter=_INNER_ITERATIONS,
        )
        posterior = self.problem.prior.condition(means.state.sites)
        # The posterior's own α is one more Newton step, already paid for.
        self.alpha = posterior.alpha
        self.steps.lean_on(posterior)
        updated = self.read_off(posterior.local, self.problem.copies)
        point = _Point(log_variance, posterior, updated, self.last)
        if self.inner_tol < float("inf"):
            # What the means still lack counts, too.
            point.residual = max(point.residual, means.residual)
        else:
            # Without its means a point is no measure for the next one.
            point.merit = -float("inf")
        self.last = point
        self.inner_tol = max(_INNER_SHARE * min(self.tol, 1.0), _INNER_SHARE * point.residual)
        return point


def solve_consistent(
    problem: Problem,
    respond: Callable[[Problem, Array], Response],
    read_off: Callable[[Local, Array], Array],
    start: Start | None,
    *,
    tol: float,
    max_iter: int,
) -> tuple[DensePosterior, Report, Start]:
    """Find variances that the posterior gives back.

    Parameters
    ----------
    problem : Problem
    respond : callable
        Makes the examples' response for given variances.
    read_off : callable
        Reads the variances off a posterior's local view.
    start : Start or None
    tol, max_iter
        Of the outer loop.
    """
    xp = namespace(problem.y)
    begin = problem.prior.diag if start is None else start.variance
    climb = _Climb(problem, respond, read_off, start, tol)
    solution = solve(climb, xp.log(begin), tol=tol, max_iter=max_iter, memory=_MEMORY)
    report = Report(solution.converged, solution.n_iter, solution.residual, str(solution))
    posterior = solution.state.posterior
    variance = xp.exp(solution.state.target())
    return posterior, report, Start(posterior.alpha, variance, posterior.factor)
