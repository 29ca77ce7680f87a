"""Squared distances between scaled inputs, and contractions with them, without loss of digits.

For NumPy the distances of a training set are kept as the n(n−1)/2 *pairs* i < j, half the work;
elsewhere as the whole matrix. Kernel files write elementwise functions and need not know which.
"""

from math import isqrt, sqrt
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist, pdist, squareform

from cavity.arrays import (
    Array,
    add_to_diagonal,
    inner_product,
    is_numpy_array,
    matmul,
    mirror_lower,
    namespace,
    row_blocks,
    same_kind,
    to_numpy,
)

__all__ = [
    "centre",
    "contract",
    "contract_product",
    "exp",
    "norm",
    "pair_distances",
    "scale",
    "square",
    "weigh",
    "without_diagonal",
]

_LARGE = 500
"""Rows from which on a matrix is filled in row by row."""

_ROWS = 256
"""Rows of G ∘ K at a time."""

_LOSS = 4096.0
"""How many rounding errors a product formula may gather: about 1e-12 in double precision."""

_FEW_COLUMNS = 16
"""Up to here scipy's difference formula is as fast as the product formula (2000 points: 11 ms
against 13 ms for 10 columns, 34 ms against 16 ms for 50)."""


def scale(length_scale: Any, *inputs: Array) -> list[Array]:
    """Divide the columns of each input by the length scale, one or one per column."""
    ell = np.squeeze(np.asarray(length_scale, dtype=float))
    if ell.ndim > 1 or (ell.ndim == 1 and ell.shape[0] != inputs[0].shape[1]):
        raise ValueError(
            f"expected one length scale or one per column ({inputs[0].shape[1]} columns), "
            f"got shape {ell.shape}; make the kernel's length_scale that long"
        )
    # A quotient that overflows would turn into inf − inf: stop short of it.
    xp = namespace(*inputs)
    peak = max(float(xp.max(xp.abs(X))) for X in inputs)
    ell = np.maximum(ell, max(peak, 1.0) / _far(inputs[0]) ** 2)
    return [X / same_kind(ell, X) for X in inputs]


def centre(X: Array) -> Array:
    """Return a middle of the rows: the upper median of each column.

    Unlike the mean it stays with the bulk of the inputs if some are enormous, and so do their
    digits when it is subtracted.
    """
    middle = X.shape[0] // 2
    if is_numpy_array(X):
        return np.partition(X, middle, axis=0)[[middle]]
    return namespace(X).sort(X, axis=0)[middle, :][None, :]


def pair_distances(U: Array, V: Array | None = None, *, exact: bool = False) -> Array:
    """Return the squared distances of the rows; exactly zero for a row and itself if V is None.

    Parameters
    ----------
    U, V : arrays of shape (n, d) and (m, d)
        Scaled inputs.
    exact : bool
        Ask for small distances with a small relative error; for functions that are not smooth
        in the squared distance, or oscillate.
    """
    few = U.shape[1] <= _FEW_COLUMNS
    exact = exact or (not (few and is_numpy_array(U)) and _wide(U, V))
    if is_numpy_array(U) and (exact or few):
        D = pdist(U, "sqeuclidean") if V is None else cdist(U, V, "sqeuclidean")
        # Overflow to inf would make 0·inf of a polynomial times an exponential.
        return np.minimum(D, _far(U) ** 2, out=D) if _overflows(U, V) else D
    return _by_columns(U, V) if exact else _by_product(U, V)


def square(values: Array, diagonal: float) -> Array:
    """Return the whole symmetric matrix of a function of the distances of a training set."""
    if values.ndim == 1:
        A = _whole(values)
        np.fill_diagonal(A, diagonal)
        return A
    A = without_diagonal(values)
    return add_to_diagonal(A, diagonal) if diagonal else A


def _whole(pairs: Array) -> Array:
    """Return the matrix of the pairs i < j; scipy's goes down the columns of a large one."""
    n = (1 + isqrt(1 + 8 * len(pairs))) // 2
    if n < _LARGE:
        return squareform(pairs, checks=False)
    A, end = np.empty((n, n)), 0
    for i in range(n - 1):
        begin, end = end, end + n - 1 - i
        A[i, i + 1 :] = pairs[begin:end]
    return mirror_lower(A.T).T


def weigh(G: Array, values: Array) -> float:
    """Return Σ_ij G_ij h_ij for a function h of the distances that vanishes on the diagonal."""
    if values.ndim == 1:
        return 2.0 * float(np.dot(squareform(G, checks=False), values))
    return inner_product(G, values)


def contract_product(U: Array, G: Array, K: Array) -> Array:
    """Return Σ_ij G_ij K_ij (u_id − u_jd)² for each column d; NumPy forms G ∘ K in blocks of rows.

    Parameters
    ----------
    U : array of shape (n, d)
        Inputs, centred and scaled.
    G, K : arrays of shape (n, n)
        Symmetric.
    """
    if not is_numpy_array(U):
        return contract(U, without_diagonal(G * K), norm(G))
    n = U.shape[0]
    row, W_U, square = np.empty(n), np.empty_like(U), 0.0
    for i, j in row_blocks(n, _ROWS):
        W = G[i:j] * K[i:j]
        np.fill_diagonal(W[:, i:j], 0.0)
        row[i:j], W_U[i:j] = W.sum(axis=1), matmul(W, U)
        # Not by BLAS: its threads take longer to meet than a block takes.
        square += float(np.einsum("ij,ij->", W, W))
    if _is_accurate(U, sqrt(square), norm(G)):
        return _gather(U, row, W_U)
    return contract(U, without_diagonal(G * K), norm(G))


def contract(U: Array, W: Array, reference: float) -> Array:
    """Return Σ_ij W_ij (u_id − u_jd)² for each column d, as a NumPy vector.

    Parameters
    ----------
    U : array of shape (n, d)
        Inputs, centred and scaled.
    W : array of shape (n, n)
        Symmetric weights with a zero diagonal.
    reference : float
        The Frobenius norm against which rounding errors may be small.
    """
    if _is_accurate(U, norm(W), reference):
        return _gather(U, namespace(W).sum(W, axis=1), matmul(W, U))
    return np.asarray([_contract_column(U[:, k], W) for k in range(U.shape[1])])


def _is_accurate(U: Array, weight: float, reference: float) -> bool:
    """Whether a contraction by products keeps its digits.

    Its errors are eps·max u²·‖W‖: large for close pairs of rough kernels with far-away inputs.
    """
    xp = namespace(U)
    peak = float(xp.max(xp.abs(U)))
    return peak * peak * weight <= _LOSS * reference


def norm(A: Array) -> float:
    """Return the Frobenius norm; inf where it overflows."""
    return sqrt(inner_product(A, A))


def exp(A: Array) -> Array:
    """Return exp(A); consumes A."""
    return np.exp(A, out=A) if is_numpy_array(A) else namespace(A).exp(A)


def without_diagonal(A: Array) -> Array:
    """Return A with a zero diagonal; consumes A."""
    if is_numpy_array(A):
        np.fill_diagonal(A, 0.0)
        return A
    return add_to_diagonal(A, -namespace(A).linalg.diagonal(A))


def _far(X: Array) -> float:
    """Return a length whose square can be summed over columns without overflow."""
    largest = float(namespace(X).finfo(X.dtype).max)
    return float(largest**0.45)


def _extent(U: Array, V: Array | None, c: Array) -> float:
    xp = namespace(U)
    return max(float(xp.max(xp.abs(A - c))) for A in (U, U if V is None else V))


def _wide(U: Array, V: Array | None) -> bool:
    peak = _extent(U, V, centre(U))
    return not peak * peak <= _LOSS


def _overflows(U: Array, V: Array | None) -> bool:
    return _extent(U, V, 0.0) > _far(U)


def _by_product(U: Array, V: Array | None) -> Array:
    xp = namespace(U)
    c = centre(U)
    U = U - c
    A = U if V is None else V - c
    D = matmul(U, A.T)
    D *= -2.0
    D += xp.sum(U * U, axis=1)[:, None]
    D += xp.sum(A * A, axis=1)[None, :]
    D = xp.clip(D, 0.0, None)
    return without_diagonal(D) if V is None else D


def _by_columns(U: Array, V: Array | None) -> Array:
    A = U if V is None else V
    D = _squared_differences(U[:, 0], A[:, 0])
    for k in range(1, U.shape[1]):
        D += _squared_differences(U[:, k], A[:, k])
    return D


def _squared_differences(u: Array, v: Array) -> Array:
    E = u[:, None] - v[None, :]
    far = _far(u)
    E = namespace(u).clip(E, -far, far)
    E *= E
    return E


def _gather(U: Array, row: Array, W_U: Array) -> Array:
    xp = namespace(U)
    first = xp.sum(row[:, None] * (U * U), axis=0)
    return 2.0 * to_numpy(first - xp.sum(U * W_U, axis=0))


def _contract_column(u: Array, W: Array, rows: int = 64) -> float:
    xp = namespace(u, W)
    n = u.shape[0]
    blocks = [slice(i, min(i + rows, n)) for i in range(0, n, rows)]
    return sum(float(xp.sum(W[b, :] * _squared_differences(u[b], u))) for b in blocks)
