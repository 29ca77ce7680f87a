"""The rational quadratic and the periodic kernel, functions of the distance with two parameters."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import ExpSineSquared, RationalQuadratic

from cavity.arrays import Array, namespace
from cavity.kernels.base import StationaryRule, register
from cavity.kernels.distances import (
    Tile,
    elementwise,
    exp,
    pull,
    scale,
    tiles,
    weighted_sums,
)


@register(RationalQuadratic)
@dataclass(frozen=True)
class RationalQuadraticRule(StationaryRule):
    """(1 + r²/(2α ℓ²))^−α."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return K(X, Z), or K(X, X) if Z is None."""
        return elementwise(self._value, *scale(self.kernel.length_scale, X, Z))

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Contract the weights with the derivatives in log α and log ℓ."""
        slopes = tiles(self._slopes, *scale(self.kernel.length_scale, X, Z))
        return _contract(self.kernel, G, Z is None, slopes)

    def vjp_inputs(self, X: Array, Z: Array, G: Array) -> Array:
        """Contract the weights with ∂k/∂x = −(1 + r²/(2α ℓ²))^(−α−1) (x − z)/ℓ²."""
        return -pull(self.kernel.length_scale, X, Z, G, self._pull)

    def _pull(self, D: Array) -> Array:
        D /= 2.0 * self.kernel.alpha
        return exp(-(self.kernel.alpha + 1.0) * namespace(D).log1p(D))

    def _value(self, D: Array) -> Array:
        D /= 2.0 * self.kernel.alpha
        return exp(-self.kernel.alpha * namespace(D).log1p(D))

    def _slopes(self, D: Array) -> list[Array]:
        alpha = self.kernel.alpha
        D /= 2.0 * alpha
        log_base, share = namespace(D).log1p(D), D / (1.0 + D)
        value = alpha * exp(-alpha * log_base)
        share *= value
        return [share - log_base * value, 2.0 * share]


@register(ExpSineSquared)
@dataclass(frozen=True)
class ExpSineSquaredRule(StationaryRule):
    """exp(−2 sin²(π r/p)/ℓ²)."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return K(X, Z), or K(X, X) if Z is None."""
        return elementwise(self._value, X, Z, exact=True)

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Contract the weights with the derivatives in log ℓ and log p."""
        return _contract(self.kernel, G, Z is None, tiles(self._slopes, X, Z, exact=True))

    def vjp_inputs(self, X: Array, Z: Array, G: Array) -> Array:
        """Contract the weights with ∂k/∂x = −4 π sin a cos a/(p ℓ²) k (x − z)/r, a = π r/p."""
        return -pull(1.0, X, Z, G, self._pull, exact=True)

    def _pull(self, D: Array) -> Array:
        xp, rate = namespace(D), pi / self.kernel.periodicity
        angle, s = self._angle_and_sine(D)
        # At r = 0 the difference that this multiplies is zero.
        share = s / xp.where(angle == 0.0, xp.ones_like(angle), angle)
        return 4.0 * rate**2 * share * (xp.cos(angle) / self._length) * exp(-2.0 * s * s)

    def _value(self, D: Array) -> Array:
        _, s = self._angle_and_sine(D)
        return exp(-2.0 * s * s)

    def _slopes(self, D: Array) -> list[Array]:
        angle, s = self._angle_and_sine(D)
        slope = 4.0 * s * exp(-2.0 * s * s)
        return [s * slope, namespace(D).cos(angle) / self._length * slope * angle]

    def _angle_and_sine(self, D: Array) -> tuple[Array, Array]:
        # Rounding of the angle counts in full for many periods: no scaling, exact distances, and
        # scikit-learn's order of operations.
        angle = pi * namespace(D).sqrt(D) / self.kernel.periodicity
        return angle, namespace(D).sin(angle) / self._length

    @property
    def _length(self) -> float:
        # Its square has to stay within range; far above this the kernel has long vanished.
        return max(float(self.kernel.length_scale), 1e-100)


def _contract(kernel: Any, G: Array, symmetric: bool, slopes: Iterable[Tile]) -> Array:
    """Contract the weights with the slopes in those of the kernel's parameters that are free."""
    free = [not h.fixed for h in kernel.hyperparameters]
    return weighted_sums(G, symmetric, slopes)[free] if any(free) else np.empty(0)
