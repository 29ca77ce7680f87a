"""How often an example appears in a random training set."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import poisson

from cavity.arrays import Array

# Occupations that are rarer than this in all training sets together count as the largest other.
_NEGLIGIBLE = 1e-6


class Occupancy(NamedTuple):
    """Occupations s = 1, 2, ..., k and their probabilities, of shape (k, n).

    Draws of one example may differ in their targets (of examples with equal inputs): ``scatter``
    is the variance of the average target of s draws, of shape (k, n), or zero.
    """

    s: Array
    probability: Array
    scatter: Array | float = 0.0


def most_draws(rate: Array) -> float:
    """Return how often an example is drawn at most, with replacement."""
    return max(1.0, float(poisson.isf(_NEGLIGIBLE, np.max(rate))))


def _bernoulli(rate: Array, most: float | None = None) -> Occupancy:
    """Drawn without replacement: an example is in or out."""
    return Occupancy(np.ones(1), np.minimum(rate, 1.0)[None, :])


def _poisson(rate: Array, most: float | None = None) -> Occupancy:
    """Drawn with replacement, at most as often as given."""
    s = np.arange(1.0, (most or most_draws(rate)) + 1.0)
    return Occupancy(s, lumped(poisson(rate), s[:, None]))


def lumped(law: Any, s: Array) -> Array:
    """Return the probabilities of s = 1, ..., k draws, and of more as if they were k.

    What were left out would count as absent, where errors may be a million times larger.
    """
    p: Array = law.pmf(s)
    p[-1] = law.sf(s[-1] - 1.0)
    return p


LAWS: dict[str, Callable[..., Occupancy]] = {"subsample": _bernoulli, "bootstrap": _poisson}
"""From each example's expected number of draws to its occupancy, by the kind of resampling.

The largest number of draws may be given; it is that of these examples by default."""
