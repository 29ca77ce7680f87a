"""A linear kernel with a unit for each input."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from cavity.arrays import Array, matmul, namespace, same_kind
from cavity.kernels.base import Rule, register


class Linear(Kernel):  # type: ignore[misc]
    """k(x, z) = Σ_j (x_j − o_j)(z_j − o_j)/ℓ_j².

    scikit-learn's DotProduct has one unit for all inputs, and its origin is zero. This kernel has
    no free hyperparameters: multiply it by a ConstantKernel.

    Parameters
    ----------
    length_scale : float or ndarray of shape (d,), default 1.0
        Unit ℓ of each input.
    origin : float or ndarray of shape (d,), default 0.0
        Where the function is zero.

    Examples
    --------
    >>> from cavity.kernels import Linear
    >>> Linear(length_scale=2.0, origin=1.0)([[3.0], [5.0]]).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """

    def __init__(self, length_scale: Any = 1.0, origin: Any = 0.0) -> None:
        self.length_scale = length_scale
        self.origin = origin

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Return the matrix, and an empty gradient if wanted."""
        A = self._scaled(X)
        B = A if Y is None else self._scaled(Y)
        K = A @ B.T
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X: Any) -> Array:
        """Return k(x, x) of each row."""
        return np.sum(self._scaled(X) ** 2, axis=1)

    def _scaled(self, X: Any) -> Array:
        return (np.atleast_2d(X) - self.origin) / self.length_scale

    def is_stationary(self) -> bool:
        """Return False."""
        return False

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        mine, theirs = self.get_params(), other.get_params()
        return all(np.array_equal(mine[key], theirs[key]) for key in mine)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            "Linear(length_scale="
            + np.array2string(np.asarray(self.length_scale), precision=3, separator=", ")
            + ")"
        )


@register(Linear)
@dataclass(frozen=True)
class LinearRule(Rule):
    """Products of scaled inputs."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return the matrix."""
        A = self._scaled(X)
        return matmul(A, (A if Z is None else self._scaled(Z)).T)

    def diag(self, X: Array) -> Array:
        """Return the squared lengths."""
        A = self._scaled(X)
        return namespace(A).sum(A * A, axis=1)

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Return nothing: there are no free hyperparameters."""
        return np.empty(0)

    def vjp_diag(self, X: Array, g: Array) -> Array:
        """Return nothing."""
        return np.empty(0)

    def vjp_inputs(self, X: Array, Z: Array, G: Array) -> Array:
        """Return Σ_j G_ij (z_j − o)/ℓ²."""
        return matmul(G, self._scaled(Z)) / self._like(self.kernel.length_scale, X)

    def vjp_diag_inputs(self, X: Array, g: Array) -> Array:
        """Return 2 g_i (x_i − o)/ℓ²."""
        return 2.0 * g[:, None] * self._scaled(X) / self._like(self.kernel.length_scale, X)

    def _scaled(self, X: Array) -> Array:
        return (X - self._like(self.kernel.origin, X)) / self._like(self.kernel.length_scale, X)

    @staticmethod
    def _like(parameter: Any, X: Array) -> Array:
        return same_kind(np.atleast_1d(np.asarray(parameter, dtype=float)), X)
