"""Ensemble mean field: the best factorised posterior, hence a bound on the evidence."""

from typing import Any, ClassVar, NamedTuple

from cavity.arrays import Array, add_outer, matmul, namespace, same_kind
from cavity.inference.base import Method, Problem, Report, Start, register
from cavity.inference.newton import Steps, cavity_moments, cavity_response, solve_means
from cavity.priors import DensePosterior

__all__ = ["Ensemble"]


@register
class Ensemble(Method):
    """The founding paper's first mean field theory: λ_i = 1/[K⁻¹]_ii.

    A probit's noise s² belongs to the latent values here, which then have covariance K + s² I and
    are far less correlated: the cavity variance of f itself is 1/[(K + s² I)⁻¹]_ii − s².
    Predictive variances and leave-one-out probabilities use the linear-response sites.
    """

    name: ClassVar[str] = "ensemble"
    needs: ClassVar[str] = "tilted"

    def solve(self, problem: Problem, start: Start | None) -> tuple[DensePosterior, Report, Start]:
        """Solve the mean field equations by Newton's method."""
        xp = namespace(problem.y)
        alpha = xp.zeros_like(problem.prior.diag) if start is None else start.alpha
        variance = _factorised(problem).cavity_variance
        respond = cavity_response(problem, variance)
        steps = Steps(problem.prior)
        found = solve_means(problem, respond, alpha, steps, tol=self.tol, max_iter=self.max_iter)
        posterior = problem.prior.condition(found.state.sites, alpha=found.x)
        report = Report(found.converged, found.n_iter, found.residual, str(found))
        return posterior, report, Start(found.x, variance)

    def log_evidence(self, problem: Problem, posterior: DensePosterior) -> Any:
        """Return −F, a lower bound of the log evidence."""
        copies = problem.copies
        xp = namespace(posterior.alpha)
        q = _factorised(problem)
        moments = cavity_moments(problem, posterior, q.cavity_variance)
        alpha = posterior.alpha
        coupling = xp.sum(alpha * (posterior.mean - q.cavity_variance * alpha / copies))
        return (
            xp.sum(copies * (moments.log_z + 0.5 * xp.log(q.variance)))
            - 0.5 * coupling
            - q.half_log_det
        )

    def grad_K(self, problem: Problem, posterior: DensePosterior) -> Array:
        """Return ½[ααᵀ − K⁻¹ + K⁻¹ diag(c) K⁻¹] with c_i = λ_i (1 + λ_i d2_i)."""
        q = _factorised(problem)
        d2 = cavity_moments(problem, posterior, q.cavity_variance).d2
        c = q.variance * (1.0 + q.variance * d2) / problem.copies
        M = matmul(q.inverse * (0.5 * c), q.inverse)
        M -= 0.5 * q.inverse
        return add_outer(M, 0.5, posterior.alpha)


class _Factorised(NamedTuple):
    """The variances of the factorised posterior before it meets the likelihood."""

    inverse: Array
    """(K + diag(s²/w))⁻¹, the copies of an example merged."""
    half_log_det: Array
    """Half the log determinant of K + s² I, every copy counted."""
    variance: Array
    """λ_i = 1/[(K + s² I)⁻¹]_ii of one copy."""
    cavity_variance: Array
    """λ_i less the noise: what the likelihood with its own noise is averaged over."""


def _factorised(problem: Problem) -> _Factorised:
    """Work out the variances, for w copies of each example with noise s² of their own.

    By Woodbury's identity [(K + s² I)⁻¹]_ii of one copy is (1 − 1/w)/s² + [(K + s²/w)⁻¹]_ii/w².
    """
    likelihood, prior, _, copies = problem
    xp = namespace(copies)
    noise = copies * 0.0 + same_kind(likelihood.latent_noise, copies)
    repeated = copies != 1.0
    _refuse_indistinguishable(xp.any(repeated & (noise == 0.0)), xp.any(copies < 1.0))
    inverse, half_log_det = prior.inverse_plus(noise / copies)
    excess = xp.where(repeated, copies - 1.0, 0.0)
    safe_noise = xp.where(noise > 0.0, noise, 1.0)
    precision = excess / (copies * safe_noise) + xp.linalg.diagonal(inverse) / copies**2
    log_det_copies = xp.sum(excess * xp.log(safe_noise) + xp.log(copies))
    return _Factorised(
        inverse, half_log_det + 0.5 * log_det_copies, 1.0 / precision, 1.0 / precision - noise
    )


def _refuse_indistinguishable(without_noise: bool, below_one: bool) -> None:
    if without_noise:
        raise ValueError(
            "Ensemble mean field cannot tell equal examples apart without noise of their own: "
            'with sample weights use likelihood="probit", or add a WhiteKernel and whole weights.'
        )
    if below_one:
        raise ValueError(
            "Ensemble mean field needs sample weights of at least one: scale them up, or use "
            'inference="ep".'
        )
