"""Triangular matrices by matrix products, in place.

Accelerators multiply matrices an order of magnitude faster than they solve triangular systems.
Both functions here halve the matrix until a block is small, and spend two thirds of n³ operations,
nearly all in products. They overwrite their argument; views of it must write through (NumPy,
PyTorch and CuPy arrays do).
"""

from collections.abc import Callable
from typing import Any

__all__ = ["gram_lower_blocked", "invert_lower_blocked"]

Array = Any
_SMALL = 1024


def invert_lower_blocked(
    L: Array, invert_small: Callable[[Array], Array], small: int = _SMALL
) -> Array:
    """Overwrite a lower triangular L by its inverse.

    [[A, 0], [B, C]]⁻¹ = [[A⁻¹, 0], [−C⁻¹ B A⁻¹, C⁻¹]].
    """
    n = L.shape[0]
    if n <= small:
        L[...] = invert_small(L)
        return L
    h = n // 2
    A = invert_lower_blocked(L[:h, :h], invert_small, small)
    C = invert_lower_blocked(L[h:, h:], invert_small, small)
    L[h:, :h] = -(C @ (L[h:, :h] @ A))
    return L


def gram_lower_blocked(L: Array, small: int = _SMALL) -> Array:
    """Overwrite a lower triangular L by Lᵀ L; only the lower triangle of the result is right.

    With L = [[A, 0], [B, C]] it is [[AᵀA + BᵀB, ·], [CᵀB, CᵀC]].
    """
    n = L.shape[0]
    if n <= small:
        L[...] = L.T @ L
        return L
    h = n // 2
    B, C = L[h:, :h], L[h:, h:]
    corner = gram_lower_blocked(L[:h, :h], small)
    corner += B.T @ B
    L[h:, :h] = C.T @ B
    gram_lower_blocked(C, small)
    return L
