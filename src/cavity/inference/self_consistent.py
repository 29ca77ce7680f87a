"""Newton's method for the means inside an iteration on the variances, where K is a matrix.

EP's cavities and the variational marginals are self-consistent: given the variances the means are
found by Newton's method, and the posterior so found gives the variances back. Iterated on their
logarithms with the means solved in between, this converges where updating means and variances
together oscillates (separable data under a wide prior).
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from cavity.arrays import Array, NotPositiveDefiniteError, namespace
from cavity.inference.newton import Equations, Steps, solve_means
from cavity.inference.problem import Fit, Problem, Report, WarmStart, report_of
from cavity.inference.sweeps import sweep
from cavity.priors import Coupling, DensePosterior, RowsPosterior, low_rank_of
from cavity.sites import Local
from cavity.solvers import Solution, contraction, solve

if TYPE_CHECKING:
    from cavity.inference.base import Method

_INNER_ITERATIONS = 100
_WARM = 1e-3
# Changes below this that no longer fall are rounding.
_NOISE = 1e-6
# The means need no more accuracy than the variances that they depend on; if these equations are a
# saddle point, less is enough (by whether they are concave).
_INNER_SHARE = {True: 1e-3, False: 1e-2}
_ROUGH_SHARE = 0.1
# More digits or rounds of the low-rank pre-solve do not pay.
_ROUGH, _ROUNDS = 1e-3, 10
# Tolerance of Laplace's mode.
_ROUGH_MODE = 3e-2
# Hundreds of factorisations of larger matrices take too long.
_SWEPT = 3000
# At the tolerance means are right to 1e-4 deviations. With a share of one, EP at n = 800 takes a
# seventh more operations.
_SHARE_OF_MEANS = 0.01
# The iteration is never assumed to contract faster than this.
_FASTEST = 0.05
# Log variances further off than this count in full. A site made with a variance e^5 times too large
# has a share of e^-5 or so, which still counts.
_FAR = 5.0


class Begin(NamedTuple):
    """Where the iteration starts, and what helps it."""

    start: WarmStart | None
    contraction: float = 1.0
    preconditioner: RowsPosterior | None = None

    def x(self, coupling: Coupling) -> Array:
        """Return the log variances to begin with."""
        first = None if self.start is None else self.start.variance
        first = coupling.diag if first is None else first
        return namespace(first).log(first)


class VariancePoint:
    """Log variances x, the posterior that belongs to them, and the image that this one gives back.

    The posterior is closer to the fixed point than the variances it was made with, by the factor
    at which the iteration contracts; ``residual`` says how far off the posterior is. A change
    counts by what it does to the posterior: in proportion to the share τ Σ that the example's own
    site has in its marginal's precision. That share is nearly zero for a site made with a variance
    far too large, so a large change counts whatever the share.
    """

    def __init__(self, x: Array, image: Array, posterior: Any, local: Local) -> None:
        self.x, self.image, self.posterior = x, image, posterior
        self.q, self._weight = local.q, 1.0 - local.rest
        self.change = self.distance(image, x)
        self.contraction, self.residual, self.merit = 1.0, self.change, -self.change

    def distance(self, a: Array, b: Array) -> float:
        """Return the largest difference between two vectors of log variances."""
        xp = namespace(a)
        off = xp.abs(a - b)
        return float(xp.max(xp.maximum(self._weight * off, off - _FAR)))

    def away(self, mean: Array) -> float:
        """Return how far the means are from others, in standard deviations.

        Those of a lopsided likelihood follow the variances where the image hardly does.
        """
        xp = namespace(mean)
        return float(xp.max(xp.abs(self.q.mean - mean) / xp.sqrt(self.q.variance)))

    def target(self) -> Array:
        """Where the iteration leads."""
        return self.image


class _Last(NamedTuple):
    """What is kept of the last point; not its posterior, which takes matrices."""

    x: Array
    image: Array
    change: float
    mean: Array | None
    """None if the means were not solved for."""


class _Variances:
    """Evaluates one set of log variances after the other, each starting from the last means."""

    def __init__(
        self, equations: Equations, begin: Begin, tol: float, share: float | None = None
    ) -> None:
        self.equations, self.begin, self.tol = equations, begin, tol
        self.share = share or _INNER_SHARE[equations.method.concave]
        self.steps = Steps(equations.coupling, preconditioner=begin.preconditioner)
        self.last: _Last | None = None
        if begin.start is None:
            self.alpha = 0.0 * equations.coupling.diag
            # Far from the variances sought it does not pay to solve for the means.
            self.inner_tol = float("inf")
        else:
            self.alpha = self.steps.begin(begin.start.sites)
            self.inner_tol = _WARM

    def __call__(self, x: Array) -> VariancePoint:
        xp = namespace(x)
        method, _, rows, coupling = self.equations
        means = solve_means(
            self.equations,
            xp.exp(x),
            self.alpha,
            self.steps,
            tol=self.inner_tol,
            max_iter=_INNER_ITERATIONS,
        )
        posterior = coupling.condition(means.state.sites)
        # The posterior's own α is one more Newton step at no extra cost.
        self.alpha, self.steps.preconditioner = posterior.alpha, posterior
        local = posterior.local()
        point = VariancePoint(x, xp.log(method.variance(local, rows.weight)), posterior, local)
        self._judge(point, means.residual)
        self.inner_tol = self.share * max(min(self.tol, 1.0), point.residual)
        return point

    def _judge(self, point: VariancePoint, means_residual: float) -> None:
        """Set the residual and merit of a point, given the last one."""
        point.contraction = self.begin.contraction
        last = self.last
        if last is not None:
            followed = point.distance(point.image, last.image)
            if last.mean is not None:
                followed = max(followed, _SHARE_OF_MEANS * point.away(last.mean))
            point.contraction = contraction(point.distance(point.x, last.x), followed)
        point.residual = point.change * point.contraction
        if last is not None and last.change < _NOISE and point.change > 0.5 * last.change:
            # Only rounding remains, which no further step can remove.
            point.residual = 0.0
        if self.inner_tol < float("inf"):
            # The error of the means counts, too.
            point.residual = max(point.residual, means_residual)
            point.merit = -max(point.change, means_residual)
        else:
            # Without its means a point cannot be compared with the next one.
            point.merit = -float("inf")
        mean = point.q.mean if point.merit > -float("inf") else None
        self.last = _Last(point.x, point.image, point.change, mean)


def self_consistent(method: Method, problem: Problem, start: WarmStart | None = None) -> Fit:
    """Find variances that the posterior gives back.

    If this does not converge, damped sweeps are used.
    """
    equations = equations_of(method, problem)
    begin = _pre_solve(equations, problem, start)
    run = partial(solve, tol=method.tol, max_iter=method.max_iter, memory=method.memory)
    found = run(_Variances(equations, begin, method.tol), begin.x(problem.prior))
    if not found.converged and begin.start is not start:
        begin = Begin(start)
        found = run(_Variances(equations, begin, method.tol), begin.x(problem.prior))
    if not found.converged and problem.prior.size <= _SWEPT:
        # Where a sweep fails, what was found before is all there is.
        with suppress(NotPositiveDefiniteError):
            swept = sweep(method, problem, start)
            if swept.report.converged:
                return swept
    low = None if begin.start is None else begin.start.low_rank_variance
    end = _start_at(found)._replace(low_rank_variance=low)
    report = report_of(found.converged, found.n_iter, found.residual)
    posterior = found.state.posterior
    local = posterior.local()
    lam = method.variance(local, equations.rows.weight)
    return dense_fit(equations, problem, posterior, local, lam, report, end)


def fixed_variance(
    method: Method, problem: Problem, start: WarmStart | None = None, lam: Array | None = None
) -> Fit:
    """Find the means at variances that do not depend on the posterior; by default the prior's.

    If the evidence has no log determinant, the posterior keeps the α of the iteration.
    """
    equations, prior = equations_of(method, problem), problem.prior
    lam = prior.diag if lam is None else lam
    alpha, steps = _first_means(equations, problem, start, lam)
    run = partial(solve_means, equations, lam, tol=method.tol, max_iter=method.max_iter)
    found = run(alpha, steps)
    if not (found.converged or method.may_factor):
        # Conjugate gradients have lost their digits: very sharp likelihoods of dependent values.
        with suppress(NotPositiveDefiniteError):
            again = run(found.x, Steps(prior))
            found = again if again.residual < found.residual else found
    posterior = prior.condition(found.state.sites, alpha=None if method.volume else found.x)
    report = report_of(found.converged, found.n_iter, found.residual)
    end = WarmStart(posterior.sites, lam)
    return dense_fit(equations, problem, posterior, posterior.means(), lam, report, end)


def one_step(method: Method, problem: Problem, start: WarmStart | None = None) -> Fit:
    """Condition on sites that do not depend on the posterior."""
    equations, diag = equations_of(method, problem), problem.prior.diag
    zero = 0.0 * diag
    sites = method.respond(equations.likelihood, equations.rows, zero, zero, diag).sites
    posterior = problem.prior.condition(sites)
    report, end = Report(True, 1, 0.0, "one step"), WarmStart(sites, diag)
    return dense_fit(equations, problem, posterior, posterior.means(), diag, report, end)


def equations_of(method: Method, problem: Problem) -> Equations:
    """Return the method's equations for all rows under the problem's own prior."""
    likelihood, rows = method.prepare(problem.likelihood, problem.rows)
    return Equations(method, likelihood, rows, problem.prior)


def dense_fit(
    equations: Equations,
    problem: Problem,
    posterior: DensePosterior,
    local: Local,
    lam: Array,
    report: Report,
    end: WarmStart,
) -> Fit:
    """Return a fit with its evidence, given the posterior and its local view."""
    method, likelihood, rows, _ = equations
    moments = method.respond(likelihood, rows, local.q.mean, local.alpha, lam).moments
    terms = method.terms(rows, local, lam, moments)
    value = namespace(terms).sum(terms)
    if method.volume:
        value = value - posterior.half_log_det
    return Fit(problem, method, posterior, float(value), report, end)


def _start_at(found: Solution[VariancePoint]) -> WarmStart:
    image = found.state.image
    return WarmStart(found.state.posterior.sites, namespace(image).exp(image))


def _pre_solve(equations: Equations, problem: Problem, start: WarmStart | None) -> Begin:
    """Solve the equations under a low-rank approximation of the prior first, if that pays.

    Its variances are wrong, but from one prior to the next they change nearly as the right ones
    do. Whole fits at n = 1,600 take the time of 97 factorisations instead of 149.
    """
    coupling = low_rank_of(problem.prior)
    if coupling is None:
        return Begin(start)
    rough = equations._replace(coupling=coupling)
    variances, x = _Variances(rough, Begin(start), _ROUGH, _ROUGH_SHARE), Begin(start).x(coupling)
    found = solve(variances, x, tol=_ROUGH, max_iter=_ROUNDS, memory=equations.method.memory)
    if not found.converged:
        return Begin(start)
    end = _start_at(found)
    here = end.variance
    if start is not None and start.low_rank_variance is not None:
        end = end._replace(variance=here * start.variance / start.low_rank_variance)
    state = found.state
    fastest = max(_FASTEST, state.contraction)
    return Begin(end._replace(low_rank_variance=here), fastest, state.posterior)


def _first_means(
    equations: Equations, problem: Problem, start: WarmStart | None, lam: Array
) -> tuple[Array, Steps]:
    """Return α to start from, by a fit nearby or a low-rank pre-solve, and how to continue."""
    method = equations.method
    steps = Steps(problem.prior, may_factor=method.may_factor)
    coupling = low_rank_of(problem.prior, rough=False) if method.volume else None
    if start is not None:
        steps.preconditioner = None if coupling is None else coupling.condition(start.sites)
        return steps.begin(start.sites), steps
    alpha = 0.0 * problem.prior.diag
    if coupling is None:
        return alpha, steps
    rough, easy = equations._replace(coupling=coupling), Steps(coupling)
    found = solve_means(rough, lam, alpha, easy, tol=_ROUGH_MODE, max_iter=method.max_iter)
    steps.preconditioner = coupling.condition(found.state.sites)
    return found.x, steps
