"""The rational quadratic kernel (1 + r²/(2α ℓ²))^−α."""

from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import RationalQuadratic

from cavity.arrays import Array, namespace
from cavity.kernels.base import Rule, register
from cavity.kernels.distances import exp, pair_distances, scale, square, weigh

__all__ = ["RationalQuadraticRule"]


@register(RationalQuadratic)
@dataclass(frozen=True)
class RationalQuadraticRule(Rule):
    """Rational quadratic kernel with one length scale."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return K(X, Z), or K(X, X) if Z is None."""
        K = self._value(namespace(X).log1p(self._ratio(X, Z)))
        return square(K, 1.0) if Z is None else K

    def diag(self, X: Array) -> Array:
        """Return ones."""
        return namespace(X).ones_like(X[:, 0])

    def vjp(self, X: Array, G: Array, K: Array | None = None) -> Array:
        """Contract the weights with the derivatives in log α and log ℓ."""
        free = [not h.fixed for h in self.kernel.hyperparameters]
        if not any(free):
            return np.empty(0)
        xp = namespace(X)
        q = self._ratio(X, None)
        log_base = xp.log1p(q)
        q /= 1.0 + q
        value = self._value(log_base)
        for_alpha = weigh(G, self.kernel.alpha * (q - log_base) * value)
        for_length = weigh(G, 2.0 * self.kernel.alpha * q * value)
        return np.asarray([for_alpha, for_length])[free]

    def noisy(self, X: Array) -> bool:
        """Tell that there is no noise."""
        return False

    def _ratio(self, X: Array, Z: Array | None) -> Array:
        """Return r²/(2α) of the scaled inputs."""
        U, *V = scale(self.kernel.length_scale, X, *([] if Z is None else [Z]))
        q = pair_distances(U, *V)
        q /= 2.0 * self.kernel.alpha
        return q

    def _value(self, log_base: Array) -> Array:
        return exp(log_base * -float(self.kernel.alpha))
