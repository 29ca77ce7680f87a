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
from cavity.inference.newton import Response, solve_means
from cavity.priors import DensePosterior
from cavity.sites import Local

__all__ = ["solve_consistent"]

_INNER_ITERATIONS = 100
# The means need not be better known than the variances that they depend on.
_INNER_SHARE = 0.03


class _Point:
    """Log variances, the means that belong to them, and the variances these lead to."""

    def __init__(self, log_variance: Array, posterior: DensePosterior, updated: Array) -> None:
        xp = namespace(updated)
        self.posterior = posterior
        self._target = xp.log(updated)
        self.residual = float(xp.max(xp.abs(self._target - log_variance)))
        self.merit = -self.residual

    def target(self) -> Array:
        return self._target


class _Climb:
    """Evaluates one set of variances after the other, each starting from the last means."""

    def __init__(
        self,
        problem: Problem,
        respond: Callable[[Problem, Array], Response],
        read_off: Callable[[Local, Array], Array],
        alpha: Array,
        tol: float,
    ) -> None:
        self.problem, self.respond, self.read_off = problem, respond, read_off
        self.alpha, self.tol = alpha, tol
        self.inner_tol = 0.1

    def __call__(self, log_variance: Array) -> _Point:
        xp = namespace(log_variance)
        respond = self.respond(self.problem, xp.exp(log_variance))
        means = solve_means(
            self.problem, respond, self.alpha, tol=self.inner_tol, max_iter=_INNER_ITERATIONS
        )
        self.alpha = means.x
        posterior = self.problem.prior.condition(means.state.sites)
        updated = self.read_off(posterior.local, self.problem.copies)
        point = _Point(log_variance, posterior, updated)
        # What the means still lack counts as part of the residual.
        point.residual = max(point.residual, means.residual)
        self.inner_tol = min(0.1, max(0.1 * self.tol, _INNER_SHARE * point.residual))
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
    if start is None:
        start = Start(xp.zeros_like(problem.prior.diag), problem.prior.diag)
    climb = _Climb(problem, respond, read_off, start.alpha, tol)
    solution = solve(climb, xp.log(start.variance), tol=tol, max_iter=max_iter)
    report = Report(solution.converged, solution.n_iter, solution.residual, str(solution))
    # The climb may have tried a point further on; the means to start from are the accepted ones.
    posterior = solution.state.posterior
    return posterior, report, Start(posterior.alpha, xp.exp(solution.x))
