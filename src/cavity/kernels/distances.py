"""Squared distances between scaled inputs, and sums over all pairs, without loss of digits.

With NumPy, work is done in tiles of rows that stay in the processor's cache, for a training
matrix only up to the diagonal. A small matrix, and any matrix of another library, is one tile.
Kernel files define elementwise functions of the squared distances, which may overwrite them.
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
    namespace,
    row_blocks,
    same_kind,
    to_numpy,
)

_ROWS, _ENTRIES = 64, 2**14
"""Rows of a tile, more of them in a narrow matrix; up to 128 points make one tile (100 points:
.040 ms, and .050 ms if half of the matrix is mirrored)."""

_LOSS = 4096.0
"""How many rounding errors a product formula may add up: about 1e-12 in double precision."""

_FEW_COLUMNS = 16
"""Up to here scipy's difference formula is as fast as the product formula (2000 points: 11 ms
against 13 ms for 10 columns, 34 ms against 16 ms for 50)."""


class Tile(NamedTuple):
    """Some rows of a matrix; of a symmetric one the columns up to and including the diagonal."""

    rows: slice
    columns: slice
    values: Any


def scale(
    length_scale: Any, X: Array, Z: Array | None = None, middle: Array | None = None
) -> tuple[Array, Array | None]:
    """Divide the columns of the inputs by the length scale, one or one per column.

    If there is a middle, it is subtracted first. Each row depends on itself alone.
    """
    ell = _lengths(length_scale, X)
    if middle is None:
        return _quotient(X, ell), None if Z is None else _quotient(Z, ell)
    # Halves, which are exact: the difference of two enormous numbers might overflow.
    half, c = 0.5 * ell, 0.5 * middle
    return _quotient(0.5 * X - c, half), None if Z is None else _quotient(0.5 * Z - c, half)


def _lengths(length_scale: Any, X: Array) -> Array:
    ell = np.squeeze(np.asarray(length_scale, dtype=float))
    if ell.ndim > 1 or (ell.ndim == 1 and ell.shape[0] != X.shape[1]):
        raise ValueError(
            f"expected one length scale or one per column ({X.shape[1]} columns), "
            f"got shape {ell.shape}; make the kernel's length_scale that long"
        )
    return same_kind(ell, X)


def _quotient(X: Array, ell: Array) -> Array:
    """Return X/ℓ; where that would overflow, numbers in the same order that are far apart."""
    xp, largest = namespace(X), float(namespace(X).finfo(X.dtype).max)
    limit = largest / 8.0
    if not X.shape[0] or _peak(X, None) / limit <= float(xp.min(ell)):
        return X / ell
    beyond = xp.abs(X) / limit > ell
    ordered = xp.sign(X) * (limit + xp.abs(X) / 8.0)
    return xp.where(beyond, ordered, xp.where(beyond, xp.zeros_like(X), X) / ell)


def centre(X: Array) -> Array:
    """Return a middle of the rows: the upper median of each column.

    Unlike the mean it stays near most inputs if some are enormous, so that these inputs keep
    their digits when it is subtracted.
    """
    middle = X.shape[0] // 2
    if is_numpy_array(X):
        return np.partition(X, middle, axis=0)[[middle]]
    return namespace(X).sort(X, axis=0)[middle, :][None, :]


def exp(x: Array) -> Array:
    """Return e^x; consumes x."""
    # In place: a fresh array of this size may cost as much as the function.
    return np.exp(x, out=x) if is_numpy_array(x) else namespace(x).exp(x)


def root(x: Array) -> Array:
    """Return the square root of x; consumes x."""
    return np.sqrt(x, out=x) if is_numpy_array(x) else namespace(x).sqrt(x)


def tiles(
    function: Callable[[Array], Any], U: Array, V: Array | None = None, *, exact: bool = False
) -> Iterator[Tile]:
    """Yield a function of the squared distances between the rows of U and V, tile by tile.

    The function returns one array or several. If V is None, the rows are those of U among
    themselves, at distance exactly zero on the diagonal. If exact, small distances have a small
    relative error: for functions that are not smooth in the squared distance, or oscillate.
    """
    distances = _formula(U, V, exact)
    for rows, columns in _cuts(U, V):
        yield Tile(rows, columns, function(distances(rows, columns)))


def tiles_of(K: Array, symmetric: bool) -> Iterator[Tile]:
    """Split a matrix into the same tiles as its pairs."""
    for rows, columns in _cuts(K, None if symmetric else K.T):
        yield Tile(rows, columns, K[rows, columns])


def elementwise(
    function: Callable[[Array], Array], U: Array, V: Array | None = None, *, exact: bool = False
) -> Array:
    """Return the matrix of a function of the squared distances; arguments as for `tiles`."""
    shape = (U.shape[0], (U if V is None else V).shape[0])
    K = None
    for rows, columns, values in tiles(function, U, V, exact=exact):
        if values.shape == shape:
            return values
        K = np.empty(shape) if K is None else K
        K[rows, columns] = values
        if V is None:
            K[: rows.start, rows] = values[:, : rows.start].T
    return K


def weighted_sums(G: Array, symmetric: bool, values: Iterable[Tile]) -> Array:
    """Return Σ_ij G_ij h_ij for each of several matrices h, given as tiles that are consumed."""
    total: Array = 0.0
    for rows, columns, found in values:
        if symmetric:
            _halve_square(found, rows)
        total = total + np.asarray([inner(G[rows, columns], h) for h in found])
    return 2.0 * total if symmetric else total


def contract(G: Array, U: Array, V: Array | None, values: Iterable[Tile]) -> Array:
    """Return Σ_ij G_ij w_ij (u_id − v_jd)² for each column d, as a NumPy vector.

    U and V are centred and scaled, V being U if None; G and the matrix w ≥ 0 are then symmetric
    and w's diagonal is ignored.
    """
    A, peak = U if V is None else V, _peak(U, V)
    xp, total = namespace(G), np.zeros(U.shape[1])
    row, column = xp.zeros_like(G[:, 0]), xp.zeros_like(G[0, :])
    for rows, columns, w in values:
        W = G[rows, columns] * w
        W = _hollow(W, rows) if V is None else W
        products = _keep_digits(peak, G[rows, columns], w, W)
        if V is None:
            _halve_square([W], rows)
        if products:
            total -= 2.0 * to_numpy(xp.sum(U[rows, :] * matmul(W, A[columns, :]), axis=0))
            row[rows] += xp.sum(W, axis=1)
            column[columns] += xp.sum(W, axis=0)
        else:
            total += _by_differences(U[rows, :], A[columns, :], W)
    # Squares that overflow have not been used.
    if peak * peak < inf:
        total += to_numpy(matmul((U * U).T, row) + matmul((A * A).T, column))
    return 2.0 * total if V is None else total


def pull(
    length_scale: Any,
    X: Array,
    Z: Array,
    G: Array,
    w: Callable[[Array], Array],
    *,
    exact: bool = False,
) -> Array:
    """Return Σ_j G_ij w_ij (x_i − z_j)/ℓ² for each row i, in columns of their own length scales.

    w is a function of the squared distances between inputs divided by ℓ.
    """
    xp, ell, found = namespace(G), _lengths(length_scale, X), []
    # Scaled only when centred, as for `contract`.
    middle = centre(Z)
    U, V = (scale(length_scale, A, None, middle)[0] for A in (X, Z))
    peak = _peak(U, V)
    for rows, columns, values in tiles(w, U, V, exact=exact):
        g = G[rows, columns]
        W = g * values
        # Products err by eps·max |u|·‖W‖.
        if peak * sqrt(inner(W, W)) <= _LOSS * sqrt(inner(g, g)):
            row = xp.sum(W, axis=1)[:, None] * U[rows, :]
            found.append(row - matmul(W, V[columns, :]))
        else:
            each = (_differences(U[rows, :], V[columns, :], k) for k in range(U.shape[1]))
            found.append(xp.stack([xp.sum(W * E, axis=1) for E in each], axis=1))
    return xp.concat(found, axis=0) / ell


def inner(A: Array, B: Array) -> float:
    """Return Σ_ij A_ij B_ij of two matrices."""
    # Not by BLAS: its threads need longer to synchronise than a tile takes.
    return float(np.einsum("ij,ij->", A, B) if is_numpy_array(A) else namespace(A).sum(A * B))


def _keep_digits(peak: float, G: Array, w: Array, W: Array) -> bool:
    """Whether products, which err by eps·max u²·‖W‖, are exact enough for W = G ∘ w, w ≥ 0.

    They are not for close pairs of rough kernels with far-away inputs.
    """
    square = peak * peak
    # As ‖W‖ ≤ max w ‖G‖, the norms are rarely needed.
    quick = square * float(namespace(w).max(w)) <= _LOSS
    return quick or square * sqrt(inner(W, W)) <= _LOSS * sqrt(inner(G, G))


def _cuts(U: Array, V: Array | None) -> Iterator[tuple[slice, slice]]:
    """Split the pairs of rows of U and V, or of U and U up to the diagonal."""
    n, m = U.shape[0], (U if V is None else V).shape[0]
    for i, j in row_blocks(n, max(_ROWS, _ENTRIES // m) if is_numpy_array(U) else n):
        yield slice(i, j), slice(0, j if V is None else m)


def _hollow(A: Array, rows: slice) -> Array:
    """Return the values of a symmetric matrix's tile with zeros on its diagonal; consumes A."""
    if is_numpy_array(A):
        np.fill_diagonal(A[:, rows.start :], 0.0)
        return A
    return add_to_diagonal(A, -namespace(A).linalg.diagonal(A))


def _halve_square(found: Iterable[Array], rows: slice) -> None:
    """Halve the part of a tile that already has the pairs above the diagonal: sums are doubled."""
    for h in found:
        h[:, rows.start :] *= 0.5


def _peak(X: Array, Z: Array | None) -> float:
    xp = namespace(X)
    return max(float(xp.max(xp.abs(A))) for A in (X, Z) if A is not None)


def _far(X: Array) -> float:
    """Return a length whose square can be summed over columns without overflow."""
    return float(float(namespace(X).finfo(X.dtype).max) ** 0.45)


def _by_differences(U: Array, A: Array, W: Array) -> Array:
    columns = range(U.shape[1])
    return np.asarray([inner(W, _squared_differences(U, A, k)) for k in columns])


def _squared_differences(U: Array, A: Array, k: int) -> Array:
    E = _differences(U, A, k)
    E *= E
    return E


def _differences(U: Array, A: Array, k: int) -> Array:
    far = _far(U)
    return namespace(U).clip(U[:, k][:, None] - A[:, k][None, :], -far, far)


def _formula(U: Array, V: Array | None, exact: bool) -> Callable[[slice, slice], Array]:
    """Choose how to compute a tile of squared distances."""
    A = U if V is None else V
    few = is_numpy_array(U) and U.shape[1] <= _FEW_COLUMNS
    exact = exact or (not few and _wide(U, V))
    if is_numpy_array(U) and (exact or few):
        return _difference_formula(U, A)
    if not exact:
        return _product_formula(U, A)
    return lambda rows, columns: sum(_squared_differences(U, A, k) for k in range(U.shape[1]))


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
    xp, c, symmetric = namespace(U), centre(U), U is A
    U, A = U - c, A - c
    u, a = xp.sum(U * U, axis=1), xp.sum(A * A, axis=1)

    def distances(rows: slice, columns: slice) -> Array:
        D = matmul(U[rows, :], A[columns, :].T)
        D *= -2.0
        D += u[rows][:, None]
        D += a[columns][None, :]
        if symmetric:
            # The two orders of a pair may be rounded differently.
            square = D[:, rows.start :]
            D[:, rows.start :] = 0.5 * (square + square.T)
            D = _hollow(D, rows)
        return clip(D, low=0.0)

    return distances
