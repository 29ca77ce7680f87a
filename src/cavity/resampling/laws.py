"""How often an example appears in a random training set."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import poisson

from cavity.arrays import Array

# Occupations that are rarer than this in all training sets together are ignored.
_NEGLIGIBLE = 1e-6


class Occupancy(NamedTuple):
    """Occupations s = 1, 2, ..., k and their probabilities, of shape (k, n)."""

    s: Array
    probability: Array


def _bernoulli(rate: Array) -> Occupancy:
    """Drawn without replacement: an example is in or out."""
    return Occupancy(np.ones(1), np.minimum(rate, 1.0)[None, :])


def _poisson(rate: Array) -> Occupancy:
    """Drawn with replacement."""
    most = max(1.0, float(poisson.isf(_NEGLIGIBLE, np.max(rate))))
    s = np.arange(1.0, most + 1.0)
    return Occupancy(s, poisson.pmf(s[:, None], rate))


LAWS: dict[str, Callable[[Array], Occupancy]] = {"subsample": _bernoulli, "bootstrap": _poisson}
"""From each example's expected number of draws to its occupancy, by the kind of resampling."""
