"""Kernels that do not look at their inputs: a constant, and white noise."""

from dataclasses import dataclass

import numpy as np
from array_api_compat import device
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel

from cavity.arrays import Array, add_to_diagonal, namespace
from cavity.kernels.base import Rule, count, float_like, register

__all__ = ["ConstantRule", "WhiteRule"]


def _full(shape: tuple[int, ...], value: float, X: Array) -> Array:
    like = float_like(X)
    return namespace(like).full(shape, value, dtype=like.dtype, device=device(like))


def _shape(X: Array, Z: Array | None) -> tuple[int, int]:
    return count(X), count(X if Z is None else Z)


@register(ConstantKernel)
@dataclass(frozen=True)
class ConstantRule(Rule):
    """The same covariance for all pairs."""

    @property
    def uniform(self) -> float:
        """The constant."""
        return float(self.kernel.constant_value)

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return a constant matrix."""
        return _full(_shape(X, Z), self.uniform, X)

    def diag(self, X: Array) -> Array:
        """Return a constant vector."""
        return _full((count(X),), self.uniform, X)

    def vjp(self, X: Array, G: Array, K: Array | None = None) -> Array:
        """Contract the weights with the derivative in the log of the constant."""
        if self.kernel.hyperparameter_constant_value.fixed:
            return np.empty(0)
        return np.asarray([self.uniform * float(namespace(G).sum(G))])

    def noisy(self, X: Array) -> bool:
        """Tell that there is no noise."""
        return False

    def add(self, K: Array, X: Array, Z: Array | None = None) -> Array:
        """Return K plus the constant; consumes K."""
        K += self.uniform
        return K

    def multiply(self, K: Array, X: Array, Z: Array | None = None) -> Array:
        """Return K times the constant; consumes K."""
        K *= self.uniform
        return K


@register(WhiteKernel)
@dataclass(frozen=True)
class WhiteRule(Rule):
    """Independent noise: on the diagonal of the training matrix, and nowhere else."""

    @property
    def diagonal(self) -> bool:
        """Whether K vanishes off the diagonal: it does."""
        return True

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return the noise level on the diagonal if Z is None, else zeros."""
        return self.add(_full(_shape(X, Z), 0.0, X), X, Z)

    def diag(self, X: Array) -> Array:
        """Return the noise level for each input."""
        return _full((count(X),), self._level, X)

    def vjp(self, X: Array, G: Array, K: Array | None = None) -> Array:
        """Contract the weights with the derivative in the log of the noise level."""
        if self.kernel.hyperparameter_noise_level.fixed:
            return np.empty(0)
        xp = namespace(G)
        return np.asarray([self._level * float(xp.sum(xp.linalg.diagonal(G)))])

    def noisy(self, X: Array) -> bool:
        """Tell whether the noise level is positive."""
        return self._level > 0.0

    def add(self, K: Array, X: Array, Z: Array | None = None) -> Array:
        """Return K with the noise level added on the diagonal if Z is None; consumes K."""
        return add_to_diagonal(K, self._level) if Z is None else K

    @property
    def _level(self) -> float:
        return float(self.kernel.noise_level)
