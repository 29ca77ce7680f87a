"""Naive mean field: cavities with the prior's variance; products with K and nothing else."""

from typing import Any, ClassVar

from cavity.arrays import Array, add_to_diagonal, namespace
from cavity.inference.base import Method, Problem, Report, Start, register, with_whole_copies
from cavity.inference.newton import Steps, cavity_moments, cavity_response, solve_means
from cavity.priors import DensePosterior

__all__ = ["Naive"]


@register
class Naive(Method):
    """The founding paper's second mean field theory: λ_i = K_ii.

    Means, evidence and gradient come from products with K alone. Predictive variances and
    leave-one-out probabilities use the linear-response sites and factor K + diag(1/τ) once, when
    first asked for.
    """

    name: ClassVar[str] = "naive"
    needs: ClassVar[str] = "tilted"

    def prepare(self, problem: Problem) -> Problem:
        """Count no example less than once."""
        return with_whole_copies(problem)

    def solve(self, problem: Problem, start: Start | None) -> tuple[DensePosterior, Report, Start]:
        """Solve the mean field equations by Newton's method and conjugate gradients."""
        prior = problem.prior
        alpha = namespace(problem.y).zeros_like(prior.diag) if start is None else start.alpha
        found = solve_means(
            problem,
            cavity_response(problem, prior.diag),
            alpha,
            Steps(prior, may_factor=False),
            tol=self.tol,
            max_iter=self.max_iter,
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
