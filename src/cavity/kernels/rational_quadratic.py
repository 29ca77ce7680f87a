"""The rational quadratic kernel (1 + r²/(2α ℓ²))^−α."""

from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import RationalQuadratic

from cavity.arrays import Array, namespace
from cavity.kernels.base import StationaryRule, register
from cavity.kernels.distances import elementwise, scale, tiles, weighted_sums

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

    def _log_base(self, D: Array) -> tuple[Array, Array]:
        q = D / (2.0 * self.kernel.alpha)
        return q, namespace(D).log1p(q)

    def _value(self, D: Array) -> Array:
        return namespace(D).exp(-self.kernel.alpha * self._log_base(D)[1])

    def _slopes(self, D: Array) -> list[Array]:
        q, log_base = self._log_base(D)
        value, share = namespace(D).exp(-self.kernel.alpha * log_base), q / (1.0 + q)
        return [(share - log_base) * value, 2.0 * share * value]
