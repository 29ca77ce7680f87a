"""Kernels that do not depend on their inputs: a constant, and white noise."""

from dataclasses import dataclass

from array_api_compat import device
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel

from cavity.arrays import Array, add_to_diagonal, namespace
from cavity.kernels.base import Rule, count, entry, float_like, register

__all__ = ["ConstantRule", "WhiteRule"]


def _full(X: Array, value: float, *columns: int) -> Array:
    like = float_like(X)
    shape = (count(X), *columns)
    return namespace(like).full(shape, value, dtype=like.dtype, device=device(like))


@register(ConstantKernel)
@dataclass(frozen=True)
class ConstantRule(Rule):
    """The same covariance for all pairs."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return a constant matrix."""
        return _full(X, self._value, count(X if Z is None else Z))

    def diag(self, X: Array) -> Array:
        """Return a constant vector."""
        return _full(X, self._value)

    def noise(self, X: Array) -> Array:
        """Return zeros."""
        return _full(X, 0.0)

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Contract the weights with the derivative in the log of the constant."""
        return self.vjp_diag(X, G)

    def vjp_diag(self, X: Array, g: Array) -> Array:
        """Contract the weights with the derivative in the log of the constant."""
        value = self._value * float(namespace(g).sum(g))
        return entry(self.kernel.hyperparameter_constant_value, value)

    @property
    def _value(self) -> float:
        return float(self.kernel.constant_value)


@register(WhiteKernel)
@dataclass(frozen=True)
class WhiteRule(Rule):
    """Independent noise: on the diagonal of the training matrix, and nowhere else."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return the noise level on the diagonal if Z is None, else zeros."""
        K = _full(X, 0.0, count(X if Z is None else Z))
        return add_to_diagonal(K, self._level) if Z is None else K

    def diag(self, X: Array) -> Array:
        """Return the noise level for each input."""
        return _full(X, self._level)

    def noise(self, X: Array) -> Array:
        """Return the noise level for each input."""
        return _full(X, self._level)

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Contract the weights with the derivative in the log of the noise level."""
        g = namespace(G).linalg.diagonal(G)
        return self.vjp_diag(X, g if Z is None else 0.0 * g)

    def vjp_diag(self, X: Array, g: Array) -> Array:
        """Contract the weights with the derivative in the log of the noise level."""
        value = self._level * float(namespace(g).sum(g))
        return entry(self.kernel.hyperparameter_noise_level, value)

    @property
    def _level(self) -> float:
        return float(self.kernel.noise_level)
