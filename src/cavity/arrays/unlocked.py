"""SciPy's BLAS without Python's lock: products in several threads at a time.

SciPy's own wrappers hold the lock while BLAS computes, so that threads that visit different blocks
of rows would wait for each other. These are the same routines, called through the pointers that
SciPy offers to Cython. They take and return float64 matrices in Fortran's order.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_blas

from cavity.arrays.standard import Array

_YES = {True: b"T", False: b"N"}


@cache
def _routine(name: str, count: int) -> Callable[..., None]:
    """Return a BLAS routine of so many arguments, all of them pointers."""
    table: Any = cython_blas.__pyx_capi__
    capsule = table[name]
    get_name, get_pointer = (
        ctypes.pythonapi.PyCapsule_GetName,
        ctypes.pythonapi.PyCapsule_GetPointer,
    )
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer = get_pointer(capsule, get_name(capsule))
    # A function of this kind lets go of the lock while it runs.
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)(pointer)


def _call(name: str, *arguments: bytes | int | float | Array) -> None:
    kept = [_held(argument) for argument in arguments]
    _routine(name, len(kept))(*(where for _, where in kept))


def _held(argument: Any) -> tuple[Any, Any]:
    """Return something that stays in memory during the call, and its address."""
    if isinstance(argument, np.ndarray):
        return argument, argument.ctypes.data
    kinds: dict[type, Any] = {bytes: ctypes.c_char, int: ctypes.c_int, float: ctypes.c_double}
    value = kinds[type(argument)](argument)
    return value, ctypes.addressof(value)


def trmm(
    alpha: float,
    a: Array,
    b: Array,
    *,
    side: int = 0,
    lower: int = 0,
    trans_a: int = 0,
    overwrite_b: bool = False,
) -> Array:
    """Return alpha op(a) b of a triangular a, or alpha b op(a) with ``side``."""
    a = np.asfortranarray(a)
    b = np.asfortranarray(b) if overwrite_b else np.array(b, order="F")
    m, n = b.shape
    how = (b"R" if side else b"L", b"L" if lower else b"U", _YES[bool(trans_a)], b"N")
    _call("dtrmm", *how, m, n, float(alpha), a, max(1, a.shape[0]), b, max(1, m))
    return b


def syrk(alpha: float, a: Array, *, trans: int = 0, lower: int = 0) -> Array:
    """Return one triangle of alpha a aᵀ, or of alpha aᵀ a with ``trans``; zeros in the other."""
    a = np.asfortranarray(a)
    n, k = a.shape[::-1] if trans else a.shape
    c = np.zeros((n, n), order="F")
    how = (b"L" if lower else b"U", _YES[bool(trans)])
    _call("dsyrk", *how, n, k, float(alpha), a, max(1, a.shape[0]), 0.0, c, max(1, n))
    return c


def gemm(alpha: float, a: Array, b: Array, *, trans_a: int = 0, trans_b: int = 0) -> Array:
    """Return alpha op(a) op(b)."""
    a, b = np.asfortranarray(a), np.asfortranarray(b)
    m, k = a.shape[::-1] if trans_a else a.shape
    n = b.shape[0] if trans_b else b.shape[1]
    c = np.zeros((m, n), order="F")
    how = (_YES[bool(trans_a)], _YES[bool(trans_b)])
    rest = (float(alpha), a, max(1, a.shape[0]), b, max(1, b.shape[0]), 0.0, c, max(1, m))
    _call("dgemm", *how, m, n, k, *rest)
    return c
