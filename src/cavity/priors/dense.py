"""A prior covariance held as a matrix, and its posterior under Gaussian sites.

With S = diag(√τ), B = I + S K S and L = chol(B), everything about the posterior follows from L and
L⁻¹; B has eigenvalues of at least one, so nothing here needs K to be invertible.
"""

from functools import cached_property
from typing import Any, ClassVar

from cavity.arrays import (
    Array,
    NotPositiveDefiniteError,
    add_outer,
    add_to_diagonal,
    cholesky,
    clip,
    column_square_sums,
    congruence_plus_identity,
    copy,
    invert_lower,
    lower_gram,
    lower_product,
    matmul,
    namespace,
    put,
    scale_both,
    symmetric_product,
)
from cavity.priors.base import PRIORS, KernelRule
from cavity.priors.factor import Factor, half_log_det
from cavity.sites import Local, Marginals, Rows, Sites, Slope, cavity

# 1 − [B⁻¹]_ii carries an absolute error of a few eps: below this τ K the variance is recomputed.
_CANCELS = 1e-5
_SMALL = 256


class DensePrior:
    """Latent values f ~ N(0, K) with K held as a matrix.

    Parameters
    ----------
    K : array of shape (n, n)
        Symmetric, positive semidefinite. It is never modified.
    rule : KernelRule, optional
        Where K came from; needed for gradients in its hyperparameters and for new inputs.
    X : array of shape (n, d), optional
        The inputs that K belongs to.
    """

    dense: ClassVar[bool] = True
    pre_solved: ClassVar[bool] = True

    def __init__(self, K: Array, rule: KernelRule | None = None, X: Any = None) -> None:
        self.K, self.rule = K, rule
        self.X = self.points = X
        self._inverse: tuple[Array, tuple[Array, Array]] | None = None

    @classmethod
    def of(cls, rule: KernelRule, X: Any) -> "DensePrior":
        """Return the prior of a covariance function at the given inputs."""
        K = rule.matrix(X)
        xp = namespace(K)
        if not xp.all(xp.isfinite(K)):
            raise NotPositiveDefiniteError("some of its entries are not finite")
        return cls(K, rule, X)

    @cached_property
    def diag(self) -> Array:
        """Prior variances, floored at the smallest normal number so that nothing divides by 0."""
        xp = namespace(self.K)
        d = xp.linalg.diagonal(self.K)
        return clip(d, low=float(xp.finfo(d.dtype).smallest_normal))

    @property
    def size(self) -> int:
        """Number of latent values."""
        return int(self.K.shape[0])

    @property
    def factors_cheaply(self) -> bool:
        """Whether a factorisation costs no more than about ten products with K."""
        return self.size <= _SMALL

    def product(self, a: Array) -> Array:
        """Return K a."""
        return symmetric_product(self.K, a)

    @property
    def kernel_rule(self) -> KernelRule:
        """The kernel, which a matrix alone does not have."""
        if self.rule is None:
            raise ValueError("This prior is a matrix without a kernel: use DensePrior.of(rule, X).")
        return self.rule

    def cross(self, X: Any) -> Array:
        """Return what a posterior needs of new inputs: their covariances with these."""
        return self.kernel_rule.matrix(X, self.X)

    def features(self, rows: Rows) -> Rows:
        """Return the rows themselves."""
        return rows

    def sums(self, seen: Rows, sites: Sites) -> Sites:
        """Return the sites: one block holds all rows."""
        return sites

    def condition(self, sums: Sites | None = None, alpha: Array | None = None) -> "DensePosterior":
        """Return the posterior given the sites, and its α if already known."""
        if sums is None:
            zero = 0.0 * self.diag
            return DensePosterior(self, Sites(zero, zero), zero)
        return DensePosterior(self, sums, alpha)

    def inverse_plus(self, noise: Array) -> tuple[Array, Array]:
        """Return (K + diag(noise))⁻¹ and half the log determinant of K + diag(noise).

        The last result is kept: the equations, their evidence and its gradient need the same one.
        """
        xp = namespace(self.K)
        if self._inverse is None or not xp.all(self._inverse[0] == noise):
            L = cholesky(add_to_diagonal(copy(self.K), noise))
            log_det = half_log_det(L)
            self._inverse = noise, (lower_gram(invert_lower(L)), log_det)
        return self._inverse[1]


class DensePosterior:
    """The Gaussian posterior of a dense prior under Gaussian sites.

    Nothing is factored before it is needed.

    Parameters
    ----------
    prior : DensePrior
    sites : Sites
        Precisions τ ≥ 0 and precision-times-means ν.
    alpha : array of shape (n,), optional
        The weights α = ν − τ μ, if already known.
    """

    def __init__(self, prior: DensePrior, sites: Sites, alpha: Array | None = None) -> None:
        self.prior = prior
        self.sites = sites
        self._s = namespace(sites.tau).sqrt(sites.tau)
        self._alpha_given = alpha is not None
        if alpha is not None:
            self.alpha = alpha

    @cached_property
    def _factor(self) -> Factor:
        return Factor(cholesky(congruence_plus_identity(self.prior.K, self._s)))

    @cached_property
    def half_log_det(self) -> Array:
        """Σ log L_ii = ½ log det(I + K T)."""
        return self._factor.half_log_det

    @cached_property
    def alpha(self) -> Array:
        """Return α = ν − S B⁻¹ S K ν = S B⁻¹ S⁻¹ ν, each entry of ν in the form that is safe.

        The first form cancels if a site dominates (τ K large), the second divides by zero if a
        site is empty; both are linear in ν.
        """
        xp, strong, nu = namespace(self._s), self._strong, self.sites.nu
        weak_nu = xp.where(strong, 0.0, nu)
        strong_nu = xp.where(strong, nu / xp.where(strong, self._s, 1.0), 0.0)
        rhs = strong_nu - self._s * self.prior.product(weak_nu)
        factor = self._factor
        return weak_nu + self._s * factor.half_solve(factor.half_solve(rhs), transpose=True)

    @cached_property
    def mean(self) -> Array:
        """Posterior means μ = K α, read off the site as (ν − α)/τ where it dominates."""
        mean = self.prior.product(self.alpha)
        if self._alpha_given:
            return mean
        xp = namespace(mean)
        tau, nu = self.sites
        return xp.where(self._strong, (nu - self.alpha) / xp.where(self._strong, tau, 1.0), mean)

    @cached_property
    def _strong(self) -> Array:
        """Whether a site weighs more than the prior."""
        return self.sites.tau > 1.0 / self.prior.diag

    def local(self, seen: Rows | None = None, sites: Sites | None = None) -> Local:
        """Return marginals with all that is needed to remove a site from them."""
        return self._local

    def left_out(self, seen: Rows, sites: Sites | None, weight: Array) -> Marginals:
        """Return the cavities: one copy of each example is left out."""
        return cavity(self._local, weight)

    @cached_property
    def _local(self) -> Local:
        rest = self._factor.inverse_diagonal  # 1 − τ Σ_ii
        q = Marginals(self.mean, self._variance(rest))
        return Local(q, self.sites, self.alpha, rest, self.prior.diag)

    def means(self) -> Local:
        """Return the local view of a method that needs no variances, without a factorisation."""
        diag = self.prior.diag
        ones = namespace(diag).ones_like(diag)
        return Local(Marginals(self.mean, diag), self.sites, self.alpha, ones, diag)

    def _variance(self, rest: Array) -> Array:
        """Return Σ_ii = (1 − [B⁻¹]_ii)/τ_i, and K_ii − ‖L⁻¹ S k_i‖² where that cancels."""
        xp = namespace(rest)
        tau = self.sites.tau
        variance = (1.0 - rest) / xp.where(self.cancels, 1.0, tau)
        weak = xp.nonzero(self.cancels)[0]
        if weak.shape[0]:
            k = xp.take(self.prior.K, weak, axis=1)
            direct = xp.take(self.prior.diag, weak) - self._explained(k)
            variance = put(variance, weak, direct)
        # A site can only sharpen: a variance of zero or less is rounding of a tiny one.
        floor = self.prior.diag * float(xp.finfo(rest.dtype).eps) ** 2
        return xp.maximum(variance, floor)

    def _explained(self, V: Array) -> Array:
        """Return ‖L⁻¹ S v‖² for each column v: the prior variance that the sites explain."""
        return column_square_sums(self.whitened(V))

    def solve(self, v: Array) -> Array:
        """Return B⁻¹ v."""
        return self._factor.half_solve(self._factor.half_solve(v), transpose=True)

    def at(self, X: Any, variance: Array | None = None) -> Marginals:
        """Return mean and variance at new inputs, whose prior variances may be given."""
        own = self.prior.kernel_rule.diag(X) if variance is None else variance
        return self.predict(self.prior.cross(X), own)

    def predicted_mean(self, K_star: Array) -> Array:
        """Return the posterior mean at new inputs."""
        return matmul(K_star, self.alpha)

    def predict(self, K_star: Array, prior_variance: Array) -> Marginals:
        """Return posterior mean and variance at new inputs.

        Parameters
        ----------
        K_star : array of shape (m, n)
            Prior covariances of the new values with the training ones.
        prior_variance : array of shape (m,)
        """
        xp = namespace(K_star)
        variance = prior_variance - self._explained(K_star.T)
        info = xp.finfo(variance.dtype)
        floor = clip(prior_variance * float(info.eps), low=float(info.smallest_normal))
        return Marginals(self.predicted_mean(K_star), xp.maximum(variance, floor))

    def predict_covariance(self, K_star: Array, K_star_star: Array) -> Array:
        """Return the posterior covariance among new inputs."""
        half = self.whitened(K_star.T)
        return K_star_star - matmul(half.T, half)

    def whitened(self, V: Array) -> Array:
        """Return L⁻¹ S V, whose products are what the sites take off covariances V."""
        # Always by L⁻¹: digits of a prediction must not depend on what was asked before.
        return lower_product(self._factor.inverse, self._s[:, None] * V)

    def covariance(self) -> Array:
        """Return the posterior covariance Σ of the training latent values."""
        return self.predict_covariance(self.prior.K, self.prior.K)

    def separate(self) -> "tuple[DensePosterior, slice, float]":
        """Return the posterior, its rows and into how many each was taken apart: none was."""
        return self, slice(None), 1.0

    def explaining(self, K_star: Array) -> Array:
        """Return W = (K + 1/T)⁻¹ k* (n, m): the sites take k W off covariances with inputs."""
        return self._s[:, None] * self.solve(self._s[:, None] * K_star.T)

    def cross_covariance(self, K_star: Array) -> Array:
        """Return posterior covariances of the training latent values with new ones, (n, m)."""
        return K_star.T - matmul(self.prior.K, self.explaining(K_star))

    def without(self, K_star: Array, weight: Array) -> Marginals:
        """Return how mean and variance at new inputs change without one copy of a row, (n, m).

        The sites of all other rows stay. Given f_i, a new value does not depend on the site of i:
        its mean moves with the cavity's, and its variance grows with the cavity's.
        """
        xp, W, tau = namespace(K_star), self.explaining(K_star), self.sites.tau
        rest = self._factor.inverse_diagonal + (weight - 1.0)
        rest = clip(rest, low=float(xp.finfo(rest.dtype).smallest_normal))
        response = W / (xp.where(tau > 0.0, tau, 1.0) * rest)[:, None]
        return Marginals(-response * self.alpha[:, None], response * W)

    def under(self, sums: Sites) -> "DensePosterior":
        """Return the posterior with the same precisions and other sources ν."""
        other = DensePosterior(self.prior, Sites(self.sites.tau, sums.nu))
        other._factor = self._factor
        return other

    def B_inverse(self) -> Array:
        """Return B⁻¹, a new matrix."""
        return lower_gram(copy(self._factor.inverse))

    @cached_property
    def cancels(self) -> Array:
        """Whether a site is so weak that 1 − [B⁻¹]_ii has too few digits."""
        return self.sites.tau * self.prior.diag < _CANCELS

    def contract(
        self,
        seen: Rows,
        sites: Sites | None,
        slope: Slope,
        other: "DensePosterior | None" = None,
    ) -> Array:
        """Return the gradient of the log evidence in the kernel's hyperparameters."""
        M = self.slope_matrix(slope, other)
        return self.prior.kernel_rule.vjp(self.prior.X, None, M, self.prior.K)

    def gradient(self, shares: Array) -> Array:
        """Return the gradient: there is one share."""
        return shares

    def slope_matrix(self, slope: Slope, other: "DensePosterior | None" = None) -> Array:
        """Return M with d log Z = Σ_ij M_ij dK_ij."""
        M = self._curved(slope)
        if slope.diagonal is not None:
            M = add_to_diagonal(M, slope.diagonal)
        if other is not None:
            # ½(vα' + αv') as two squares, so that M is updated in place.
            M = add_outer(M, 0.25, self.alpha + other.alpha)
            M = add_outer(M, -0.25, self.alpha - other.alpha)
        return add_outer(M, 0.5, self.alpha)

    def _curved(self, slope: Slope) -> Array:
        """Return −½ p R, R = S B⁻¹ S, or the matrix that replaces it."""
        if slope.matrix is not None:
            return slope.matrix
        if slope.precision == 0.0:
            return namespace(self.prior.K).zeros_like(self.prior.K)
        return scale_both(self.B_inverse(), -0.5 * slope.precision * self._s, self._s)


PRIORS["dense"] = DensePrior.of
