"""The usual form of a kernel, c·base + white, with one part or the other left out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Product, Sum, WhiteKernel

from cavity.arrays import Array, add_to_diagonal, inner_product, namespace
from cavity.kernels.base import Rule, entry, rule
from cavity.kernels.distances import inner

_ONE, _NO_NOISE = ConstantKernel(1.0, "fixed"), WhiteKernel(0.0, "fixed")


def parts(kernel: Any) -> dict[str, Any]:
    """Return the "constant", "base" and "white" of a kernel in the order of their theta.

    For a kernel of another form, the base is the kernel itself.
    """
    if type(kernel) is Sum and type(kernel.k2) is WhiteKernel:
        return {**_factors(kernel.k1), "white": kernel.k2}
    if type(kernel) is Sum and type(kernel.k1) is WhiteKernel:
        return {"white": kernel.k1, **_factors(kernel.k2)}
    return {**_factors(kernel), "white": _NO_NOISE}


def _factors(kernel: Any) -> dict[str, Any]:
    if type(kernel) is Product and type(kernel.k1) is ConstantKernel:
        return {"constant": kernel.k1, "base": kernel.k2}
    if type(kernel) is Product and type(kernel.k2) is ConstantKernel:
        return {"base": kernel.k1, "constant": kernel.k2}
    return {"base": kernel, "constant": _ONE}


@dataclass(frozen=True)
class ScaledRule(Rule):
    """A constant times a kernel plus white noise: one matrix, changed in place."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return c K, with the noise level on the diagonal if Z is None."""
        c, base, level = self._parts
        K = base.matrix(X, Z)
        if c != 1.0:
            K *= c
        return add_to_diagonal(K, level) if Z is None else K

    def diag(self, X: Array) -> Array:
        """Return c k(x, x) plus the noise level."""
        c, base, level = self._parts
        return c * base.diag(X) + level

    def noise(self, X: Array) -> Array:
        """Return the noise level, plus c times any noise that the base has."""
        c, base, level = self._parts
        return c * base.noise(X) + level

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Contract with K, with the base and with the diagonal, forming no other weights."""
        c, base, level = self._parts
        xp, signal = namespace(G), 0.0
        white = level * float(xp.sum(xp.linalg.diagonal(G))) if Z is None else 0.0
        if not parts(self.kernel)["constant"].hyperparameter_constant_value.fixed:
            K = self.matrix(X, Z) if K is None else K
            signal = inner_product(G, K) - white if Z is None else inner(G, K)
        return self._in_order(signal, base.vjp_scaled(c, X, Z, G, K), white)

    def vjp_diag(self, X: Array, g: Array) -> Array:
        """Contract with the diagonals of the parts."""
        c, base, level = self._parts
        total = namespace(g).sum
        signal, white = c * float(total(g * base.diag(X))), level * float(total(g))
        return self._in_order(signal, c * base.vjp_diag(X, g), white)

    def vjp_noise(self, X: Array, g: Array) -> Array:
        """Contract with the noise of the base and with the noise level."""
        c, base, level = self._parts
        total = namespace(g).sum
        signal, white = c * float(total(g * base.noise(X))), level * float(total(g))
        return self._in_order(signal, c * base.vjp_noise(X, g), white)

    def vjp_inputs(self, X: Array, Z: Array, G: Array) -> Array:
        """Contract with the base: neither the constant nor the noise depends on the inputs."""
        c, base, _ = self._parts
        return c * base.vjp_inputs(X, Z, G)

    def vjp_diag_inputs(self, X: Array, g: Array) -> Array:
        """Contract with the diagonal of the base."""
        c, base, _ = self._parts
        return c * base.vjp_diag_inputs(X, g)

    @property
    def _parts(self) -> tuple[float, Rule, float]:
        """The constant, the rule of the base and the noise level."""
        found = parts(self.kernel)
        c, level = found["constant"].constant_value, found["white"].noise_level
        return float(c), rule(found["base"]), float(level)

    def _in_order(self, constant: float, base: Array, white: float) -> Array:
        """Put the gradients of the parts in the order of theta, fixed hyperparameters left out."""
        found = parts(self.kernel)
        gradients = {
            "constant": entry(found["constant"].hyperparameter_constant_value, constant),
            "base": base,
            "white": entry(found["white"].hyperparameter_noise_level, white),
        }
        return np.concatenate([gradients[name] for name in found])
