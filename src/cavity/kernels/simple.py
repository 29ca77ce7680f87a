"""Kernels that need no distances: a constant, white noise and the inner product."""

from dataclasses import dataclass

from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, WhiteKernel

from cavity.arrays import Array, add_to_diagonal, matmul, namespace
from cavity.kernels.base import Rule, count, entry, flat, full, register


class _FlatRule(Rule):
    """A rule that does not look at the inputs."""

    def vjp_inputs(self, X: Array, Z: Array, G: Array) -> Array:
        """Return zeros."""
        return flat(X)

    def vjp_diag_inputs(self, X: Array, g: Array) -> Array:
        """Return zeros."""
        return flat(X)


@register(ConstantKernel)
@dataclass(frozen=True)
class ConstantRule(_FlatRule):
    """The same covariance for all pairs."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return a constant matrix."""
        return full(X, self.kernel.constant_value, count(X if Z is None else Z))

    def diag(self, X: Array) -> Array:
        """Return a constant vector."""
        return full(X, self.kernel.constant_value)

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Contract the weights with the derivative in the log of the constant."""
        return self.vjp_diag(X, G)

    def vjp_diag(self, X: Array, g: Array) -> Array:
        """Contract the weights with the derivative in the log of the constant."""
        value = self.kernel.constant_value * float(namespace(g).sum(g))
        return entry(self.kernel.hyperparameter_constant_value, value)


@register(WhiteKernel)
@dataclass(frozen=True)
class WhiteRule(_FlatRule):
    """Independent noise: on the diagonal of the training matrix, and nowhere else."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return the noise level on the diagonal if Z is None, else zeros."""
        K = full(X, 0.0, count(X if Z is None else Z))
        return add_to_diagonal(K, self.kernel.noise_level) if Z is None else K

    def diag(self, X: Array) -> Array:
        """Return the noise level for each input."""
        return full(X, self.kernel.noise_level)

    def noise(self, X: Array) -> Array:
        """Return the noise level for each input."""
        return self.diag(X)

    def vjp_noise(self, X: Array, g: Array) -> Array:
        """Contract the weights with the derivative in the log of the noise level."""
        return self.vjp_diag(X, g)

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Contract the weights with the derivative in the log of the noise level."""
        g = namespace(G).linalg.diagonal(G)
        return self.vjp_diag(X, g if Z is None else 0.0 * g)

    def vjp_diag(self, X: Array, g: Array) -> Array:
        """Contract the weights with the derivative in the log of the noise level."""
        value = self.kernel.noise_level * float(namespace(g).sum(g))
        return entry(self.kernel.hyperparameter_noise_level, value)


@register(DotProduct)
@dataclass(frozen=True)
class DotProductRule(Rule):
    """σ₀² + x·x′, the kernel of Bayesian linear regression."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return K(X, Z), or K(X, X) if Z is None."""
        K = matmul(X, (X if Z is None else Z).T)
        K += self.kernel.sigma_0**2
        return K

    def diag(self, X: Array) -> Array:
        """Return σ₀² + |x|²."""
        return namespace(X).sum(X * X, axis=1) + self.kernel.sigma_0**2

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Contract the weights with the derivative in log σ₀."""
        return self.vjp_diag(X, G)

    def vjp_diag(self, X: Array, g: Array) -> Array:
        """Contract the weights with the derivative in log σ₀."""
        value = 2.0 * self.kernel.sigma_0**2 * float(namespace(g).sum(g))
        return entry(self.kernel.hyperparameter_sigma_0, value)

    def vjp_inputs(self, X: Array, Z: Array, G: Array) -> Array:
        """Return G Z."""
        return matmul(G, Z)

    def vjp_diag_inputs(self, X: Array, g: Array) -> Array:
        """Return 2 g_i x_i."""
        return 2.0 * g[:, None] * X
