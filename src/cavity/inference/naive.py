"""Naive mean field: cavities with the prior's variance; products with K and nothing else."""

from typing import Any, ClassVar

from cavity.arrays import Array, add_to_diagonal, namespace
from cavity.inference.base import Method, Problem, Report, Start, register
from cavity.inference.newton import MeansState, cavity_moments, cavity_response, solve_means
from cavity.krylov import conjugate_gradients
from cavity.priors import DensePosterior

__all__ = ["Naive"]

# Newton's method forgives an inexact step; backtracking guards what is left.
_CG_RTOL = 1e-3
_CG_ITERATIONS = 1000


@register
class Naive(Method):
    """The founding paper's second mean field theory: λ_i = K_ii.

    Means, evidence and gradient come from products with K alone. Predictive variances and
    leave-one-out probabilities use the linear-response sites and factor K + diag(1/τ) once, when
    first asked for.
    """

    name: ClassVar[str] = "naive"
    needs: ClassVar[str] = "tilted"

    def solve(self, problem: Problem, start: Start | None) -> tuple[DensePosterior, Report, Start]:
        """Solve the mean field equations by Newton's method and conjugate gradients."""
        prior = problem.prior
        alpha = namespace(problem.y).zeros_like(prior.diag) if start is None else start.alpha
        found = solve_means(
            problem,
            cavity_response(problem, prior.diag),
            alpha,
            tol=self.tol,
            max_iter=self.max_iter,
            linear_solver=lambda state: _newton_cg(problem, state),
        )
        posterior = prior.condition(found.state.sites, alpha=found.x)
        report = Report(found.converged, found.n_iter, found.residual, str(found))
        return posterior, report, Start(found.x, prior.diag)

    def log_evidence(self, problem: Problem, posterior: DensePosterior) -> Any:
        """Return −F = Σ log Z_i − ½ Σ_ij α_i (K_ij − δ_ij K_ii) α_j; not a bound."""
        copies = problem.copies
        xp = namespace(posterior.alpha)
        alpha, mean, prior_variance = posterior.alpha, posterior.mean, problem.prior.diag
        moments = cavity_moments(problem, posterior, prior_variance)
        coupling = xp.sum(alpha * mean) - xp.sum(prior_variance * alpha**2 / copies)
        return xp.sum(copies * moments.log_z) - 0.5 * coupling

    def grad_K(self, problem: Problem, posterior: DensePosterior) -> Array:
        """Return ½ ααᵀ + ½ diag(w d2): −F is stationary in α, so only K's own slope counts."""
        d2 = cavity_moments(problem, posterior, problem.prior.diag).d2
        M = 0.5 * posterior.alpha[:, None] * posterior.alpha[None, :]
        return add_to_diagonal(M, 0.5 * problem.copies * d2)


def _newton_cg(problem: Problem, state: MeansState) -> Array:
    """Return the Newton step's α from (I + T K) δ = ν − α − τ μ, in its symmetric form."""
    xp = namespace(state.alpha)
    tau, nu = state.sites
    s = xp.sqrt(tau)
    product = problem.prior.product
    missing = nu - state.alpha - tau * state.mean
    z = conjugate_gradients(
        lambda v: v + s * product(s * v),
        s * product(missing),
        rtol=_CG_RTOL,
        max_iter=_CG_ITERATIONS,
    )
    return state.alpha + missing - s * z
