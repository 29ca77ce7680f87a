"""Squared distances between scaled inputs, and sums over all pairs, without loss of digits.

NumPy works through tiles of rows that stay in the processor's cache, of a training matrix only
up to the diagonal; other libraries take the whole matrix as one tile. Kernel files write
elementwise functions of the squared distances.
"""

from collections.abc import Callable, Iterable, Iterator
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from cavity.arrays import (
    Array,
    add_to_diagonal,
    clip,
    is_numpy_array,
    matmul,
    mirror_lower,
    namespace,
    row_blocks,
    same_kind,
    to_numpy,
)

__all__ = [
    "Tile",
    "centre",
    "contract",
    "elementwise",
    "inner",
    "scale",
    "tiles",
    "tiles_of",
    "weighted_sums",
]

_ROWS, _ENTRIES = 64, 2**14
"""Rows of a tile, more of them in a narrow matrix (500 points: 32 rows take a fifth longer)."""

_LOSS = 4096.0
"""How many rounding errors a product formula may gather: about 1e-12 in double precision."""

_FEW_COLUMNS = 16
"""Up to here scipy's difference formula is as fast as the product formula (2000 points: 11 ms
against 13 ms for 10 columns, 34 ms against 16 ms for 50)."""


class Tile(NamedTuple):
    """Some rows of a matrix; of a symmetric one the columns up to and including the diagonal."""

    rows: slice
    columns: slice
    values: Any


def scale(length_scale: Any, X: Array, Z: Array | None = None) -> tuple[Array, Array | None]:
    """Divide the columns of the inputs by the length scale, one or one per column."""
    ell = np.squeeze(np.asarray(length_scale, dtype=float))
    if ell.ndim > 1 or (ell.ndim == 1 and ell.shape[0] != X.shape[1]):
        raise ValueError(
            f"expected one length scale or one per column ({X.shape[1]} columns), "
            f"got shape {ell.shape}; make the kernel's length_scale that long"
        )
    # A quotient that overflows would turn into inf − inf: stop short of it.
    ell = same_kind(np.maximum(ell, max(_peak(X, Z), 1.0) / _far(X) ** 2), X)
    return X / ell, None if Z is None else Z / ell


def centre(X: Array) -> Array:
    """Return a middle of the rows: the upper median of each column.

    Unlike the mean it stays with the bulk of the inputs if some are enormous, and so do their
    digits when it is subtracted.
    """
    middle = X.shape[0] // 2
    if is_numpy_array(X):
        return np.partition(X, middle, axis=0)[[middle]]
    return namespace(X).sort(X, axis=0)[middle, :][None, :]


def tiles(
    function: Callable[[Array], Any], U: Array, V: Array | None = None, *, exact: bool = False
) -> Iterator[Tile]:
    """Cut the values of a function of the squared distances into tiles, computed one by one.

    Parameters
    ----------
    function : callable
        Given squared distances, returns one array or several.
    U, V : arrays of shape (n, d) and (m, d)
        Scaled inputs. If V is None, those of U among themselves: exactly zero on the diagonal.
    exact : bool
        Ask for small distances with a small relative error; for functions that are not smooth
        in the squared distance, or oscillate.
    """
    distances = _formula(U, V, exact)
    for rows, columns in _cuts(U, V):
        D = distances(rows, columns)
        yield Tile(rows, columns, function(_hollow(D, rows) if V is None else D))


def tiles_of(K: Array, symmetric: bool) -> Iterator[Tile]:
    """Cut a matrix into the tiles that its pairs have."""
    for rows, columns in _cuts(K, None if symmetric else K.T):
        yield Tile(rows, columns, K[rows, columns])


def elementwise(
    function: Callable[[Array], Array], U: Array, V: Array | None = None, *, exact: bool = False
) -> Array:
    """Return the matrix of a function of the squared distances; arguments as for `tiles`."""
    found = tiles(function, U, V, exact=exact)
    if not is_numpy_array(U):
        return next(found).values
    K = np.empty((len(U), len(U if V is None else V)))
    for rows, columns, values in found:
        K[rows, columns] = values
    return mirror_lower(K) if V is None else K


def weighted_sums(G: Array, symmetric: bool, values: Iterable[Tile]) -> Array:
    """Return Σ_ij G_ij h_ij for each of several matrices h, given as tiles that are consumed."""
    total: Array = 0.0
    for rows, columns, found in values:
        if symmetric:
            # Doubled in the end for the pairs above the diagonal: here they are there already.
            for h in found:
                h[:, rows.start :] *= 0.5
        total = total + np.asarray([inner(G[rows, columns], h) for h in found])
    return 2.0 * total if symmetric else total


def contract(G: Array, U: Array, V: Array | None, values: Iterable[Tile]) -> Array:
    """Return Σ_ij G_ij w_ij (u_id − v_jd)² for each column d, as a NumPy vector.

    Parameters
    ----------
    G : array of shape (n, n) or (n, m)
        Symmetric if V is None.
    U, V : arrays of shape (n, d) and (m, d)
        Inputs, centred and scaled; V is U if None.
    values : iterable of Tile
        The matrix w ≥ 0, symmetric if V is None; its diagonal is then ignored.
    """
    A, peak = U if V is None else V, _peak(U, V)
    zeros, total = namespace(G).zeros_like, np.zeros(U.shape[1])
    row, column = zeros(G[:, 0]), zeros(G[0, :])
    for rows, columns, w in values:
        W = G[rows, columns] * w
        W = _hollow(W, rows) if V is None else W
        products = _keep_digits(peak, G[rows, columns], w, W)
        if V is None:
            # Doubled in the end for the pairs above the diagonal: here they are there already.
            W[:, rows.start :] *= 0.5
        if products:
            total -= 2.0 * to_numpy(_column_sums(U[rows, :] * matmul(W, A[columns, :])))
            row[rows] += namespace(W).sum(W, axis=1)
            column[columns] += _column_sums(W)
        else:
            total += _by_differences(U[rows, :], A[columns, :], W)
    # Squares that overflow have not been used.
    if peak * peak < inf:
        total += _second_moments(row, U) + _second_moments(column, A)
    return 2.0 * total if V is None else total


def _keep_digits(peak: float, G: Array, w: Array, W: Array) -> bool:
    """Whether products, which err by eps·max u²·‖W‖, are exact enough for W = G ∘ w, w ≥ 0.

    They are not for close pairs of rough kernels with far-away inputs.
    """
    square = peak * peak
    # As ‖W‖ ≤ max w ‖G‖, the norms are seldom needed.
    quick = square * float(namespace(w).max(w)) <= _LOSS
    return quick or square * _norm(W) <= _LOSS * _norm(G)


def inner(A: Array, B: Array) -> float:
    """Return Σ_ij A_ij B_ij of two matrices."""
    # Not by BLAS: its threads take longer to meet than a tile takes.
    return float(np.einsum("ij,ij->", A, B) if is_numpy_array(A) else namespace(A).sum(A * B))


def _cuts(U: Array, V: Array | None) -> Iterator[tuple[slice, slice]]:
    """Cut the pairs of rows of U and V, or of U and U up to the diagonal."""
    n, m = U.shape[0], (U if V is None else V).shape[0]
    for i, j in row_blocks(n, max(_ROWS, _ENTRIES // m) if is_numpy_array(U) else n):
        yield slice(i, j), slice(0, j if V is None else m)


def _hollow(A: Array, rows: slice) -> Array:
    """Return the values of a symmetric matrix's tile with zeros on its diagonal; consumes A."""
    if is_numpy_array(A):
        np.fill_diagonal(A[:, rows.start :], 0.0)
        return A
    return add_to_diagonal(A, -namespace(A).linalg.diagonal(A))


def _norm(A: Array) -> float:
    """Return the Frobenius norm; inf where it overflows."""
    return sqrt(inner(A, A))


def _peak(X: Array, Z: Array | None) -> float:
    xp = namespace(X)
    return max(float(xp.max(xp.abs(A))) for A in (X, Z) if A is not None)


def _far(X: Array) -> float:
    """Return a length whose square can be summed over columns without overflow."""
    largest = float(namespace(X).finfo(X.dtype).max)
    return float(largest**0.45)


def _column_sums(A: Array) -> Array:
    return namespace(A).sum(A, axis=0)


def _second_moments(weight: Array, U: Array) -> Array:
    return to_numpy(_column_sums(weight[:, None] * (U * U)))


def _by_differences(U: Array, A: Array, W: Array) -> Array:
    columns = range(U.shape[1])
    return np.asarray([inner(W, _squared_differences(U[:, k], A[:, k])) for k in columns])


def _squared_differences(u: Array, v: Array) -> Array:
    E = u[:, None] - v[None, :]
    far = _far(u)
    E = namespace(u).clip(E, -far, far)
    E *= E
    return E


def _formula(U: Array, V: Array | None, exact: bool) -> Callable[[slice, slice], Array]:
    """Choose how to compute a tile of squared distances."""
    A = U if V is None else V
    few = is_numpy_array(U) and U.shape[1] <= _FEW_COLUMNS
    exact = exact or (not few and _wide(U, V))
    if is_numpy_array(U) and (exact or few):
        return _difference_formula(U, A)
    return (lambda rows, columns: _by_columns(U, A)) if exact else _product_formula(U, A)


def _wide(U: Array, V: Array | None) -> bool:
    c = centre(U)
    peak = _peak(U - c, None if V is None else V - c)
    return not peak * peak <= _LOSS


def _difference_formula(U: Array, A: Array) -> Callable[[slice, slice], Array]:
    far = _far(U)
    overflows = _peak(U, A) > far

    def distances(rows: slice, columns: slice) -> Array:
        D = cdist(U[rows], A[columns], "sqeuclidean")
        # Overflow to inf would make 0·inf of a polynomial times an exponential.
        return np.minimum(D, far**2, out=D) if overflows else D

    return distances


def _product_formula(U: Array, A: Array) -> Callable[[slice, slice], Array]:
    xp, c = namespace(U), centre(U)
    U, A = U - c, A - c
    u, a = xp.sum(U * U, axis=1), xp.sum(A * A, axis=1)

    def distances(rows: slice, columns: slice) -> Array:
        D = matmul(U[rows, :], A[columns, :].T)
        D *= -2.0
        D += u[rows][:, None]
        D += a[columns][None, :]
        return clip(D, low=0.0)

    return distances


def _by_columns(U: Array, A: Array) -> Array:
    D = _squared_differences(U[:, 0], A[:, 0])
    for k in range(1, U.shape[1]):
        D += _squared_differences(U[:, k], A[:, k])
    return D
