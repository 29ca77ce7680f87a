"""Kernels made of kernels: sums, products and powers, each a few lines of the chain rule."""

from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import Exponentiation, Product, Sum

from cavity.arrays import Array, add_to_diagonal, inner_product, namespace
from cavity.kernels.base import Rule, register, rule

__all__ = ["ExponentiationRule", "ProductRule", "SumRule"]


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

    def noisy(self, X: Array) -> bool:
        """Tell whether one of the two is noisy."""
        return self.k1.noisy(X) or self.k2.noisy(X)


@register(Sum)
@dataclass(frozen=True)
class SumRule(_PairRule):
    """The sum of two kernels."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return K₁ + K₂."""
        return self.k2.add(self.k1.matrix(X, Z), X, Z)

    def diag(self, X: Array) -> Array:
        """Return the sum of the diagonals."""
        return self.k1.diag(X) + self.k2.diag(X)

    def vjp(self, X: Array, G: Array, K: Array | None = None) -> Array:
        """Hand the weights to both kernels."""
        K1 = _without_noise(self.k1, X, K) if self.k2.diagonal else None
        K2 = _without_noise(self.k2, X, K) if self.k1.diagonal else None
        return np.append(self.k1.vjp(X, G, K1), self.k2.vjp(X, G, K2))


def _without_noise(child: Rule, X: Array, K: Array | None) -> Array | None:
    """Recover the matrix of one summand from the sum with a diagonal one."""
    if K is None or not len(child.theta):
        return None
    xp = namespace(K)
    return add_to_diagonal(xp.asarray(K, copy=True), child.diag(X) - xp.linalg.diagonal(K))


@register(Product)
@dataclass(frozen=True)
class ProductRule(_PairRule):
    """The elementwise product of two kernels."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return K₁ ∘ K₂."""
        # The first factor is the constant in the usual 2.0 * RBF().
        return self.k1.multiply(self.k2.matrix(X, Z), X, Z)

    def diag(self, X: Array) -> Array:
        """Return the product of the diagonals."""
        return self.k1.diag(X) * self.k2.diag(X)

    def vjp(self, X: Array, G: Array, K: Array | None = None) -> Array:
        """Hand each kernel the weights times the other's matrix."""
        k1, k2 = self.k1, self.k2
        if k1.uniform:
            return np.append(*_scaled_vjp(k1, k2, X, G, K))
        if k2.uniform:
            return np.append(*reversed(_scaled_vjp(k2, k1, X, G, K)))
        K1, K2 = k1.matrix(X), k2.matrix(X)
        return np.append(k1.vjp(X, G * K2, K1), k2.vjp(X, G * K1, K2))


def _scaled_vjp(
    constant: Rule, other: Rule, X: Array, G: Array, K: Array | None
) -> tuple[Array, Array]:
    """Return the gradients for c and for K of c K: no weight matrix has to be formed."""
    c = constant.uniform or 0.0
    if K is None:
        K = c * other.matrix(X)
    own = np.full(len(constant.theta), inner_product(G, K))
    return own, other.vjp(X, G, K) if other.reads_K else c * other.vjp(X, G)


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

    def vjp(self, X: Array, G: Array, K: Array | None = None) -> Array:
        """Hand the weights times e K^(e−1) to the kernel that is raised."""
        if not len(self.theta):
            return np.empty(0)
        K = self.base.matrix(X)
        return self.base.vjp(X, G * self._slope(K), K)

    def noisy(self, X: Array) -> bool:
        """Tell whether the kernel that is raised is noisy."""
        return self.base.noisy(X)

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
