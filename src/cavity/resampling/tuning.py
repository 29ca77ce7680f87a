"""What changes if the kernel is tuned on each training set instead of once on all rows."""

from typing import NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.resampling.pool import Averages, mixed


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
    level: float
    """Mean square of the predictions from all other rows."""
    noise: float = 0.0
    """Noise in the variances that grow."""

    def __call__(self, c: Averages, share: float) -> Averages:
        """Return held-out averages over training sets with this share of the rows."""
        if c.parts:
            return mixed(tuple((p, self(part, share)) for p, part in c.parts))
        scatter = 1.0 / (1.0 + share * self.information) - 1.0 / (1.0 + self.information)
        # Predictions from fewer rows are closer to zero, and so are their changes.
        less = min(1.0, float(np.mean(c.R**2)) / self.level) if self.level > 0.0 else 1.0
        # A first order in θ says nothing about moves larger than what is uncertain anyway.
        more = np.minimum(less * (self.scatter @ np.maximum(scatter, 0.0)), c.G)
        floor = np.finfo(float).eps * c.G
        G = np.maximum((c.G + self.noise) * np.exp(self.growth) - self.noise, floor)
        chi = None if c.chi is None else c.chi * G / c.G
        return Averages(G, c.R + np.sqrt(less) * self.shift, c.V + more, chi)
