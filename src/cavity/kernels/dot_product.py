"""The kernel of Bayesian linear regression, σ₀² + x·x′."""

from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import DotProduct

from cavity.arrays import Array, matmul, namespace
from cavity.kernels.base import Rule, register

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

    def vjp(self, X: Array, G: Array, K: Array | None = None) -> Array:
        """Contract the weights with the derivative in log σ₀."""
        if self.kernel.hyperparameter_sigma_0.fixed:
            return np.empty(0)
        return np.asarray([2.0 * self._offset * float(namespace(G).sum(G))])

    def noisy(self, X: Array) -> bool:
        """Tell that there is no noise."""
        return False

    @property
    def _offset(self) -> float:
        return float(self.kernel.sigma_0) ** 2
