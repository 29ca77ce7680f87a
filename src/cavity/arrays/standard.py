"""The one door to NumPy, PyTorch and every other array library.

The rooms of the library take the array namespace from their input and use only functions of the
array API standard; what the standard lacks stands here. NumPy arrays go straight to LAPACK, in
place: a function that says it *consumes* an array may overwrite it and hand its memory back.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import array_api_compat
import array_api_compat.numpy
import numpy as np
from array_api_compat import is_torch_array
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from cavity.arrays.blocked import gram_lower_blocked, invert_lower_blocked

__all__ = [
    "Array",
    "Namespace",
    "NotPositiveDefiniteError",
    "add_outer",
    "add_to_diagonal",
    "cholesky",
    "clip",
    "column_square_sums",
    "congruence_plus_identity",
    "copy",
    "gram",
    "inner_product",
    "invert_lower",
    "is_numpy_array",
    "lower_gram",
    "lower_product",
    "matmul",
    "mirror_lower",
    "namespace",
    "pivots",
    "put",
    "row_blocks",
    "same_kind",
    "scale_both",
    "solve_lower",
    "symmetric_product",
    "to_numpy",
]

Array = Any
"""An array of any library that follows the array API standard."""

Namespace = Any
"""The functions that go with an array: ``numpy``, ``torch``, ..."""


class NotPositiveDefiniteError(np.linalg.LinAlgError):
    """A Cholesky factorisation met a matrix that is not positive definite."""


def is_numpy_array(x: Any) -> bool:
    """Whether something is an array (or a number) of NumPy's."""
    return isinstance(x, (np.ndarray, np.generic))


def namespace(*arrays: Array) -> Namespace:
    """Return the array namespace that the arrays share."""
    # Asked for in every small function: plain NumPy arrays are told apart in no time.
    if all(type(x) is np.ndarray for x in arrays):
        return array_api_compat.numpy
    return array_api_compat.array_namespace(*arrays)


def clip(x: Array, low: float | None = None, high: float | None = None) -> Array:
    """Return x with its entries moved into a range; the standard's own is slow on NumPy."""
    if not is_numpy_array(x):
        return namespace(x).clip(x, low, high)
    if low is not None:
        x = np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def same_kind(values: Any, like: Array) -> Array:
    """Return the values as an array of the namespace, floating type and device of another."""
    xp = namespace(like)
    return xp.asarray(values, dtype=like.dtype, device=array_api_compat.device(like))


def to_numpy(x: Array) -> np.ndarray[Any, Any]:
    """Return a NumPy copy or view of an array of any library, wherever it lives."""
    if is_torch_array(x):
        x = x.detach().cpu()
    return np.asarray(x)


@cache
def _lapack(name: str, dtype: str) -> Callable[..., Any]:
    return get_lapack_funcs(name, dtype=np.dtype(dtype))  # type: ignore[return-value]


@cache
def _blas(name: str, dtype: str) -> Callable[..., Any]:
    return get_blas_funcs(name, dtype=np.dtype(dtype))


def _fortran(A: Array) -> tuple[Array, bool]:
    """Return the array in LAPACK's order without a copy, and whether it stands there as lower."""
    if A.flags.f_contiguous and not A.flags.c_contiguous:
        return A, True
    return A.T, False


def cholesky(A: Array) -> Array:
    """Return L, lower triangular with L Lᵀ = A; consumes A."""
    if is_numpy_array(A):
        F, lower = _fortran(A)
        L, info = _lapack("potrf", A.dtype.char)(F, lower=lower, overwrite_a=True, clean=True)
        return _positive(L if lower else L.T, info)
    if is_torch_array(A):
        xp = namespace(A)
        L, info = xp.linalg.cholesky_ex(A)
        return _positive(L, int(info))
    try:
        return namespace(A).linalg.cholesky(A)
    except np.linalg.LinAlgError as error:
        raise NotPositiveDefiniteError(str(error)) from error


def _positive(L: Array, info: int) -> Array:
    if info:
        raise NotPositiveDefiniteError(f"the leading minor of order {info} is not positive")
    return L


def invert_lower(L: Array) -> Array:
    """Return L⁻¹ of a lower triangular L; consumes L."""
    if is_numpy_array(L):
        _invert_triangle(*_fortran(L))
        return L
    if is_torch_array(L):
        return invert_lower_blocked(L, lambda A: solve_lower(A, _identity(A)))
    return namespace(L).linalg.solve(L, _identity(L))


def _invert_triangle(F: Array, lower: bool, small: int = 64) -> None:
    """Overwrite a triangle by its inverse, half by half: LAPACK's own is slow up to n ≈ 1000.

    The corner B between the halves' triangles A and C becomes −C⁻¹ B A⁻¹ (−A⁻¹ B C⁻¹ in an upper
    one).
    """
    n, kind = F.shape[0], F.dtype.char
    if n <= small:
        F[...] = _lapack("trtri", kind)(F, lower=lower)[0]
        return
    h = n // 2
    corner = F[h:, :h] if lower else F[:h, h:]
    left, right = (F[h:, h:], F[:h, :h]) if lower else (F[:h, :h], F[h:, h:])
    _invert_triangle(left, lower, small)
    _invert_triangle(right, lower, small)
    trmm = _blas("trmm", kind)
    product = trmm(-1.0, left, corner, lower=lower)
    corner[...] = trmm(1.0, right, product, side=1, lower=lower, overwrite_b=True)


def _identity(A: Array) -> Array:
    return same_kind(namespace(A).eye(A.shape[0]), A)


def lower_gram(L: Array, *, whole: bool = True) -> Array:
    """Return the symmetric matrix Lᵀ L of a lower triangular L; consumes L.

    Filled in whole, or only as far as `symmetric_product` needs it.
    """
    if is_numpy_array(L):
        F, lower = _fortran(L)
        G, _ = _lapack("lauum", L.dtype.char)(F, lower=lower, overwrite_c=True)
        G = G if lower else G.T
        if whole or not lower:
            mirror_lower(G)
        # Symmetric, and handed out in the order that the rest of NumPy is fastest with.
        return G.T if lower else G
    if is_torch_array(L):
        return mirror_lower(gram_lower_blocked(L))
    return L.T @ L


def mirror_lower(A: Array, block: int = 256) -> Array:
    """Copy the lower triangle onto the upper one in place, a block of rows at a time."""
    xp = namespace(A)
    for i, j in row_blocks(A.shape[0], block):
        A[i:j, j:] = A[j:, i:j].T
        inner = A[i:j, i:j]
        if is_numpy_array(A):
            np.copyto(inner, inner.T, where=_above_diagonal(j - i))
        else:
            inner[...] = xp.tril(inner) + xp.tril(inner, k=-1).T
    return A


@cache
def _above_diagonal(n: int) -> Array:
    return np.tri(n, k=-1, dtype=bool).T


def solve_lower(L: Array, b: Array, *, transpose: bool = False) -> Array:
    """Return L⁻¹ b, or L⁻ᵀ b, for a lower triangular L and a vector or matrix b."""
    if is_numpy_array(L):
        F, lower = _fortran(L)
        # _fortran hands out Lᵀ, an upper triangle, for the usual C order.
        trans = int(transpose if lower else not transpose)
        x, _ = _lapack("trtrs", L.dtype.char)(F, b, lower=lower, trans=trans)
        return x
    xp = namespace(L, b)
    A = L.T if transpose else L
    if not is_torch_array(L):
        return xp.linalg.solve(A, b)
    rhs = b if b.ndim == 2 else b[:, None]
    x = xp.linalg.solve_triangular(A, rhs, upper=transpose)
    return x if b.ndim == 2 else x[:, 0]


def add_to_diagonal(A: Array, d: Array | float) -> Array:
    """Return A + diag(d); consumes A."""
    if is_numpy_array(A):
        np.einsum("ii->i", A)[...] += d
        return A
    if is_torch_array(A):
        A.diagonal().add_(d)
        return A
    return A + _identity(A) * d


def congruence_plus_identity(K: Array, s: Array, out: Array | None = None) -> Array:
    """Return I + diag(s) K diag(s) of a symmetric K, to be factored.

    On NumPy only the lower triangle is filled in, in LAPACK's order, a block of rows of its
    transpose at a time: one trip to memory. The memory of an old matrix may be given for it.
    """
    if not is_numpy_array(K):
        B = K * s[:, None]
        B *= s[None, :]
        return add_to_diagonal(B, 1.0)
    U = np.empty(K.shape, K.dtype) if out is None else out if out.flags.c_contiguous else out.T
    for i, j in row_blocks(K.shape[0]):
        block = np.multiply(K[i:j, i:], s[i:j, None], out=U[i:j, i:])
        block *= s[i:]
    return add_to_diagonal(U, 1.0).T


def row_blocks(n: int, rows: int = 64) -> Iterator[tuple[int, int]]:
    """Cut n rows into blocks that fit into a processor's cache."""
    return ((i, min(i + rows, n)) for i in range(0, n, rows))


def matmul(A: Array, B: Array) -> Array:
    """Return A B of a matrix and a matrix or vector.

    NumPy's own products run in the threads of another BLAS than SciPy's LAPACK. Idle threads of
    the one keep the cores busy that the other waits for, so that all goes through SciPy's.
    """
    if not (is_numpy_array(A) and is_numpy_array(B) and A.dtype == B.dtype == np.float64):
        return A @ B
    F, by_columns = _fortran(A)
    if B.ndim == 1:
        return _blas("gemv", "d")(1.0, F, B, trans=int(not by_columns))
    # Transposed, so that the answer stands in C order: Bᵀ Aᵀ.
    E, columns_too = _fortran(B)
    trans = {"trans_a": int(columns_too), "trans_b": int(by_columns)}
    return _blas("gemm", "d")(1.0, E, F, **trans).T


def symmetric_product(K: Array, v: Array) -> Array:
    """Return K v of a symmetric matrix and a vector; NumPy reads one triangle only."""
    if is_numpy_array(K) and K.flags.c_contiguous:
        return _blas("symv", K.dtype.char)(1.0, K.T, v, lower=1)
    return K @ v


def lower_product(L: Array, V: Array, *, transpose: bool = False) -> Array:
    """Return L V or Lᵀ V of a lower triangular L and a vector or matrix V."""
    if not is_numpy_array(L):
        return (L.T if transpose else L) @ V
    F, lower = _fortran(L)
    trans = int(transpose if lower else not transpose)
    if V.ndim == 1:
        return _blas("trmv", L.dtype.char)(F, V, lower=lower, trans=trans)
    return _blas("trmm", L.dtype.char)(1.0, F, V, lower=lower, trans_a=trans)


def gram(W: Array) -> Array:
    """Return Wᵀ W; NumPy fills in the lower triangle only, to be factored."""
    if not is_numpy_array(W):
        return W.T @ W
    F, tall = (W, True) if W.flags.f_contiguous else (W.T, False)
    return _blas("syrk", W.dtype.char)(1.0, F, trans=int(tall), lower=1)


def pivots(A: Array, tol: float) -> tuple[Array, Array]:
    """Return the rows of A that matter and chol of A among them, rows in the order of weight.

    Factored with pivots until no diagonal element of what is left exceeds the tolerance.
    """
    C, order, rank, _ = _lapack("pstrf", A.dtype.char)(A, tol=tol, lower=1)
    return C[:rank, :rank], order[:rank] - 1


def inner_product(A: Array, B: Array) -> float:
    """Return Σ_ij A_ij B_ij of two symmetric matrices, without a third one."""
    a, b = _flat(A), _flat(B)
    if is_numpy_array(a) and a.dtype == b.dtype == np.float64:
        return float(_blas("dot", "d")(a, b))
    return float(a @ b)


def _flat(A: Array) -> Array:
    """Return the entries of a symmetric matrix as a vector: a view, whatever their order."""
    if is_numpy_array(A):
        return A.ravel(order="K")
    if is_torch_array(A) and not A.is_contiguous():
        A = A.T
    return namespace(A).reshape(A, (-1,))


def column_square_sums(A: Array, *, lower: bool = False) -> Array:
    """Return the squared norm of each column, of a matrix that may be known as lower triangular."""
    if not is_numpy_array(A):
        return namespace(A).linalg.vector_norm(A, axis=0) ** 2
    if not lower or A.flags.c_contiguous:
        return np.einsum("ij,ij->j", A, A)
    U, total = A.T, np.empty(A.shape[1], A.dtype)
    for i, j in row_blocks(len(U)):
        total[i:j] = np.einsum("ij,ij->i", U[i:j, i:], U[i:j, i:])
    return total


def copy(A: Array, out: Array | None = None) -> Array:
    """Return a copy that may be consumed, in the memory of an old matrix if one is given."""
    if out is None:
        return namespace(A).asarray(A, copy=True)
    if is_numpy_array(A) and A.flags.c_contiguous != out.flags.c_contiguous:
        out = out.T
    out[...] = A
    return out


def put(x: Array, index: Array, values: Array) -> Array:
    """Return a copy of a vector with the entries at the (whole number) index replaced."""
    if is_numpy_array(x) or is_torch_array(x):
        x = copy(x)
        x[index] = values
        return x
    changed = np.array(to_numpy(x))
    changed[to_numpy(index)] = to_numpy(values)
    return same_kind(changed, x)


def scale_both(A: Array, a: Array, b: Array) -> Array:
    """Return diag(a) A diag(b); consumes A."""
    if not is_numpy_array(A):
        A *= a[:, None]
        A *= b[None, :]
        return A
    for i, j in row_blocks(A.shape[0]):
        A[i:j] *= a[i:j, None]
        A[i:j] *= b
    return A


def add_outer(A: Array, c: float, s: Array) -> Array:
    """Return A + c s sᵀ of a symmetric A; consumes A."""
    if is_numpy_array(A) and A.flags.c_contiguous:
        # A is symmetric, so its transpose (LAPACK's order) may be updated in its place.
        ger = _blas("ger", A.dtype.char)
        ger(c, s, s, a=A.T, overwrite_a=True)
        return A
    if is_torch_array(A):
        return A.addr_(s, s, alpha=float(c))
    return A + c * s[:, None] * s[None, :]
