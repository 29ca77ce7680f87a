"""The periodic kernel exp(−2 sin²(π r/p)/ℓ²)."""

from dataclasses import dataclass
from math import pi

import numpy as np
from sklearn.gaussian_process.kernels import ExpSineSquared

from cavity.arrays import Array, namespace
from cavity.kernels.base import Rule, register
from cavity.kernels.distances import exp, pair_distances, square, weigh

__all__ = ["ExpSineSquaredRule"]


@register(ExpSineSquared)
@dataclass(frozen=True)
class ExpSineSquaredRule(Rule):
    """Periodic kernel with one length scale and one period."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return K(X, Z), or K(X, X) if Z is None."""
        s = namespace(X).sin(self._angle(X, Z))
        K = self._value(s / self._length)
        return square(K, 1.0) if Z is None else K

    def diag(self, X: Array) -> Array:
        """Return ones."""
        return namespace(X).ones_like(X[:, 0])

    def vjp(self, X: Array, G: Array, K: Array | None = None) -> Array:
        """Contract the weights with the derivatives in log ℓ and log p."""
        free = [not h.fixed for h in self.kernel.hyperparameters]
        if not any(free):
            return np.empty(0)
        xp = namespace(X)
        angle = self._angle(X, None)
        s = xp.sin(angle) / self._length
        slope = 4.0 * s * self._value(s)
        for_length = weigh(G, s * slope)
        slope *= xp.cos(angle) / self._length
        return np.asarray([for_length, weigh(G, slope * angle)])[free]

    def noisy(self, X: Array) -> bool:
        """Tell that there is no noise."""
        return False

    @property
    def _length(self) -> float:
        # Its square has to stay within range; far above this the kernel has long vanished.
        return max(float(self.kernel.length_scale), 1e-100)

    def _angle(self, X: Array, Z: Array | None) -> Array:
        # Rounding of the angle counts in full for many periods: no scaling, exact distances, and
        # scikit-learn's order of operations.
        return pi * namespace(X).sqrt(pair_distances(X, Z, exact=True)) / self.kernel.periodicity

    def _value(self, s: Array) -> Array:
        exponent = s * s
        exponent *= -2.0
        return exp(exponent)
