"""A prior covariance held whole, and its posterior under Gaussian sites.

With S = diag(√τ), B = I + S K S and L = chol(B), everything about the posterior follows from L and
L⁻¹; B has eigenvalues of at least one, so nothing here needs K to be invertible.
"""

from functools import cached_property

from cavity.arrays import (
    Array,
    add_outer,
    add_to_diagonal,
    cholesky,
    clip,
    copy,
    invert_lower,
    lower_gram,
    matmul,
    namespace,
    put,
    scale_both,
    symmetric_product,
)
from cavity.priors.factor import Factor, Scratch, half_log_det
from cavity.sites import Local, Marginals, Sites

__all__ = ["DensePosterior", "DensePrior"]

# 1 − [B⁻¹]_ii carries an absolute error of a few eps: below this τ K the variance is recomputed.
_CANCELS = 1e-5
_SMALL = 256


class DensePrior:
    """Latent values f ~ N(0, K) with K held as a matrix.

    Parameters
    ----------
    K : array of shape (n, n)
        Symmetric, positive semidefinite. It is never modified.
    scratch : Scratch, optional
        Memory to use, left over from a prior of the same size.
    """

    def __init__(self, K: Array, scratch: Scratch | None = None) -> None:
        self.K = K
        self.scratch = Scratch() if scratch is None else scratch
        self._inverse: tuple[Array, tuple[Array, Array]] | None = None

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
        """Whether a factor costs no more than some ten products with K."""
        return self.size <= _SMALL

    def product(self, a: Array) -> Array:
        """Return K a."""
        return symmetric_product(self.K, a)

    def columns(self, index: Array) -> Array:
        """Return some columns of K."""
        return namespace(self.K).take(self.K, index, axis=1)

    def factor(self, s: Array) -> Factor:
        """Return the factor of B = I + S K S for the diagonal s of S."""
        return Factor(self.K, s, self.scratch)

    def no_sites(self) -> Sites:
        """Sites that say nothing."""
        zero = namespace(self.K).zeros_like(self.diag)
        return Sites(zero, zero)

    def local(self) -> Local:
        """Return the prior's own marginals, without the cost of factoring an identity."""
        xp = namespace(self.K)
        zero = xp.zeros_like(self.diag)
        return Local(Marginals(zero, self.diag), self.no_sites(), zero, xp.ones_like(self.diag))

    def condition(self, sites: Sites, alpha: Array | None = None) -> "DensePosterior":
        """Return the posterior given the sites, and its α where that is known already."""
        return DensePosterior(self, sites, alpha)

    def inverse_plus(self, noise: Array) -> tuple[Array, Array]:
        """Return (K + diag(noise))⁻¹ and half the log determinant of K + diag(noise).

        The last answer is remembered: the same one serves the equations, their evidence and its
        gradient.
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
        The weights α = ν − τ μ, where they are known already.
    """

    def __init__(self, prior: DensePrior, sites: Sites, alpha: Array | None = None) -> None:
        self.prior = prior
        self.sites = sites
        self._s = namespace(sites.tau).sqrt(sites.tau)
        self._alpha_given = alpha is not None
        if alpha is not None:
            self.alpha = alpha

    @cached_property
    def factor(self) -> Factor:
        """chol(B)."""
        return self.prior.factor(self._s)

    def forget_factor(self) -> None:
        """Give the factor's memory back; it is made anew if it is needed again."""
        self.half_log_det  # noqa: B018  (kept, as everything else that came from it)
        self.__dict__.pop("factor", None)

    @cached_property
    def half_log_det(self) -> Array:
        """Σ log L_ii = ½ log det(I + K T)."""
        return self.factor.half_log_det

    @cached_property
    def alpha(self) -> Array:
        """Return α = ν − S B⁻¹ S K ν = S B⁻¹ S⁻¹ ν, each entry of ν in the form that is safe.

        The first form cancels where a site dominates (τ K large), the second divides by zero
        where a site is empty; both are linear in ν.
        """
        xp = namespace(self._s)
        strong, nu = self._strong, self.sites.nu
        weak_nu = xp.where(strong, 0.0, nu)
        strong_nu = xp.where(strong, nu / xp.where(strong, self._s, 1.0), 0.0)
        rhs = strong_nu - self._s * self.prior.product(weak_nu)
        return weak_nu + self._s * self.factor.solve(rhs)

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
        return self.sites.tau * self.prior.diag > 1.0

    @cached_property
    def local(self) -> Local:
        """Marginals with all that is needed to take a site out of them."""
        rest = self.factor.inverse_diagonal  # 1 − τ Σ_ii
        return Local(Marginals(self.mean, self._variance(rest)), self.sites, self.alpha, rest)

    def _variance(self, rest: Array) -> Array:
        """Return Σ_ii = (1 − [B⁻¹]_ii)/τ_i, and K_ii − ‖L⁻¹ S k_i‖² where that cancels."""
        xp = namespace(rest)
        tau = self.sites.tau
        variance = (1.0 - rest) / xp.where(self.cancels, 1.0, tau)
        weak = xp.nonzero(self.cancels)[0]
        if weak.shape[0]:
            k = self.prior.columns(weak)
            direct = xp.take(self.prior.diag, weak) - self._explained(k)
            variance = put(variance, weak, direct)
        # A site can only sharpen: a variance of zero or less is rounding of a tiny one.
        floor = self.prior.diag * float(xp.finfo(rest.dtype).eps) ** 2
        return xp.maximum(variance, floor)

    def _explained(self, V: Array) -> Array:
        """Return ‖L⁻¹ S v‖² for each column v: the prior variance that the sites explain."""
        return self.factor.quadratic(self._s[:, None] * V)

    def predict(self, K_star: Array, prior_variance: Array) -> Marginals:
        """Posterior mean and variance at new inputs.

        Parameters
        ----------
        K_star : array of shape (m, n)
            Prior covariances of the new latent values with the training ones.
        prior_variance : array of shape (m,)
        """
        xp = namespace(K_star)
        variance = prior_variance - self._explained(K_star.T)
        info = xp.finfo(variance.dtype)
        floor = clip(prior_variance * float(info.eps), low=float(info.smallest_normal))
        return Marginals(matmul(K_star, self.alpha), xp.maximum(variance, floor))

    def predict_covariance(self, K_star: Array, K_star_star: Array) -> Array:
        """Posterior covariance among new inputs."""
        half = self.factor.half_solve(self._s[:, None] * K_star.T)
        return K_star_star - matmul(half.T, half)

    def covariance(self) -> Array:
        """Posterior covariance Σ of the training latent values."""
        return self.predict_covariance(self.prior.K, self.prior.K)

    def cross_covariance(self, K_star: Array) -> Array:
        """Posterior covariances of the training latent values with new ones, of shape (n, m)."""
        scaled = self._s[:, None] * K_star.T
        return K_star.T - matmul(self.prior.K, self._s[:, None] * self.factor.solve(scaled))

    def respond(self, nu: Array) -> Array:
        """Return Σ ν: the posterior means that other sources ν would give."""
        other = DensePosterior(self.prior, Sites(self.sites.tau, nu))
        other.factor = self.factor
        return other.mean

    def others_squares(self) -> "OthersSquares":
        """Return the squared covariances between each example and all others."""
        return OthersSquares(self)

    @cached_property
    def cancels(self) -> Array:
        """Whether a site says so little that 1 − [B⁻¹]_ii has too few digits."""
        return self.sites.tau * self.prior.diag < _CANCELS

    def precision_weight(self) -> Array:
        """Return R = S B⁻¹ S = (K + diag(1/τ))⁻¹, a new matrix."""
        return scale_both(self.factor.B_inverse(), self._s, self._s)

    def grad_K(self) -> Array:
        """Return M = ½(ααᵀ − R): the slope in K of an evidence that is stationary in the sites."""
        M = scale_both(self.factor.B_inverse(), -0.5 * self._s, self._s)
        return add_outer(M, 0.5, self.alpha)


class OthersSquares:
    """Σ_ij² off the diagonal, for products.

    Σ_ij = −[B⁻¹]_ij/(s_i s_j), except where a site is next to nothing.

    Parameters
    ----------
    posterior : DensePosterior
    """

    def __init__(self, posterior: DensePosterior) -> None:
        xp = namespace(posterior.sites.tau)
        self._posterior = posterior
        self._u = xp.where(posterior.cancels, 1.0, posterior.sites.tau)
        squares = posterior.factor.B_inverse(whole=False)
        squares *= squares
        self._B = add_to_diagonal(squares, -xp.linalg.diagonal(squares))

    def __del__(self) -> None:
        if "_B" in self.__dict__:
            self._posterior.prior.scratch.give(self._B)

    def product(self, w: Array) -> Array:
        """Return Σ_{j≠i} Σ_ij² w_j for each i."""
        xp = namespace(w)
        cancels = self._posterior.cancels
        total = symmetric_product(self._B, xp.where(cancels, 0.0, w / self._u)) / self._u
        weak = xp.nonzero(cancels)[0]
        return self._with_weak(total, weak, w) if weak.shape[0] else total

    def _with_weak(self, total: Array, weak: Array, w: Array) -> Array:
        """Add what sites that say nothing give to the others, and put in what they get."""
        xp = namespace(w)
        q = self._posterior
        squares = q.cross_covariance(xp.take(q.prior.K, weak, axis=0)) ** 2
        own = xp.take(q.local.q.variance, weak) ** 2 * xp.take(w, weak)
        total = total + squares @ xp.take(w, weak)
        return put(total, weak, squares.T @ w - own)
