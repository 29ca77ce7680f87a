"""What every kernel offers, the slow truth of each offer, and the registry of faster ones."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import isqrt
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from cavity.arrays import Array, namespace, same_kind, to_numpy

__all__ = ["Rule", "count", "float_like", "register", "rule"]

_BUDGET = 64 * 2**20
"""Bytes that the gradient tensor of a kernel without a rule may take, temporaries included."""

_REGISTRY: dict[type, "type[Rule]"] = {}


def register(*kernel_classes: type) -> Callable[["type[Rule]"], "type[Rule]"]:
    """Make the decorated rule the one for kernels of exactly these classes."""

    def add(rule_class: "type[Rule]") -> "type[Rule]":
        _REGISTRY.update(dict.fromkeys(kernel_classes, rule_class))
        return rule_class

    return add


def rule(kernel: Any) -> "Rule":
    """Return the compute rule of a scikit-learn kernel object.

    The class has to match exactly: a subclass may compute something else than its parent.
    """
    return _REGISTRY.get(type(kernel), Rule)(kernel)


@dataclass(frozen=True)
class Rule:
    """A kernel object and how to compute with it.

    As it stands, the slow truth for any kernel: everything goes through the kernel's own methods
    and NumPy. Registered subclasses compute the same numbers faster and where the inputs live.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        The kernel at its current hyperparameters.
    """

    kernel: Any

    @property
    def theta(self) -> Array:
        """Logarithms of the free hyperparameters, in scikit-learn's order."""
        return self.kernel.theta

    @property
    def bounds(self) -> Array:
        """Bounds of ``theta``, of shape (p, 2)."""
        return self.kernel.bounds.reshape(-1, 2)

    @property
    def names(self) -> list[str]:
        """A readable name for each entry of ``theta``."""
        free = [h for h in self.kernel.hyperparameters if not h.fixed]
        return [name for h in free for name in _entry_names(h.name, h.n_elements)]

    def with_theta(self, theta: Array) -> "Rule":
        """Return the rule of the same kernel at other hyperparameters."""
        return rule(self.kernel.clone_with_theta(to_numpy(theta)))

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return K(X, Z) without noise, or the training matrix K(X, X) with it if Z is None."""
        K = self.kernel(_plain(X)) if Z is None else self.kernel(_plain(X), _plain(Z))
        return same_kind(_two_dimensional(K), float_like(X))

    def diag(self, X: Array) -> Array:
        """Return the diagonal of the training matrix, noise included."""
        return same_kind(self.kernel.diag(_plain(X)), float_like(X))

    def vjp(self, X: Array, G: Array, K: Array | None = None) -> Array:
        """Contract a symmetric weight matrix with the derivatives of the training matrix.

        Parameters
        ----------
        X : array of shape (n, d)
            Training inputs.
        G : array of shape (n, n)
            Symmetric weights, not modified.
        K : array of shape (n, n), optional
            What ``matrix(X)`` returned, to save computing it again; not modified.

        Returns
        -------
        gradient : numpy.ndarray of shape (p,)
            Σ_ij G_ij ∂K_ij/∂theta, one number per free hyperparameter.
        """
        p = len(self.theta)
        return _contract_in_blocks(self.kernel, _plain(X), to_numpy(G), p) if p else np.empty(0)

    def noisy(self, X: Array) -> bool:
        """Tell whether ``matrix(X)`` and ``matrix(X, X)`` differ on the diagonal."""
        X, rows = _plain(X), 64
        return any(_noisy(self.kernel, X[i : i + rows]) for i in range(0, len(X), rows))

    def add(self, K: Array, X: Array, Z: Array | None = None) -> Array:
        """Return K + matrix(X, Z); consumes K."""
        K += self.matrix(X, Z)
        return K

    def multiply(self, K: Array, X: Array, Z: Array | None = None) -> Array:
        """Return K ∘ matrix(X, Z); consumes K."""
        K *= self.matrix(X, Z)
        return K

    @property
    def reads_K(self) -> bool:
        """Whether ``vjp`` computes from the K it is given, and in proportion to it."""
        return False

    @property
    def uniform(self) -> float | None:
        """The value of K where it is one and the same for all pairs, else None."""
        return None

    @property
    def diagonal(self) -> bool:
        """Whether K is known to vanish off the diagonal of the training matrix."""
        return False


def float_like(X: Array) -> Array:
    """Return an array of the kind that results for these inputs have; inputs may be any objects."""
    if is_array_api_obj(X) and namespace(X).isdtype(X.dtype, "real floating"):
        return X
    return np.empty(0)


def count(X: Array) -> int:
    """Return the number of inputs, rows of an array or objects in a list."""
    return int(X.shape[0]) if is_array_api_obj(X) else len(X)


def _plain(X: Array) -> Any:
    """Return the inputs as scikit-learn takes them; a list of objects stays as it is."""
    return to_numpy(X) if is_array_api_obj(X) else X


def _entry_names(name: str, count: int) -> list[str]:
    return [name] if count == 1 else [f"{name}[{i}]" for i in range(count)]


def _two_dimensional(K: Array) -> Array:
    if K.ndim != 2:
        raise ValueError(
            f"expected a kernel with one covariance matrix, got one whose matrix has shape "
            f"{K.shape}; use the kernels of a CompoundKernel one at a time"
        )
    return K


def _noisy(kernel: Any, X: Any) -> bool:
    with_noise, without = np.diag(kernel(X)), np.diag(kernel(X, X))
    # The two may be computed by different formulas, whose rounding is no noise.
    return not np.allclose(with_noise, without, rtol=1e-10, atol=0.0)


def _contract_in_blocks(kernel: Any, X: Any, G: Array, p: int) -> Array:
    """Contract by pairs of row blocks: the whole n×n×p tensor is never held.

    The kernel gives gradients only for a set of inputs with itself; those between two blocks are
    a corner of the gradient for both blocks together.
    """
    # Kernels hold about four tensors of this size while they compute one.
    size = max(1, isqrt(_BUDGET // (4 * 8 * p)) // 2)
    n = len(X)
    blocks = [slice(0, n)] if n <= 2 * size else [slice(i, i + size) for i in range(0, n, size)]
    pairs = combinations_with_replacement(blocks, 2)
    return sum((_contract_block(kernel, X, G, a, b) for a, b in pairs), np.zeros(p))


def _contract_block(kernel: Any, X: Any, G: Array, a: slice, b: slice) -> Array:
    if a == b:
        gradient = _gradient(kernel, X[a])
        return np.tensordot(G[a, a], gradient, axes=2)
    m = len(X[a])
    both = X[a] + X[b] if isinstance(X, list) else np.concatenate([X[a], X[b]])
    corner = _gradient(kernel, both)[:m, m:]
    # G is symmetric: the other corner contributes as much.
    return 2.0 * np.tensordot(G[a, b], corner, axes=2)


def _gradient(kernel: Any, X: Any) -> Array:
    K, gradient = kernel(X, eval_gradient=True)
    _two_dimensional(K)
    return gradient
