"""What changes if the kernel is tuned on each training set instead of once on all rows."""

from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.resampling.pool import Averages, mixed

_MOST = 2.0
"""Largest variance of a prediction through the kernel, in units of its posterior variance."""


class TuningEffect(NamedTuple):
    """How a kernel that is tuned on each training set changes held-out averages.

    A kernel tuned on all rows has seen the held-out ones: without example i its prediction moves by
    ``shift`` and its variance by ``growth``. And a kernel tuned on fewer rows scatters more: along
    direction j, with λ_j the information of all rows in units of the prior, a share r of the rows
    leaves a variance 1/(1 + r λ_j), which ``scatter`` turns into that of each prediction.
    """

    shift: Array
    """Change of each prediction, of shape (n,)."""
    growth: Array
    """Change of the log of each variance, noise included, of shape (n,)."""
    scatter: Array
    """Squared change of each prediction along each direction, of shape (n, k)."""
    information: Array
    """λ, of shape (k,)."""
    noise: float = 0.0
    """Noise in the variances that grow."""
    wider: float = 1.0
    """By how much the kernel's variance exceeds that of the first order."""

    def part(self, rows: Any) -> "TuningEffect":
        """Return the effect on some of the rows."""
        shift, growth, scatter = self.shift[rows], self.growth[rows], self.scatter[rows]
        return self._replace(shift=shift, growth=growth, scatter=scatter)

    def __call__(self, c: Averages, share: float) -> Averages:
        """Return held-out averages over training sets with this share of the rows."""
        if c.parts:
            return mixed(tuple((p, self(part, share)) for p, part in c.parts))
        scatter = 1.0 / (1.0 + share * self.information) - 1.0 / (1.0 + self.information)
        # A first order in θ says nothing about moves far larger than what is uncertain anyway.
        more = np.minimum(self.wider * (self.scatter @ np.maximum(scatter, 0.0)), _MOST * c.G)
        floor = np.finfo(float).eps * c.G
        G = np.maximum((c.G + self.noise) * np.exp(self.growth) - self.noise, floor)
        chi = None if c.chi is None else c.chi * G / c.G
        return Averages(G, c.R + self.shift, c.V + more, chi)
