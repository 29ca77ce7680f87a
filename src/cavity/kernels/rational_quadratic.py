"""The rational quadratic kernel (1 + r²/(2α ℓ²))^−α."""

from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import RationalQuadratic

from cavity.arrays import Array, namespace
from cavity.kernels.base import StationaryRule, register
from cavity.kernels.distances import elementwise, exp, scale, tiles, weighted_sums

__all__ = ["RationalQuadraticRule"]


@register(RationalQuadratic)
@dataclass(frozen=True)
class RationalQuadraticRule(StationaryRule):
    """Rational quadratic kernel with one length scale."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return K(X, Z), or K(X, X) if Z is None."""
        return elementwise(self._value, *scale(self.kernel.length_scale, X, Z))

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Contract the weights with the derivatives in log α and log ℓ."""
        free = [not h.fixed for h in self.kernel.hyperparameters]
        if not any(free):
            return np.empty(0)
        slopes = tiles(self._slopes, *scale(self.kernel.length_scale, X, Z))
        return self.kernel.alpha * weighted_sums(G, Z is None, slopes)[free]

    def _value(self, D: Array) -> Array:
        log_base = namespace(D).log1p(self._ratio(D))
        log_base *= -float(self.kernel.alpha)
        return exp(log_base)

    def _slopes(self, D: Array) -> tuple[Array, Array]:
        q = self._ratio(D)
        log_base = namespace(q).log1p(q)
        value = exp(log_base * -float(self.kernel.alpha))
        q /= 1.0 + q
        for_alpha = q - log_base
        for_alpha *= value
        value *= 2.0 * q
        return for_alpha, value

    def _ratio(self, D: Array) -> Array:
        D /= 2.0 * self.kernel.alpha
        return D
