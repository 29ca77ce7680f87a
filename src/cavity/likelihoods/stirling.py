"""Differences of log Γ that keep their digits for large arguments."""

import math
from typing import Any

import numpy as np
from scipy.special import gammaln

from cavity.arrays import Array, to_numpy

_LARGE = 50.0
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


def remainder(a: Any) -> Array:
    """Return log Γ(a) less Stirling's (a − ½) log a − a + ½ log 2π, for a > 0."""
    a = np.asarray(to_numpy(a), dtype=float)
    x = 1.0 / np.maximum(a, _LARGE)
    series = x * (1 / 12 - x**2 * (1 / 360 - x**2 * (1 / 1260 - x**2 / 1680)))
    small = np.minimum(a, _LARGE)
    direct = gammaln(small) - (small - 0.5) * np.log(small) + small - _HALF_LOG_2PI
    return np.where(a > _LARGE, series, direct)


def log_rising(k: float, y: Any) -> Array:
    """Return log Γ(k + y) − log Γ(k) − y log k, which vanishes as k grows."""
    y = np.asarray(to_numpy(y), dtype=float)
    return (k + y - 0.5) * np.log1p(y / k) - y + remainder(k + y) - remainder(k)
