"""Special functions for arrays of any library, accurate far into the tails."""

import math

from array_api_compat import is_cupy_array, is_torch_array
from scipy import special

from cavity.arrays.standard import Array, is_numpy_array, same_kind, to_numpy


def _special(name: str, x: Array) -> Array:
    """Evaluate a special function by the array's own library, or else through NumPy."""
    if is_numpy_array(x) or isinstance(x, float):
        return getattr(special, name)(x)
    if is_torch_array(x):
        import torch

        return getattr(torch.special, name)(x)
    if is_cupy_array(x):
        from cupyx.scipy import special as cupy_special

        return getattr(cupy_special, name)(x)
    return same_kind(getattr(special, name)(to_numpy(x)), x)


def log_ndtr(z: Array) -> Array:
    """Return log Φ(z)."""
    return _special("log_ndtr", z)


def ndtr(z: Array) -> Array:
    """Return Φ(z)."""
    if is_torch_array(z):
        # PyTorch's own ndtr is (1 + erf)/2, which has no digits left in the lower tail.
        return 0.5 * _special("erfc", -z * math.sqrt(0.5))
    return _special("ndtr", z)


def erfcx(x: Array) -> Array:
    """Return exp(x²) erfc(x)."""
    return _special("erfcx", x)
