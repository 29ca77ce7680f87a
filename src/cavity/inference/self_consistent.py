"""Variances that must agree with the posterior they help to make.

EP's cavities and the variational marginals are self-consistent: given the variances the means are
found by Newton's method, and the posterior so found gives the variances back. Iterated on their
logarithms with the means solved in between, this converges where updating means and variances
side by side oscillates (separable data under a wide prior).
"""

from collections.abc import Callable
from typing import NamedTuple

from cavity.arrays import Array, namespace
from cavity.inference.base import Problem, Report, Start, with_stand_in
from cavity.inference.newton import Response, Steps, solve_means
from cavity.priors import DensePosterior, stand_in
from cavity.sites import Local
from cavity.solvers.fixed_point import Solution, solve

__all__ = ["Equations", "solve_consistent"]

_INNER_ITERATIONS = 100
_MEMORY = 5
_WARM = 1e-3
# Changes below this that do not fall any more are rounding.
_NOISE = 1e-6
# The means need not be better known than the variances that they depend on.
_INNER_SHARE, _ROUGH_SHARE = 1e-3, 0.1
# A stand-in for the prior is not worth to be solved to more digits, nor for long.
_REHEARSED, _REHEARSALS = 1e-3, 10
# Its contraction is not believed beyond this.
_FASTEST = 0.05


class _Point:
    """Log variances, the posterior that belongs to them, and the variances this one gives back.

    The posterior is closer to the fixed point than the variances it was made with, by the factor
    at which the iteration contracts; ``residual`` says how far off the posterior is. A change
    counts by what it does to the posterior: in proportion to the share τ Σ that the example's own
    site has in its marginal's precision.
    """

    def __init__(
        self,
        x: Array,
        posterior: DensePosterior,
        image: Array,
        last: "_Point | None",
        expected: float,
    ) -> None:
        self.x, self.posterior, self.image = x, posterior, image
        self._weight = 1.0 - posterior.local.rest
        self.change = self._distance(image, x)
        self.contraction = expected if last is None else self._contraction(last)
        self.residual = self.change * self.contraction
        self.merit = -self.change
        if last is not None and last.change < _NOISE and self.change > 0.5 * last.change:
            # Only rounding is left, which no further step will take away.
            self.residual = 0.0

    def _contraction(self, last: "_Point") -> float:
        """How much closer to each other two points have come, doubled to be safe."""
        moved = self._distance(self.x, last.x)
        return min(1.0, 2.0 * self._distance(self.image, last.image) / moved) if moved else 1.0

    def _distance(self, a: Array, b: Array) -> float:
        xp = namespace(a)
        return float(xp.max(self._weight * xp.abs(a - b)))

    def target(self) -> Array:
        """Where the iteration leads."""
        return self.image


class Equations(NamedTuple):
    """What makes the variances consistent.

    ``respond`` makes the examples' response for given variances, ``read_off`` reads the variances
    off a posterior's local view.
    """

    respond: Callable[[Problem, Array], Response]
    read_off: Callable[[Local, Array], Array]


class _Climb:
    """Evaluates one set of variances after the other, each starting from the last means."""

    def __init__(
        self,
        problem: Problem,
        equations: Equations,
        start: Start | None,
        tol: float,
        share: float = _INNER_SHARE,
        contraction: float = 1.0,
    ) -> None:
        self.problem, self.equations = problem, equations
        self.tol, self.share, self.contraction = tol, share, contraction
        self.steps = Steps(problem.prior)
        self.last: _Point | None = None
        if start is None:
            self.alpha = namespace(problem.y).zeros_like(problem.prior.diag)
            # Far from the variances sought it does not pay to solve for the means.
            self.inner_tol = float("inf")
        else:
            self.alpha = self.steps.begin(start)
            self.inner_tol = _WARM

    def __call__(self, log_variance: Array) -> _Point:
        xp = namespace(log_variance)
        respond, read_off = self.equations
        means = solve_means(
            self.problem,
            respond(self.problem, xp.exp(log_variance)),
            self.alpha,
            self.steps,
            tol=self.inner_tol,
            max_iter=_INNER_ITERATIONS,
        )
        posterior = self.problem.prior.condition(means.state.sites)
        # The posterior's own α is one more Newton step, already paid for.
        self.alpha = posterior.alpha
        self.steps.lean_on(posterior)
        image = xp.log(read_off(posterior.local, self.problem.copies))
        point = _Point(log_variance, posterior, image, self.last, self.contraction)
        if self.inner_tol < float("inf"):
            # What the means still lack counts, too.
            point.residual = max(point.residual, means.residual)
        else:
            # Without its means a point is no measure for the next one.
            point.merit = -float("inf")
        self.last = point
        self.inner_tol = self.share * max(min(self.tol, 1.0), point.residual)
        return point


def solve_consistent(
    problem: Problem,
    equations: Equations,
    start: Start | None,
    *,
    tol: float,
    max_iter: int,
) -> tuple[DensePosterior, Report, Start]:
    """Find variances that the posterior gives back.

    Parameters
    ----------
    problem : Problem
    equations : Equations
    start : Start or None
    tol, max_iter
        Of the outer loop.
    """
    begin, contraction = _rehearse(problem, equations, start)
    climb = _Climb(problem, equations, begin, tol, contraction=contraction)
    found = _solve(climb, begin, max_iter)
    if begin is not start and not found.converged:
        found = _solve(_Climb(problem, equations, start, tol), start, max_iter)
    report = Report(found.converged, found.n_iter, found.residual, str(found))
    end = _go_on(found)._replace(scratch=problem.prior.scratch)
    if begin is not None and begin.rehearsed is not None:
        # What has been rehearsed needs no other help.
        end = end._replace(rehearsed=begin.rehearsed, nearby=None)
    return found.state.posterior, report, end


def _rehearse(
    problem: Problem, equations: Equations, start: Start | None
) -> tuple[Start | None, float]:
    """Return a start close by, and the contraction to expect there.

    Where there is a stand-in for the prior, it is solved first. Its variances are wrong, but
    from one prior to the next they change nearly as the right ones do.
    """
    prior = stand_in(problem.prior)
    if prior is None:
        return start, 1.0
    climb = _Climb(with_stand_in(problem, prior), equations, start, _REHEARSED, _ROUGH_SHARE)
    found = _solve(climb, start, _REHEARSALS)
    if not found.converged:
        return start, 1.0
    end = _go_on(found)
    here = end.variance
    if start is not None and start.rehearsed is not None:
        end = end._replace(variance=here * start.variance / start.rehearsed)
    return end._replace(rehearsed=here), max(_FASTEST, found.state.contraction)


def _solve(climb: _Climb, start: Start | None, max_iter: int) -> Solution[_Point]:
    begin = climb.problem.prior.diag if start is None else start.variance
    x = namespace(begin).log(begin)
    return solve(climb, x, tol=climb.tol, max_iter=max_iter, memory=_MEMORY)


def _go_on(solution: Solution[_Point]) -> Start:
    posterior, image = solution.state.posterior, solution.state.image
    variance = namespace(image).exp(image)
    return Start(posterior.alpha, variance, posterior.factor, posterior.sites)
