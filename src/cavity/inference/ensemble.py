"""Ensemble mean field: the best factorised posterior, hence a bound on the evidence."""

from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from cavity.arrays import Array, matmul, namespace, same_kind
from cavity.inference.base import Method, register
from cavity.inference.problem import Fit, Problem, WarmStart
from cavity.inference.self_consistent import fixed_variance
from cavity.likelihoods import Likelihood
from cavity.priors import DensePrior
from cavity.sites import Local, Moments, Rows, Slope


@register
class Ensemble(Method):
    """The founding paper's first mean field theory: λ_i = 1/[K⁻¹]_ii.

    A probit's noise s² belongs to the latent values here, which then have covariance K + s² I and
    are far less correlated: the cavity variance of f itself is 1/[(K + s² I)⁻¹]_ii − s².
    Predictive variances and leave-one-out probabilities use the linear-response sites.
    """

    name: ClassVar[str] = "ensemble"
    needs: ClassVar[str] = "tilted"
    volume: ClassVar[bool] = False

    @property
    def dense_only(self) -> bool:
        """It needs the inverse of the covariance matrix."""
        return True

    def has_slopes(self, likelihood: Likelihood) -> bool:
        """Only in the kernel's: the noise is in λ and in the determinants, too."""
        return not likelihood.names

    def fit(self, problem: Problem, start: WarmStart | None = None) -> Fit:
        """Solve the mean field equations by Newton's method."""
        if not problem.prior.dense:
            raise ValueError("Ensemble mean field needs the inverse of a covariance matrix.")
        q = _factorised(problem.likelihood, problem.rows, problem.prior)
        found = fixed_variance(self, problem, start, q.variance - q.noise)
        xp, w = namespace(q.variance), problem.rows.weight
        volume = q.half_log_det - 0.5 * xp.sum(w * xp.log(q.variance))
        return replace(found, log_evidence=found.log_evidence - float(volume))

    def rounding(self, fit: Fit) -> float:
        """Return ε Σ (K_ii + s²)/λ_i: that much λ and the determinants are rounded."""
        xp, w = namespace(fit.start.variance), fit.problem.rows.weight
        noise = same_kind(fit.problem.likelihood.noise_variance, w)
        inflation = (fit.problem.prior.diag + noise) / (fit.start.variance + noise)
        return float(xp.finfo(w.dtype).eps * xp.sum(w * inflation))

    def terms(self, rows: Rows, local: Local, lam: Array, moments: Moments) -> Array:
        """Return −F, a lower bound of the log evidence, less its log determinants."""
        coupling = local.alpha * (local.q.mean - lam * local.alpha / rows.weight)
        return rows.weight * moments.log_z - 0.5 * coupling

    def slope(self, likelihood: Likelihood, rows: Rows, local: Local, prior: Any) -> Slope:
        """Return ½[K⁻¹ diag(c) K⁻¹ − K⁻¹] with c_i = λ_i (1 + λ_i d2_i); ½ααᵀ is added to it."""
        q = _factorised(likelihood, rows, prior)
        lam = q.variance - q.noise
        d2 = self.respond(likelihood, rows, local.q.mean, local.alpha, lam).moments.d2
        c = q.variance * (1.0 + q.variance * d2) / rows.weight
        # Of a Gaussian, whose own noise is in λ', nothing but rounding is left.
        c = 0.0 * c if likelihood.quadratic else c
        M = matmul(q.inverse * (0.5 * c), q.inverse)
        M -= 0.5 * q.inverse
        return Slope(matrix=M)


class _Factorised(NamedTuple):
    """The variances of the factorised posterior before the likelihood is applied."""

    inverse: Array
    """(K + diag(s²/w))⁻¹, the copies of an example merged."""
    half_log_det: Array
    """Half the log determinant of K + s² I, every copy counted."""
    variance: Array
    """λ_i = 1/[(K + s² I)⁻¹]_ii of one copy."""
    noise: Array
    """s²: the likelihood with its own noise is averaged over a variance of λ_i − s²."""


def _factorised(likelihood: Likelihood, rows: Rows, prior: DensePrior) -> _Factorised:
    """Work out the variances, for w copies of each example with noise s² of their own.

    By Woodbury's identity [(K + s² I)⁻¹]_ii of one copy is (1 − 1/w)/s² + [(K + s²/w)⁻¹]_ii/w².
    """
    w = rows.weight
    xp = namespace(w)
    noise = w * 0.0 + same_kind(likelihood.noise_variance, w)
    repeated = w != 1.0
    _refuse_indistinguishable(xp.any(repeated & (noise == 0.0)), xp.any(w < 1.0))
    inverse, half_log_det = prior.inverse_plus(noise / w)
    excess = xp.where(repeated, w - 1.0, 0.0)
    safe_noise = xp.where(noise > 0.0, noise, 1.0)
    precision = excess / (w * safe_noise) + xp.linalg.diagonal(inverse) / w**2
    log_det_copies = xp.sum(excess * xp.log(safe_noise) + xp.log(w))
    return _Factorised(inverse, half_log_det + 0.5 * log_det_copies, 1.0 / precision, noise)


class IndistinguishableError(ValueError):
    """Equal examples need a noise of their own, which the likelihood does not have."""


def _refuse_indistinguishable(without_noise: bool, below_one: bool) -> None:
    if without_noise:
        raise IndistinguishableError(
            "Ensemble mean field cannot tell equal examples apart without noise of their own: "
            'with sample weights use likelihood="probit", or a WhiteKernel and integer weights.'
        )
    if below_one:
        raise ValueError(
            "Ensemble mean field needs sample weights of at least one: scale them up, or use "
            'inference="ep".'
        )
