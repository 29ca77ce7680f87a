"""What inference needs from a prior over the latent values and from its posterior."""

from collections.abc import Callable
from typing import Any, Protocol

from cavity.arrays import Array
from cavity.sites import Local, Marginals, Rows, Sites, Slope


class KernelRule(Protocol):
    """A covariance function at fixed hyperparameters, as priors and the evidence see it."""

    @property
    def theta(self) -> Array:
        """Logarithms of the free hyperparameters."""

    @property
    def bounds(self) -> Array:
        """Bounds of ``theta``, of shape (p, 2)."""

    @property
    def names(self) -> Any:
        """A readable name for each entry of ``theta``."""

    def with_theta(self, theta: Array) -> "KernelRule":
        """Return the same covariance function at other hyperparameters."""

    def matrix(self, X: Any, Z: Any = None) -> Array:
        """Return k(X, Z) without noise, or k(X, X) with it if Z is None."""

    def diag(self, X: Any) -> Array:
        """Return k(x, x), noise included."""

    def noise(self, X: Any) -> Array:
        """Return the part of ``diag(X)`` that is independent noise."""

    def vjp(self, X: Any, Z: Any, G: Array, K: Array | None = None) -> Array:
        """Return Σ_ij G_ij ∂k(x_i, z_j)/∂theta."""

    def vjp_diag(self, X: Any, g: Array) -> Array:
        """Return Σ_i g_i ∂k(x_i, x_i)/∂theta."""

    def vjp_noise(self, X: Any, g: Array) -> Array:
        """Return Σ_i g_i ∂noise(x_i)/∂theta."""

    def vjp_inputs(self, X: Any, Z: Any, G: Array) -> Array:
        """Return Σ_j G_ij ∂k(x_i, z_j)/∂x_i for each i."""

    def vjp_diag_inputs(self, X: Any, g: Array) -> Array:
        """Return g_i ∂k(x_i, x_i)/∂x_i for each i."""


class Prior(Protocol):
    """How the latent values of the rows depend on each other, at fixed hyperparameters."""

    @property
    def dense(self) -> bool:
        """Whether K is a matrix and all rows are one block."""

    def features(self, rows: Rows) -> Any:
        """Return the rows as the prior sees them; computed once per visit."""

    def sums(self, seen: Any, sites: Sites) -> Any:
        """Return what a block of rows adds to the posterior."""

    def condition(self, sums: Any = None) -> "Posterior":
        """Return the posterior; of nothing, the prior itself."""


class Posterior(Protocol):
    """A Gaussian posterior from which any row can find its own marginal."""

    @property
    def prior(self) -> Any:
        """The prior that it came from."""

    @property
    def half_log_det(self) -> Any:
        """½ log det(I + K T)."""

    def local(self, seen: Any, sites: Sites | None) -> Local:
        """Return what the posterior says about each row of a block."""

    def left_out(self, seen: Any, sites: Sites | None, weight: Array) -> Any:
        """Return each row's latent values given all others; of w copies, one is left out."""

    def under(self, sums: Any) -> "Posterior":
        """Return the posterior with the same precisions and other sources ν."""

    def at(self, X: Any, variance: Array | None = None) -> Marginals:
        """Return mean and variance at new inputs, whose prior variances may be given."""

    def contract(
        self, seen: Any, sites: Sites | None, slope: Slope, other: "Posterior | None"
    ) -> Any:
        """Return a block's share of the gradient; ``other`` is the one under the slope's source."""

    def gradient(self, shares: Any) -> Array:
        """Return d log Z/d theta from the sum of the shares."""


class ClassFactor(Protocol):
    """The posterior covariance of several classes' latent values, factored in one way or another.

    Sites are on differences of class values; the copies of an example are merged.
    """

    @property
    def half_log_det(self) -> Any:
        """½ log det(I + G T) of all differences of all copies."""

    def alpha(self, nu: Array) -> Array:
        """Return α of the differences under these sources."""

    def variance(self) -> tuple[Array, Array]:
        """Return the variance of each difference of one copy, and one minus τ times it."""

    def differences(self) -> Array:
        """Return the covariances (n, C − 1, C − 1) of f_y − f_j, j ≠ y, of each example."""

    def explained(self, K_star: Array) -> Array:
        """Return by how much the sites reduce the covariances (m, C, C) at new inputs."""

    def pulled(self, scale: float) -> Array:
        """Return this multiple of the slope of log det(I + G T) in K, a new matrix (n, n)."""

    def covariance(self) -> Array:
        """Return the covariance of all differences."""


PRIORS: dict[str, Callable[[KernelRule, Any], Any]] = {}
"""Every prior by its name: how it is made from a kernel rule and the inputs of a table."""


class RowsPosterior(Protocol):
    """A posterior together with its rows."""

    @property
    def alpha(self) -> Array:
        """Weights α = ν − τ μ."""

    def local(self) -> Local:
        """Return what the posterior says about each row."""

    def solve(self, v: Array) -> Array:
        """Return B⁻¹ v, B = I + S K S."""


class Coupling(Protocol):
    """All latent values at once: what Newton's method for the means needs from a prior."""

    @property
    def diag(self) -> Array:
        """Prior variances."""

    @property
    def factors_cheaply(self) -> bool:
        """Whether a factorisation costs no more than about ten products with K."""

    def product(self, a: Array) -> Array:
        """Return K a."""

    def condition(self, sites: Sites) -> RowsPosterior:
        """Return the posterior given the sites."""
