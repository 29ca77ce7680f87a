"""Kernels made of kernels: sums, products and powers, each a few lines of the chain rule."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Exponentiation, Product, Sum

from cavity.arrays import Array, clip, namespace
from cavity.kernels.base import Rule, register, rule
from cavity.kernels.scaled import ScaledRule, parts


@register(Sum, Product)
def pair_rule(kernel: Any) -> Rule:
    """Return the rule of a sum or product, a faster one for c·base + white."""
    if parts(kernel)["base"] is not kernel:
        return ScaledRule(kernel)
    return SumRule(kernel) if type(kernel) is Sum else ProductRule(kernel)


@dataclass(frozen=True)
class SumRule(Rule):
    """The sum of two kernels."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return K₁ + K₂."""
        a, b = _pair(self.kernel)
        K = a.matrix(X, Z)
        K += b.matrix(X, Z)
        return K

    def diag(self, X: Array) -> Array:
        """Return the sum of the diagonals."""
        a, b = _pair(self.kernel)
        return a.diag(X) + b.diag(X)

    def noise(self, X: Array) -> Array:
        """Return the sum of the noises."""
        a, b = _pair(self.kernel)
        return a.noise(X) + b.noise(X)

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Pass the weights to both kernels."""
        return np.concatenate([part.vjp(X, Z, G) for part in _pair(self.kernel)])

    def vjp_diag(self, X: Array, g: Array) -> Array:
        """Pass the weights to both kernels."""
        return np.concatenate([part.vjp_diag(X, g) for part in _pair(self.kernel)])

    def vjp_noise(self, X: Array, g: Array) -> Array:
        """Pass the weights to both kernels."""
        return np.concatenate([part.vjp_noise(X, g) for part in _pair(self.kernel)])

    def vjp_inputs(self, X: Array, Z: Array, G: Array) -> Array:
        """Pass the weights to both kernels."""
        a, b = _pair(self.kernel)
        return a.vjp_inputs(X, Z, G) + b.vjp_inputs(X, Z, G)

    def vjp_diag_inputs(self, X: Array, g: Array) -> Array:
        """Pass the weights to both kernels."""
        a, b = _pair(self.kernel)
        return a.vjp_diag_inputs(X, g) + b.vjp_diag_inputs(X, g)


@dataclass(frozen=True)
class ProductRule(Rule):
    """The elementwise product of two kernels."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return K₁ ∘ K₂."""
        a, b = _pair(self.kernel)
        K = a.matrix(X, Z)
        K *= b.matrix(X, Z)
        return K

    def diag(self, X: Array) -> Array:
        """Return the product of the diagonals."""
        a, b = _pair(self.kernel)
        return a.diag(X) * b.diag(X)

    def noise(self, X: Array) -> Array:
        """Return what is missing from the product of the noiseless diagonals."""
        a, b = _pair(self.kernel)
        noise = a.noise(X)
        return noise * b.diag(X) + (a.diag(X) - noise) * b.noise(X)

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Pass each kernel the weights times the other's matrix."""
        a, b = _pair(self.kernel)
        A, B = a.matrix(X, Z), b.matrix(X, Z)
        return np.append(a.vjp(X, Z, G * B, A), b.vjp(X, Z, G * A, B))

    def vjp_diag(self, X: Array, g: Array) -> Array:
        """Pass each kernel the weights times the other's diagonal."""
        a, b = _pair(self.kernel)
        return np.append(a.vjp_diag(X, g * b.diag(X)), b.vjp_diag(X, g * a.diag(X)))

    def vjp_noise(self, X: Array, g: Array) -> Array:
        """Pass on the weights of what `noise` multiplies."""
        a, b = _pair(self.kernel)
        u, v = a.noise(X), b.noise(X)
        of_a = a.vjp_noise(X, g * (b.diag(X) - v)) + a.vjp_diag(X, g * v)
        of_b = b.vjp_noise(X, g * (a.diag(X) - u)) + b.vjp_diag(X, g * u)
        return np.append(of_a, of_b)

    def vjp_inputs(self, X: Array, Z: Array, G: Array) -> Array:
        """Pass each kernel the weights times the other's matrix."""
        a, b = _pair(self.kernel)
        return a.vjp_inputs(X, Z, G * b.matrix(X, Z)) + b.vjp_inputs(X, Z, G * a.matrix(X, Z))

    def vjp_diag_inputs(self, X: Array, g: Array) -> Array:
        """Pass each kernel the weights times the other's diagonal."""
        a, b = _pair(self.kernel)
        return a.vjp_diag_inputs(X, g * b.diag(X)) + b.vjp_diag_inputs(X, g * a.diag(X))


def _pair(kernel: Any) -> tuple[Rule, Rule]:
    return rule(kernel.k1), rule(kernel.k2)


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
        """Return what is missing from the powers of the noiseless diagonal."""
        d = self.base.diag(X)
        return d**self._exponent - clip(d - self.base.noise(X), low=0.0) ** self._exponent

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Pass the weights times e K^(e−1) to the kernel that is raised."""
        if not len(self.theta):
            return np.empty(0)
        K = self.base.matrix(X, Z)
        return self.base.vjp(X, Z, G * self._slope(K), K)

    def vjp_diag(self, X: Array, g: Array) -> Array:
        """Pass the weights times e k^(e−1) to the kernel that is raised."""
        return self.base.vjp_diag(X, g * self._slope(self.base.diag(X)))

    def vjp_noise(self, X: Array, g: Array) -> Array:
        """Pass on the weights of the powers with and without noise."""
        d = self.base.diag(X)
        with_noise = g * self._slope(d)
        without = g * self._slope(clip(d - self.base.noise(X), low=0.0))
        parts = self.base.vjp_diag(X, with_noise - without), self.base.vjp_noise(X, without)
        return parts[0] + parts[1]

    def vjp_inputs(self, X: Array, Z: Array, G: Array) -> Array:
        """Pass the weights times e K^(e−1) to the kernel that is raised."""
        return self.base.vjp_inputs(X, Z, G * self._slope(self.base.matrix(X, Z)))

    def vjp_diag_inputs(self, X: Array, g: Array) -> Array:
        """Pass the weights times e k^(e−1) to the kernel that is raised."""
        return self.base.vjp_diag_inputs(X, g * self._slope(self.base.diag(X)))

    @property
    def _exponent(self) -> float:
        return float(self.kernel.exponent)

    def _slope(self, K: Array) -> Array:
        e, xp = self._exponent, namespace(K)
        if e >= 1.0:
            return e * K ** (e - 1.0)
        # A root's infinite slope at 0 would multiply the vanished derivative of a far pair.
        zero = K == 0.0
        safe = xp.where(zero, xp.ones_like(K), K)
        return xp.where(zero, xp.zeros_like(K), e * safe ** (e - 1.0))
