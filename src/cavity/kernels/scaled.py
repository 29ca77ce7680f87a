"""The usual shape of a kernel, c·base + white, with one part or the other left out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Product, Sum, WhiteKernel

from cavity.arrays import Array, add_to_diagonal, inner_product, namespace
from cavity.kernels.base import Rule, entry, rule
from cavity.kernels.distances import inner

__all__ = ["ScaledRule", "parts"]


def parts(kernel: Any) -> dict[str, Any]:
    """Return the "constant", "base" and "white" of a kernel in the order of their theta.

    A kernel of another shape is all base.
    """
    if type(kernel) is Sum and type(kernel.k2) is WhiteKernel:
        return {**_factors(kernel.k1), "white": kernel.k2}
    if type(kernel) is Sum and type(kernel.k1) is WhiteKernel:
        return {"white": kernel.k1, **_factors(kernel.k2)}
    return _factors(kernel)


def _factors(kernel: Any) -> dict[str, Any]:
    if type(kernel) is Product and type(kernel.k1) is ConstantKernel:
        return {"constant": kernel.k1, "base": kernel.k2}
    if type(kernel) is Product and type(kernel.k2) is ConstantKernel:
        return {"base": kernel.k1, "constant": kernel.k2}
    return {"base": kernel}


@dataclass(frozen=True)
class ScaledRule(Rule):
    """A constant times a kernel plus white noise: one matrix, changed in place."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return c K, with the noise level on the diagonal if Z is None."""
        K = self._base.matrix(X, Z)
        if self._c != 1.0:
            K *= self._c
        return add_to_diagonal(K, self._level) if Z is None else K

    def diag(self, X: Array) -> Array:
        """Return c k(x, x) plus the noise level."""
        return self._c * self._base.diag(X) + self._level

    def noise(self, X: Array) -> Array:
        """Return the noise level, plus c times any noise that the base has."""
        return self._c * self._base.noise(X) + self._level

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Contract with K, with the base and with the diagonal, forming no other weights."""
        xp, signal = namespace(G), 0.0
        white = self._level * float(xp.sum(xp.linalg.diagonal(G))) if Z is None else 0.0
        if self._constant_is_free:
            K = self.matrix(X, Z) if K is None else K
            signal = inner_product(G, K) - white if Z is None else inner(G, K)
        return self._in_order(signal, self._base.vjp_scaled(self._c, X, Z, G, K), white)

    def vjp_diag(self, X: Array, g: Array) -> Array:
        """Contract with the diagonals of the parts."""
        total = namespace(g).sum
        signal = self._c * float(total(g * self._base.diag(X)))
        base = self._c * self._base.vjp_diag(X, g)
        return self._in_order(signal, base, self._level * float(total(g)))

    @property
    def _base(self) -> Rule:
        return rule(parts(self.kernel)["base"])

    @property
    def _c(self) -> float:
        constant = parts(self.kernel).get("constant")
        return float(constant.constant_value) if constant else 1.0

    @property
    def _level(self) -> float:
        white = parts(self.kernel).get("white")
        return float(white.noise_level) if white else 0.0

    @property
    def _constant_is_free(self) -> bool:
        constant = parts(self.kernel).get("constant")
        return bool(constant and not constant.hyperparameter_constant_value.fixed)

    def _in_order(self, constant: float, base: Array, white: float) -> Array:
        """Put the gradients of the parts in the order of theta, fixed hyperparameters left out."""
        found, gradients = parts(self.kernel), {"base": base}
        if "constant" in found:
            hyperparameter = found["constant"].hyperparameter_constant_value
            gradients["constant"] = entry(hyperparameter, constant)
        if "white" in found:
            gradients["white"] = entry(found["white"].hyperparameter_noise_level, white)
        return np.concatenate([gradients[name] for name in found])
