"""What the array API standard lacks, for any array library.

The rest of the package takes the namespace from its input and uses only functions of the standard
and of `cavity.arrays`.
"""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import array_api_compat
import array_api_compat.numpy
import numpy as np
from array_api_compat import is_torch_array

P = ParamSpec("P")
R = TypeVar("R")

Array = Any
"""An array of any library that follows the array API standard."""


class NotPositiveDefiniteError(np.linalg.LinAlgError):
    """A Cholesky factorisation met a matrix that is not positive definite."""


def by_library(
    standard: Callable[..., Any], *, torch: Callable[..., Any] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function for NumPy arrays with versions for other libraries.

    The first argument decides. ``standard`` uses the array API only, so that it also says what the
    function returns; ``torch`` is given if PyTorch can do better.
    """

    def decorate(numpy: Callable[P, R]) -> Callable[P, R]:
        @wraps(numpy)
        def call(*args: P.args, **options: P.kwargs) -> R:
            if isinstance(args[0], np.ndarray):
                return numpy(*args, **options)
            chosen: Callable[..., R] = torch if torch and is_torch_array(args[0]) else standard
            return chosen(*args, **options)

        return call

    return decorate


def is_numpy_array(x: Any) -> bool:
    """Whether something is an array or a number of NumPy's."""
    return isinstance(x, (np.ndarray, np.generic))


def namespace(*arrays: Array) -> Any:
    """Return the array namespace that the arrays share."""
    # Called in every small function: plain NumPy arrays are recognised without array_api_compat.
    for x in arrays:
        if type(x) is not np.ndarray:
            return array_api_compat.array_namespace(*arrays)
    return array_api_compat.numpy


def clip(x: Array, low: float | None = None, high: float | None = None) -> Array:
    """Return x with its entries moved into a range."""
    if not is_numpy_array(x):
        return namespace(x).clip(x, low, high)
    # np.clip takes several times as long for a short vector.
    if low is not None:
        x = np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def same_kind(values: Any, like: Array) -> Array:
    """Return the values as an array of the namespace, floating type and device of another."""
    if type(like) is np.ndarray:
        # Called for every row of a sequential sweep, where the general way takes a fifth of it.
        return np.asarray(values, dtype=like.dtype)
    xp = namespace(like)
    return xp.asarray(values, dtype=like.dtype, device=array_api_compat.device(like))


def to_numpy(x: Array) -> np.ndarray[Any, Any]:
    """Return a NumPy copy or view of an array of any library, on any device."""
    if is_torch_array(x):
        x = x.detach().cpu()
    return np.asarray(x)


def copy(A: Array) -> Array:
    """Return a copy that may be consumed."""
    return namespace(A).asarray(A, copy=True)


def put(x: Array, index: Array, values: Array) -> Array:
    """Return a copy of a vector with the entries at integer indices replaced."""
    if is_numpy_array(x) or is_torch_array(x):
        x = copy(x)
        x[index] = values
        return x
    changed = np.array(to_numpy(x))
    changed[to_numpy(index)] = to_numpy(values)
    return same_kind(changed, x)


def row_blocks(n: int, rows: int = 64) -> Iterator[tuple[int, int]]:
    """Split n rows into blocks that fit into a processor's cache."""
    return ((i, min(i + rows, n)) for i in range(0, n, rows))


def identity(A: Array) -> Array:
    """Return the identity matrix of the size and kind of A."""
    return same_kind(namespace(A).eye(A.shape[0]), A)
