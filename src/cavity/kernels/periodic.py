"""The periodic kernel exp(−2 sin²(π r/p)/ℓ²)."""

from dataclasses import dataclass
from math import pi

import numpy as np
from sklearn.gaussian_process.kernels import ExpSineSquared

from cavity.arrays import Array, namespace
from cavity.kernels.base import StationaryRule, register
from cavity.kernels.distances import elementwise, tiles, weighted_sums

__all__ = ["ExpSineSquaredRule"]


@register(ExpSineSquared)
@dataclass(frozen=True)
class ExpSineSquaredRule(StationaryRule):
    """Periodic kernel with one length scale and one period."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return K(X, Z), or K(X, X) if Z is None."""
        return elementwise(self._value, X, Z, exact=True)

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Contract the weights with the derivatives in log ℓ and log p."""
        free = [not h.fixed for h in self.kernel.hyperparameters]
        if not any(free):
            return np.empty(0)
        return weighted_sums(G, Z is None, tiles(self._slopes, X, Z, exact=True))[free]

    @property
    def _length(self) -> float:
        # Its square has to stay within range; far above this the kernel has long vanished.
        return max(float(self.kernel.length_scale), 1e-100)

    def _angle(self, D: Array) -> Array:
        # Rounding of the angle counts in full for many periods: no scaling, exact distances, and
        # scikit-learn's order of operations.
        return pi * namespace(D).sqrt(D) / self.kernel.periodicity

    def _value(self, D: Array) -> Array:
        xp = namespace(D)
        s = xp.sin(self._angle(D)) / self._length
        return xp.exp(-2.0 * s * s)

    def _slopes(self, D: Array) -> list[Array]:
        xp, angle = namespace(D), self._angle(D)
        s = xp.sin(angle) / self._length
        slope = 4.0 * s * xp.exp(-2.0 * s * s)
        return [s * slope, xp.cos(angle) / self._length * slope * angle]
