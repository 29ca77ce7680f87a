"""What every kernel rule offers, with slow defaults, and the registry of rules."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import isqrt
from typing import Any, TypeVar

import numpy as np
from array_api_compat import device, is_array_api_obj

from cavity.arrays import Array, namespace, row_blocks, same_kind, to_numpy
from cavity.arrays.differences import row_gradients

_BUDGET = 64 * 2**20
"""Bytes that the gradient tensor of a kernel without a rule may take, temporaries included."""

_STEP = 1e-4
"""Of differences in log hyperparameters."""

RULES: dict[type, "Callable[[Any], Rule]"] = {}
"""How to make the rule of a kernel object, by the class of the object."""

_MakesRule = TypeVar("_MakesRule", bound="Callable[[Any], Rule]")


def register(*kernel_classes: type) -> Callable[[_MakesRule], _MakesRule]:
    """Register the decorated rule, or function that returns one, for exactly these classes."""

    def add(makes_rule: _MakesRule) -> _MakesRule:
        RULES.update(dict.fromkeys(kernel_classes, makes_rule))
        return makes_rule

    return add


def rule(kernel: Any) -> "Rule":
    """Return the compute rule of a scikit-learn kernel object.

    The class has to match exactly: a subclass may compute something different from its parent.
    """
    return RULES.get(type(kernel), Rule)(kernel)


def length_scales(names: Sequence[str]) -> Array:
    """Return which hyperparameters, or parameters of a kernel object, are length scales."""
    last = [name.split("__")[-1] for name in names]
    return np.array(
        [s.startswith("length_scale") and not s.endswith("_bounds") for s in last], dtype=bool
    )


@dataclass(frozen=True)
class Rule:
    """A kernel object and how to compute with it.

    This class works for any kernel, but slowly: everything goes through the kernel's own methods
    and NumPy. Registered subclasses compute the same numbers faster, on the inputs' own device.

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
        return same_kind(_two_dimensional(K), _float_like(X))

    def diag(self, X: Array) -> Array:
        """Return the diagonal of the training matrix, noise included."""
        return same_kind(self.kernel.diag(_plain(X)), _float_like(X))

    def noise(self, X: Array) -> Array:
        """Return the part of ``diag(X)`` that is independent noise.

        A registered rule has none unless it overrides this.
        """
        if type(self) is not Rule:
            return full(X, 0.0)
        plain = _plain(X)
        found = [_noise(self.kernel, plain[i:j]) for i, j in row_blocks(len(plain))]
        return same_kind(np.concatenate(found), _float_like(X))

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Contract weights with the derivatives of ``matrix(X, Z)``.

        Parameters
        ----------
        X, Z : arrays of shape (n, d) and (m, d)
            Inputs; Z is None for the training matrix.
        G : array of shape (n, m)
            Weights, not modified; symmetric if Z is None.
        K : array of shape (n, m), optional
            What ``matrix(X, Z)`` returned, to save computing it again; not modified.

        Returns
        -------
        gradient : numpy.ndarray of shape (p,)
            Σ_ij G_ij ∂K_ij/∂theta, one number per free hyperparameter.
        """
        if not len(self.theta):
            return np.empty(0)
        Z = None if Z is None else _plain(Z)
        return _contract_in_blocks(self.kernel, _plain(X), Z, to_numpy(G), len(self.theta))

    def vjp_scaled(
        self, c: float, X: Array, Z: Array | None, G: Array, K: Array | None = None
    ) -> Array:
        """Return c times ``vjp(X, Z, G)``, given c times ``matrix(X, Z)`` off the diagonal."""
        return c * self.vjp(X, Z, G)

    def vjp_diag(self, X: Array, g: Array) -> Array:
        """Return Σ_i g_i ∂k(x_i, x_i)/∂theta, noise included."""
        X, g, total = _plain(X), to_numpy(g), np.zeros(len(self.theta))
        for i, j in row_blocks(len(X) if len(total) else 0, 16):
            total += np.einsum("i,iip->p", g[i:j], _gradient(self.kernel, X[i:j]))
        return total

    def vjp_noise(self, X: Array, g: Array) -> Array:
        """Return Σ_i g_i ∂noise(x_i)/∂theta; by differences for a kernel without a rule."""
        theta, g = self.theta, to_numpy(g)
        if type(self) is not Rule:
            return np.zeros(len(theta))
        steps = _STEP * np.eye(len(theta))
        sides = [[self.with_theta(theta + s).noise(X) for s in (h, -h)] for h in steps]
        slopes = [to_numpy(up - down) @ g / (2.0 * _STEP) for up, down in sides]
        return np.array(slopes).reshape(len(theta))

    def vjp_inputs(self, X: Array, Z: Array, G: Array) -> Array:
        """Contract weights with the derivatives of ``matrix(X, Z)`` in X.

        Where a kernel has a kink, as Matérn 1/2 has at z_j = x_i, that pair counts as zero: the
        mean of the slopes on both sides.

        Parameters
        ----------
        X, Z : arrays of shape (n, d) and (m, d)
        G : array of shape (n, m)

        Returns
        -------
        gradient : array of shape (n, d)
            Σ_j G_ij ∂k(x_i, z_j)/∂x_i; by differences for a kernel without a rule.
        """
        X, Z, weights = vectors(X), _plain(Z), to_numpy(G)

        def sums(moved: Array) -> Array:
            return np.einsum("ij,ij->i", weights, self.kernel(moved, Z))

        return same_kind(row_gradients(sums, _plain(X)), X)

    def vjp_diag_inputs(self, X: Array, g: Array) -> Array:
        """Return g_i ∂k(x_i, x_i)/∂x_i for each i; by differences for a kernel without a rule."""
        X = vectors(X)
        found = row_gradients(self.kernel.diag, _plain(X))
        return same_kind(to_numpy(g)[:, None] * found, X)


@dataclass(frozen=True)
class StationaryRule(Rule):
    """A kernel with k(x, x) = 1, whatever its hyperparameters."""

    def diag(self, X: Array) -> Array:
        """Return ones."""
        return full(X, 1.0)

    def vjp_diag(self, X: Array, g: Array) -> Array:
        """Return zeros."""
        return np.zeros(len(self.theta))

    def vjp_diag_inputs(self, X: Array, g: Array) -> Array:
        """Return zeros."""
        return flat(X)


def vectors(X: Any) -> Array:
    """Return inputs that are vectors of real numbers; others have no gradients."""
    if is_array_api_obj(X) and X.ndim == 2 and namespace(X).isdtype(X.dtype, "real floating"):
        return X
    raise ValueError(
        "Gradients in the inputs need inputs that are vectors: an array of real numbers of shape "
        f"(n, d), and not {type(X).__name__} of other objects."
    )


def flat(X: Any) -> Array:
    """Return the gradient in the inputs of what does not depend on them."""
    return namespace(vectors(X)).zeros_like(X)


def entry(hyperparameter: Any, value: float) -> Array:
    """Return a gradient in one hyperparameter: one number, or none if it is fixed."""
    return np.empty(0) if hyperparameter.fixed else np.asarray([value])


def count(X: Array) -> int:
    """Return the number of inputs, rows of an array or objects in a list."""
    return int(X.shape[0]) if is_array_api_obj(X) else len(X)


def full(X: Array, value: float, *columns: int) -> Array:
    """Return a vector with one value for each input, or a matrix with that many columns."""
    like = _float_like(X)
    xp, shape = namespace(like), (count(X), *columns)
    return xp.full(shape, float(value), dtype=like.dtype, device=device(like))


def _float_like(X: Array) -> Array:
    """Return an array of the kind that results for these inputs have; inputs may be any objects."""
    if is_array_api_obj(X) and namespace(X).isdtype(X.dtype, "real floating"):
        return X
    return np.empty(0)


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


def _noise(kernel: Any, X: Any) -> Array:
    with_noise, without = np.diag(kernel(X)), np.diag(kernel(X, X))
    # The two may be computed by different formulas; a rounding difference is not noise.
    same = np.isclose(with_noise, without, rtol=1e-10, atol=0.0)
    return np.where(same, 0.0, with_noise - without)


def _contract_in_blocks(kernel: Any, X: Any, Z: Any, G: Array, p: int) -> Array:
    """Contract by pairs of row blocks: the whole n×n×p tensor is never held."""
    # Kernels hold about four tensors of this size while they compute one.
    size = max(1, isqrt(_BUDGET // (4 * 8 * p)) // 2)
    if Z is not None:
        two = product(_blocks(X, size), _blocks(Z, size))
        return sum((_corner(kernel, X[a], Z[b], G[a, b]) for a, b in two), np.zeros(p))
    blocks = [slice(0, len(X))] if len(X) <= 2 * size else _blocks(X, size)
    total = sum(np.tensordot(G[a, a], _gradient(kernel, X[a]), axes=2) for a in blocks)
    # G is symmetric: a corner on the other side contributes as much.
    pairs = combinations(blocks, 2)
    return total + 2.0 * sum(_corner(kernel, X[a], X[b], G[a, b]) for a, b in pairs)


def _blocks(X: Any, size: int) -> list[slice]:
    return [slice(i, j) for i, j in row_blocks(len(X), size)]


def _corner(kernel: Any, X: Any, Z: Any, G: Array) -> Array:
    """Contract with the gradient between two sets of inputs.

    The kernel gives gradients only for a set of inputs with itself; those between two sets are a
    corner of the gradient for both together.
    """
    both = X + Z if isinstance(X, list) else np.concatenate([X, Z])
    return np.tensordot(G, _gradient(kernel, both)[: len(X), len(X) :], axes=2)


def _gradient(kernel: Any, X: Any) -> Array:
    K, gradient = kernel(X, eval_gradient=True)
    _two_dimensional(K)
    return gradient
