"""Linear algebra: NumPy arrays by SciPy's LAPACK and BLAS, in place; others as `by_library` says.

A function that *consumes* an array may overwrite it and return its memory. NumPy's own products
run in the threads of a different BLAS from SciPy's. The idle threads of either take time from the
other, so everything here uses SciPy's.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from cavity.arrays import accelerators, unlocked
from cavity.arrays.standard import (
    Array,
    by_library,
    identity,
    namespace,
    row_blocks,
)

_LARGE = 2**16
"""Elements from which on the longer call (some 50 µs) does not matter."""


@cache
def _lapack(name: str, dtype: str) -> Callable[..., Any]:
    return get_lapack_funcs(name, dtype=np.dtype(dtype))  # type: ignore[return-value]


@cache
def _blas(name: str, dtype: str) -> Callable[..., Any]:
    return get_blas_funcs(name, dtype=np.dtype(dtype))


def _product(name: str, A: Array) -> Callable[..., Any]:
    """Return a BLAS routine; for a large matrix one that lets other threads work meanwhile."""
    if A.dtype.char == "d" and A.size >= _LARGE:
        return getattr(unlocked, name)  # type: ignore[no-any-return]
    return _blas(name, A.dtype.char)


def _fortran(A: Array) -> tuple[Array, bool]:
    """Return A, or else Aᵀ, in LAPACK's order without a copy, and whether it is A."""
    rows, columns = A.strides
    return (A, True) if rows < columns else (A.T, False)


def cholesky(A: Array) -> Array:
    """Return L, lower triangular with L Lᵀ = A; consumes A."""
    if not isinstance(A, np.ndarray):
        return accelerators.cholesky(A)
    F, lower = _fortran(A)
    L, info = _lapack("potrf", A.dtype.char)(F, lower=lower, overwrite_a=True, clean=True)
    return accelerators.positive(L if lower else L.T, info)


@by_library(
    lambda L, b, *, transpose=False: namespace(L, b).linalg.solve(L.T if transpose else L, b),
    torch=accelerators.solve_lower,
)
def solve_lower(L: Array, b: Array, *, transpose: bool = False) -> Array:
    """Return L⁻¹ b, or L⁻ᵀ b, for a lower triangular L and a vector or matrix b."""
    F, lower = _fortran(L)
    x, _ = _lapack("trtrs", L.dtype.char)(F, b, lower=lower, trans=int(transpose == lower))
    return x


@by_library(lambda L: solve_lower(L, identity(L)), torch=accelerators.invert_lower)
def invert_lower(L: Array) -> Array:
    """Return L⁻¹ of a lower triangular L; consumes L, unless it is mapped read-only from a file."""
    L = L if L.flags.writeable else L.copy()
    # LAPACK's own is slow up to n ≈ 1000.
    return accelerators.invert_halves(L, _small_inverse, _corner, small=64)


def _small_inverse(L: Array) -> Array:
    F, lower = _fortran(L)
    X, _ = _lapack("trtri", L.dtype.char)(F, lower=lower)
    return X if lower else X.T


def _corner(C: Array, B: Array, A: Array) -> Array:
    """Return −C B A of lower triangular C and A; in C order as −Aᵀ Bᵀ Cᵀ, transposed."""
    F, lower = _fortran(B)
    left, right = (C, A) if lower else (A.T, C.T)
    trmm = _blas("trmm", B.dtype.char)
    product = trmm(-1.0, left, F, lower=lower)
    product = trmm(1.0, right, product, side=1, lower=lower, overwrite_b=True)
    return product if lower else product.T


@by_library(lambda L, V, *, transpose=False: (L.T if transpose else L) @ V)
def lower_product(L: Array, V: Array, *, transpose: bool = False) -> Array:
    """Return L V or Lᵀ V of a lower triangular L and a vector or matrix V."""
    F, lower = _fortran(L)
    trans = int(transpose == lower)
    if V.ndim == 1:
        return _blas("trmv", L.dtype.char)(F, V, lower=lower, trans=trans)
    return _product("trmm", V)(1.0, F, V, lower=lower, trans_a=trans)


@by_library(lambda L: L.T @ L, torch=accelerators.lower_gram)
def lower_gram(L: Array) -> Array:
    """Return the symmetric matrix Lᵀ L of a lower triangular L, in C order; consumes L."""
    F, lower = _fortran(L)
    G, _ = _lapack("lauum", L.dtype.char)(F, lower=lower, overwrite_c=True)
    return mirror_lower(G).T if lower else mirror_lower(G.T)


def mirror_lower(A: Array) -> Array:
    """Return a NumPy matrix with its lower triangle copied onto the upper one; consumes A."""
    for i, j in row_blocks(A.shape[0]):
        A[i:j, j:] = A[j:, i:j].T
        inner = A[i:j, i:j]
        np.copyto(inner, inner.T, where=_above_diagonal(j - i))
    return A


@by_library(lambda A: A)
def mirrored(A: Array) -> Array:
    """Return what `gram` or `signed_gram` has returned as a whole symmetric matrix; consumes it."""
    return mirror_lower(A)


@cache
def _above_diagonal(n: int) -> Array:
    return np.tri(n, k=-1, dtype=bool).T


@by_library(lambda W: W.T @ W)
def gram(W: Array) -> Array:
    """Return Wᵀ W; NumPy fills in the lower triangle only, to be factored."""
    F, tall = _fortran(W)
    return _product("syrk", W)(1.0, F, trans=int(tall), lower=1)


@by_library(lambda W, d: W.T @ (d[:, None] * W))
def signed_gram(W: Array, d: Array) -> Array:
    """Return Wᵀ diag(d) W; NumPy fills in the lower triangle only.

    Rows with a positive and with a negative d are squares each by themselves: half of the work.
    """
    found = [gram(np.sqrt(np.abs(d[part]))[:, None] * W[part]) for part in (d > 0.0, d < 0.0)]
    return found[0] - found[1]


def scale_both(A: Array, a: Array, b: Array) -> Array:
    """Return diag(a) A diag(b); consumes A."""
    A *= a[:, None]
    A *= b[None, :]
    return A


@by_library(lambda A, d: A + identity(A) * d, torch=accelerators.add_to_diagonal)
def add_to_diagonal(A: Array, d: Array | float) -> Array:
    """Return A + diag(d); consumes A."""
    np.einsum("ii->i", A)[...] += d
    return A


def congruence_plus_identity(K: Array, s: Array) -> Array:
    """Return I + diag(s) K diag(s) of a symmetric K, to be factored."""
    B = K * s[:, None]
    B *= s[None, :]
    # In LAPACK's order, if K is in C order.
    return add_to_diagonal(B, 1.0).T


@by_library(
    lambda A, c, s: A + c * s[:, None] * s[None, :],
    torch=lambda A, c, s: A.addr_(s, s, alpha=float(c)),
)
def add_outer(A: Array, c: float, s: Array) -> Array:
    """Return A + c s sᵀ of a symmetric A; consumes A."""
    F, by_columns = _fortran(A)
    # A is symmetric, so that its transpose may be updated instead.
    F = _blas("ger", A.dtype.char)(c, s, s, a=F, overwrite_a=True)
    return F if by_columns else F.T


@by_library(lambda A, B: A @ B)
def matmul(A: Array, B: Array) -> Array:
    """Return A B of a matrix and a matrix or vector."""
    if not (isinstance(B, np.ndarray) and A.dtype == B.dtype == np.float64):
        return A @ B
    F, by_columns = _fortran(A)
    if B.ndim == 1:
        return _blas("gemv", "d")(1.0, F, B, trans=int(not by_columns))
    # Transposed, so that the result is in C order: Bᵀ Aᵀ.
    E, columns_too = _fortran(B)
    trans = {"trans_a": int(columns_too), "trans_b": int(by_columns)}
    return _product("gemm", A)(1.0, E, F, **trans).T


@by_library(lambda K, v: K @ v)
def symmetric_product(K: Array, v: Array) -> Array:
    """Return K v of a symmetric matrix and a vector; NumPy reads one triangle only."""
    return _blas("symv", K.dtype.char)(1.0, _fortran(K)[0], v, lower=1)


@by_library(lambda A, B: float(namespace(A).sum(A * B)), torch=accelerators.inner_product)
def inner_product(A: Array, B: Array) -> float:
    """Return Σ_ij A_ij B_ij of two symmetric matrices; NumPy takes them as vectors in any order."""
    return float(_blas("dot", "d")(A.ravel(order="K"), B.ravel(order="K")))


@by_library(lambda A: namespace(A).linalg.vector_norm(A, axis=0) ** 2)
def column_square_sums(A: Array) -> Array:
    """Return the squared norm of each column."""
    return np.einsum("ij,ij->j", A, A)


def pivots(A: Array, tol: float) -> tuple[Array, Array]:
    """Return chol of A among the rows that matter, and these rows, the most important first.

    The factorisation with pivots ends when no diagonal element of the rest exceeds the tolerance.
    """
    C, order, rank, _ = _lapack("pstrf", A.dtype.char)(A, tol=tol, lower=1)
    return np.tril(C[:rank, :rank]), order[:rank] - 1


def semidefinite_factor(A: Array, tol: float) -> Array:
    """Return F of shape (n, rank) with F Fᵀ = A up to the tolerance; A may be singular."""
    C, order, rank, _ = _lapack("pstrf", A.dtype.char)(A, tol=tol, lower=1)
    F = np.empty((len(A), rank))
    F[order - 1] = np.tril(C)[:, :rank]
    return F
