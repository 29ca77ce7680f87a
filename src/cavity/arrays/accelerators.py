"""Linear algebra outside NumPy, and triangles half by half.

Accelerators multiply matrices an order of magnitude faster than they solve triangular systems.
Work on halves is nearly all products.
"""

from collections.abc import Callable

import numpy as np
from array_api_compat import is_torch_array

from cavity.arrays.standard import Array, NotPositiveDefiniteError, identity, namespace

_SMALL = 1024


def cholesky(A: Array) -> Array:
    """Return L, for PyTorch and for libraries that raise NumPy's error; PyTorch consumes A."""
    if is_torch_array(A):
        xp = namespace(A)
        # Only in its own order does PyTorch work in place, which saves a matrix.
        F = A.mT if A.is_contiguous() else A
        info = xp.empty((), dtype=xp.int32, device=A.device)
        L, info = xp.linalg.cholesky_ex(F, out=(F, info))
        return positive(L, int(info))
    try:
        return namespace(A).linalg.cholesky(A)
    except np.linalg.LinAlgError as error:
        raise NotPositiveDefiniteError(str(error)) from error


def positive(L: Array, info: int) -> Array:
    """Return L, unless LAPACK says that its matrix was not positive definite."""
    if info:
        raise NotPositiveDefiniteError(f"the leading minor of order {info} is not positive")
    return L


def solve_lower(L: Array, b: Array, *, transpose: bool = False) -> Array:
    """Return L⁻¹ b, or L⁻ᵀ b, for PyTorch, which solves for matrices only."""
    A, B = L.T if transpose else L, b if b.ndim == 2 else b[:, None]
    return namespace(L).linalg.solve_triangular(A, B, upper=transpose).reshape(b.shape)


def invert_lower(L: Array) -> Array:
    """Return L⁻¹, for PyTorch."""
    return invert_halves(L, lambda A: solve_lower(A, identity(A)), lambda C, B, A: -(C @ (B @ A)))


def invert_halves(
    L: Array,
    small_inverse: Callable[[Array], Array],
    multiply: Callable[[Array, Array, Array], Array],
    small: int = _SMALL,
) -> Array:
    """Overwrite a lower triangular L by its inverse; views of L have to write through.

    [[A, 0], [B, C]]⁻¹ = [[A⁻¹, 0], [−C⁻¹ B A⁻¹, C⁻¹]], where multiply(C, B, A) = −C B A.
    """
    n = L.shape[0]
    if n <= small:
        L[...] = small_inverse(L)
        return L
    h = n // 2
    A = invert_halves(L[:h, :h], small_inverse, multiply, small)
    C = invert_halves(L[h:, h:], small_inverse, multiply, small)
    L[h:, :h] = multiply(C, L[h:, :h], A)
    return L


def lower_gram(L: Array, *, small: int = _SMALL) -> Array:
    """Overwrite a lower triangular L by all of Lᵀ L; views of L have to write through.

    With L = [[A, 0], [B, C]] it is [[AᵀA + BᵀB, BᵀC], [CᵀB, CᵀC]].
    """
    n = L.shape[0]
    if n <= small:
        L[...] = L.T @ L
        return L
    h = n // 2
    A, B, C = L[:h, :h], L[h:, :h], L[h:, h:]
    lower_gram(A, small=small)
    A += B.T @ B
    L[h:, :h] = C.T @ B
    L[:h, h:] = L[h:, :h].T
    lower_gram(C, small=small)
    return L


def add_to_diagonal(A: Array, d: Array | float) -> Array:
    """Return A + diag(d), in place, for PyTorch."""
    A.diagonal().add_(d)
    return A


def inner_product(A: Array, B: Array) -> float:
    """Return Σ_ij A_ij B_ij, for PyTorch: symmetric matrices are vectors in either order."""
    a, b = ((M if M.is_contiguous() else M.T).reshape(-1) for M in (A, B))
    return float(a @ b)
