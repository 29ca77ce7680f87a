"""What a measure may come out as at a size that nobody has seen yet."""

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from cavity.arrays import Array

# Central intervals of 90 % were settled on unseen data. They hold everything between the extreme
# continuations; narrower ones are that interval, shrunk.
_SETTLED = float(norm.ppf(0.95))


class ForecastDistribution(NamedTuple):
    """Two halves around a forecast, the median: how far values may lie below and above it.

    z standard deviations lead as far as z sampling errors and the extreme continuation together,
    as the sides of a right angle. More rows never make a value below the same goal less likely, as
    all continuations fall.

    Examples
    --------
    >>> import numpy as np
    >>> found = ForecastDistribution(np.array(0.2), np.array(0.0), np.array(0.0), sampling=0.05)
    >>> print(f"{found.probability(0.25):.2f} {found.quantile(0.975):.3f}")
    0.84 0.298
    """

    value: Array
    """The forecast."""
    below: Array
    """How far the lowest continuation is below it."""
    above: Array
    """How far the highest one is above it."""
    sampling: float
    """Standard error of the present level."""
    lowest: float = 0.0
    """The smallest value that the measure can have."""
    highest: float = np.inf
    """The largest one."""

    def quantile(self, p: float) -> Array:
        """Return what the measure stays below with probability p."""
        z = float(norm.ppf(p))
        off = self.above if z > 0.0 else self.below
        outer = np.hypot(z * self.sampling, off)
        inner = abs(z) / _SETTLED * np.hypot(_SETTLED * self.sampling, off)
        reach = outer if abs(z) >= _SETTLED else inner
        return np.clip(self.value + np.sign(z) * reach, self.lowest, self.highest)

    def probability(self, goal: float) -> Array:
        """Return the probability that the measure is at most the goal."""
        gap: Array = goal - self.value
        off: Array = np.where(gap > 0.0, self.above, self.below)
        settled = np.hypot(_SETTLED * self.sampling, off)
        with np.errstate(divide="ignore", invalid="ignore"):
            inner = _SETTLED * np.abs(gap) / settled
            outer = np.sqrt(np.maximum(gap**2 - off**2, 0.0)) / self.sampling
        z = np.where(np.abs(gap) > settled, outer, inner)
        p = norm.cdf(np.where(gap == 0.0, 0.0, np.sign(gap) * z))
        return np.where(goal >= self.highest, 1.0, np.where(goal < self.lowest, 0.0, p))
