"""Laplace: a Gaussian at the posterior's mode with the curvature there (R&W section 3.4)."""

from typing import Any, ClassVar

from cavity.arrays import Array, add_outer, matmul, namespace
from cavity.inference.base import (
    Method,
    Problem,
    Report,
    Start,
    log_joint_at_mode,
    register,
    with_stand_in,
)
from cavity.inference.newton import MeansState, Response, Steps, solve_means
from cavity.priors import DensePosterior, stand_in
from cavity.sites import Moments, Sites, expand
from cavity.solvers.fixed_point import Solution

__all__ = ["Laplace"]

_REHEARSED = 3e-2


@register
class Laplace(Method):
    """Laplace's approximation: sites expanded at the mode of the posterior."""

    name: ClassVar[str] = "laplace"
    needs: ClassVar[str] = "derivatives"
    is_stationary: ClassVar[bool] = False  # its log determinant moves with the mode

    def solve(self, problem: Problem, start: Start | None) -> tuple[DensePosterior, Report, Start]:
        """Find the mode by Newton's method."""
        steps = Steps(problem.prior)
        alpha = self._begin(problem, start, steps)
        found = self._mode(problem, alpha, steps)
        posterior = problem.prior.condition(found.state.sites)
        report = Report(found.converged, found.n_iter, found.residual, str(found))
        end = Start(found.x, problem.prior.diag, posterior.factor, posterior.sites)
        return posterior, report, end._replace(scratch=problem.prior.scratch)

    def _mode(self, problem: Problem, alpha: Array, steps: Steps) -> Solution[MeansState]:
        response = _response(problem)
        return solve_means(problem, response, alpha, steps, tol=self.tol, max_iter=self.max_iter)

    def _begin(self, problem: Problem, start: Start | None, steps: Steps) -> Array:
        """Begin where a fit nearby ended, or at the mode under a stand-in for the prior."""
        if start is not None:
            return steps.begin(start)
        alpha = namespace(problem.y).zeros_like(problem.prior.diag)
        prior = stand_in(problem.prior, rough=False)
        if prior is None:
            return alpha
        easy = with_stand_in(problem, prior)
        found = solve_means(
            easy, _response(easy), alpha, Steps(prior), tol=_REHEARSED, max_iter=self.max_iter
        )
        steps.lean_on(prior.condition(found.state.sites))
        return found.x

    def log_evidence(self, problem: Problem, posterior: DensePosterior) -> Any:
        """Return log p(y|f̂) − ½ α·f̂ − Σ log L_ii, R&W (3.32)."""
        return log_joint_at_mode(problem, posterior) - posterior.half_log_det

    def grad_K(self, problem: Problem, posterior: DensePosterior) -> Array:
        """Return ½(ααᵀ − R) + ½(v gᵀ + g vᵀ): the mode, too, moves with K (R&W (5.23))."""
        likelihood, prior, y, copies = problem
        g, _, d3 = likelihood.derivatives(y, posterior.mean)
        g = copies * g
        s = 0.5 * posterior.local.q.variance * copies * d3
        R = posterior.precision_weight()
        v = s - matmul(R, prior.product(s))
        R *= -0.5
        return _add_symmetric(add_outer(R, 0.5, posterior.alpha), g, v)


def _add_symmetric(M: Array, g: Array, v: Array) -> Array:
    """Return M + ½(v gᵀ + g vᵀ), as two squares so that M is updated where it stands."""
    return add_outer(add_outer(M, 0.25, g + v), -0.25, g - v)


def _response(problem: Problem) -> Response:
    likelihood, _, y, copies = problem

    def respond(mu: Array, alpha: Array) -> tuple[Moments, Sites]:
        d1, d2, _ = likelihood.derivatives(y, mu)
        return Moments(likelihood.log_prob(y, mu), d1, d2), expand(mu, d1, d2, copies)

    return Response(respond, concave=True)
