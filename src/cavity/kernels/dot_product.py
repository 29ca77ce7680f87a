"""The kernel of Bayesian linear regression, σ₀² + x·x′."""

from dataclasses import dataclass

from sklearn.gaussian_process.kernels import DotProduct

from cavity.arrays import Array, matmul, namespace
from cavity.kernels.base import Rule, entry, register

__all__ = ["DotProductRule"]


@register(DotProduct)
@dataclass(frozen=True)
class DotProductRule(Rule):
    """Inner product of the inputs plus a constant."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return K(X, Z), or K(X, X) if Z is None."""
        K = matmul(X, (X if Z is None else Z).T)
        K += self._offset
        return K

    def diag(self, X: Array) -> Array:
        """Return σ₀² + |x|²."""
        return namespace(X).sum(X * X, axis=1) + self._offset

    def noise(self, X: Array) -> Array:
        """Return zeros."""
        return namespace(X).zeros_like(X[:, 0])

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Contract the weights with the derivative in log σ₀."""
        return self.vjp_diag(X, G)

    def vjp_diag(self, X: Array, g: Array) -> Array:
        """Contract the weights with the derivative in log σ₀."""
        value = 2.0 * self._offset * float(namespace(g).sum(g))
        return entry(self.kernel.hyperparameter_sigma_0, value)

    @property
    def _offset(self) -> float:
        return float(self.kernel.sigma_0) ** 2
