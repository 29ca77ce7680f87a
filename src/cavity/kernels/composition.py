"""Kernels made of kernels: sums, products and powers, each a few lines of the chain rule."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Exponentiation, Product, Sum

from cavity.arrays import Array, clip, namespace
from cavity.kernels.base import Rule, register, rule
from cavity.kernels.scaled import ScaledRule, parts

__all__ = ["ExponentiationRule", "ProductRule", "SumRule", "pair_rule"]


@register(Sum, Product)
def pair_rule(kernel: Any) -> Rule:
    """Return the rule of a sum or product, a faster one for c·base + white."""
    if parts(kernel)["base"] is not kernel:
        return ScaledRule(kernel)
    return SumRule(kernel) if type(kernel) is Sum else ProductRule(kernel)


@dataclass(frozen=True)
class _PairRule(Rule):
    """A kernel made of two, ``k1`` and ``k2``."""

    @property
    def k1(self) -> Rule:
        """The rule of the first kernel."""
        return rule(self.kernel.k1)

    @property
    def k2(self) -> Rule:
        """The rule of the second kernel."""
        return rule(self.kernel.k2)


@dataclass(frozen=True)
class SumRule(_PairRule):
    """The sum of two kernels."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return K₁ + K₂."""
        K = self.k1.matrix(X, Z)
        K += self.k2.matrix(X, Z)
        return K

    def diag(self, X: Array) -> Array:
        """Return the sum of the diagonals."""
        return self.k1.diag(X) + self.k2.diag(X)

    def noise(self, X: Array) -> Array:
        """Return the sum of the noises."""
        return self.k1.noise(X) + self.k2.noise(X)

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Hand the weights to both kernels."""
        return np.append(self.k1.vjp(X, Z, G), self.k2.vjp(X, Z, G))

    def vjp_diag(self, X: Array, g: Array) -> Array:
        """Hand the weights to both kernels."""
        return np.append(self.k1.vjp_diag(X, g), self.k2.vjp_diag(X, g))


@dataclass(frozen=True)
class ProductRule(_PairRule):
    """The elementwise product of two kernels."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return K₁ ∘ K₂."""
        K = self.k1.matrix(X, Z)
        K *= self.k2.matrix(X, Z)
        return K

    def diag(self, X: Array) -> Array:
        """Return the product of the diagonals."""
        return self.k1.diag(X) * self.k2.diag(X)

    def noise(self, X: Array) -> Array:
        """Return what the product of the noiseless diagonals lacks."""
        n1, n2 = self.k1.noise(X), self.k2.noise(X)
        return n1 * self.k2.diag(X) + (self.k1.diag(X) - n1) * n2

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Hand each kernel the weights times the other's matrix."""
        K1, K2 = self.k1.matrix(X, Z), self.k2.matrix(X, Z)
        return np.append(self.k1.vjp(X, Z, G * K2, K1), self.k2.vjp(X, Z, G * K1, K2))

    def vjp_diag(self, X: Array, g: Array) -> Array:
        """Hand each kernel the weights times the other's diagonal."""
        d1, d2 = self.k1.diag(X), self.k2.diag(X)
        return np.append(self.k1.vjp_diag(X, g * d2), self.k2.vjp_diag(X, g * d1))


@register(Exponentiation)
@dataclass(frozen=True)
class ExponentiationRule(Rule):
    """A kernel raised elementwise to a power."""

    @property
    def base(self) -> Rule:
        """The rule of the kernel that is raised."""
        return rule(self.kernel.kernel)

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return K^e."""
        K = self.base.matrix(X, Z)
        K **= self._exponent
        return K

    def diag(self, X: Array) -> Array:
        """Return the powers of the diagonal."""
        return self.base.diag(X) ** self._exponent

    def noise(self, X: Array) -> Array:
        """Return what the powers of the noiseless diagonal lack."""
        d = self.base.diag(X)
        return d**self._exponent - clip(d - self.base.noise(X), low=0.0) ** self._exponent

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Hand the weights times e K^(e−1) to the kernel that is raised."""
        if not len(self.theta):
            return np.empty(0)
        K = self.base.matrix(X, Z)
        return self.base.vjp(X, Z, G * self._slope(K), K)

    def vjp_diag(self, X: Array, g: Array) -> Array:
        """Hand the weights times e k^(e−1) to the kernel that is raised."""
        return self.base.vjp_diag(X, g * self._slope(self.base.diag(X)))

    @property
    def _exponent(self) -> float:
        return float(self.kernel.exponent)

    def _slope(self, K: Array) -> Array:
        e, xp = self._exponent, namespace(K)
        if e >= 1.0:
            return e * K ** (e - 1.0)
        # A root's infinite slope at 0 would meet the vanished derivative of a far pair.
        zero = K == 0.0
        safe = xp.where(zero, xp.ones_like(K), K)
        return xp.where(zero, xp.zeros_like(K), e * safe ** (e - 1.0))
