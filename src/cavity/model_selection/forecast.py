"""How a learning curve continues beyond the data.

Learning curves of Gaussian processes fall as powers of the number of examples towards a floor.
A curve e(m) = a + b m^−c is fitted, with most weight on the upper end, and continued with the
power c that fits best; other powers that fit nearly as well give the width of the interval. The
kernel is assumed to stay as it is, and new examples to be like the old ones. So what kernels tuned
on fewer rows cost counts within the data, but not for the shape of what comes after.

Up to the size of the pool a forecast is the curve itself, and at that size it is the leave-one-out:
what comes after continues from there.
"""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.optimize import minimize_scalar, nnls

from cavity.arrays import Array
from cavity.model_selection.distribution import ForecastDistribution

_POWERS = np.geomspace(0.1, 3.0, 40)
# A fit is nearly as good as the best if its error is at most twice as large, or below this share.
_AS_GOOD, _NEGLIGIBLE = 2.0, 2e-3
# The error of the best fit at the end of the curve fades as this power of the size.
_FADING = 4.0
FARTHEST = 1000.0
# This many successes and failures are added to a rate before its standard error is taken (Agresti
# and Coull): no error among a hundred examples does not mean that the error rate is zero.
_ADDED = 2.0
# The examples are used for training and for testing, which makes the average vary more: by about 2
# after Nadeau and Bengio for ten folds. With this, 90 % intervals had that coverage on six tables.
_SHARED_EXAMPLES = 1.75


class Forecast(NamedTuple):
    """The expected value of a measure at a training size.

    Attributes
    ----------
    size : int or array
    value : float or array
    low, high : float or array
        Ends of the interval.
    """

    size: Array
    value: Array
    low: Array
    high: Array


def one_goal(asked_of: str, **goals: float | None) -> tuple[str, float]:
    """Return the name and value of the one goal that is given."""
    given = [(name, value) for name, value in goals.items() if value is not None]
    if len(given) != 1:
        ways = " or ".join(f"{asked_of}({name}=...)" for name in goals)
        raise ValueError(f"Give one target: {ways}.")
    [(name, value)] = given
    if not np.isfinite(value):
        raise ValueError(f"The goal {name}={value!r} is no finite number.")
    return name, value


def forecast_sizes(n: int) -> Array:
    """Return the sizes of a pool of n examples that a forecast's shape is fitted to.

    They end before n: if all other examples are drawn, nothing varies any more, and an error
    rate is a count of examples rather than an average.
    """
    return np.unique(np.round(np.geomspace(max(2.0, n / 8.0), max(2.0, 0.9 * n), 8)))


def smaller_sizes(first: float) -> Array:
    """Return sizes from one example up to below the first that the continuation is fitted to."""
    return np.unique(np.round(np.geomspace(1.0, first, 6)))[:-1] if first > 1.0 else np.empty(0)


def sampling_error(points: Array, share: Array, *, rate: bool) -> float:
    """Return the standard error of a pool's average as an estimate for its population.

    ``points`` is the measure at each example, ``rate`` whether that is the probability of an error.
    """
    mean, effective = float(points @ share), 1.0 / float(np.sum(share**2))
    variance = float((points - mean) ** 2 @ share)
    return sampling_error_of(mean, variance, effective, rate=rate)


def sampling_error_of(mean: float, variance: float, effective: float, *, rate: bool) -> float:
    """Return the same from the mean and the variance of the points, and their effective number."""
    if not rate:
        return float(np.sqrt(_SHARED_EXAMPLES * max(variance, 0.0) / effective))
    effective += 2.0 * _ADDED
    mean += (_ADDED - 2.0 * _ADDED * mean) / effective
    return float(np.sqrt(_SHARED_EXAMPLES * mean * (1.0 - mean) / effective))


class PowerLaw(NamedTuple):
    """A fit a + b x^−c, and its error."""

    a: float
    b: float
    c: float
    misfit: float

    def __call__(self, x: Array) -> Array:
        """Return a + b x^−c."""
        return self.a + self.b * x**-self.c


@dataclass(frozen=True)
class ErrorTrend:
    """A learning curve up to nearly the size of its pool, and its continuation.

    Examples
    --------
    >>> import numpy as np
    >>> sizes = np.array([20.0, 40.0, 80.0])
    >>> trend = ErrorTrend(sizes, 0.1 + 2.0 / sizes, sampling=0.01)
    >>> bool(abs(trend(400).value - 0.105) < 0.001)
    True
    """

    sizes: Array
    """Increasing."""
    values: Array
    """Averages of a measure over training sets."""
    sampling: float
    """Standard error of the last value, as an estimate for the population behind the pool."""
    positive: bool = True
    """Whether the measure has a floor at zero."""
    ceiling: float = np.inf
    """The largest value that the measure can have: 1 for an error rate."""
    begin: int = 0
    """Index of the first size that the continuation is fitted to."""
    beyond: int = 0
    """Number of sizes at the end that it is not fitted to, but starts from."""
    shape: Array | None = None
    """Values that the continuation is fitted to, if not those of the curve."""

    @property
    def last(self) -> float:
        """The largest size."""
        return float(self.sizes[-1])

    @cached_property
    def _fitted(self) -> tuple[Array, Array]:
        """Sizes, relative to the largest, and values that the continuation is fitted to."""
        part = slice(self.begin, len(self.sizes) - self.beyond)
        values = self.values if self.shape is None else self.shape
        return self.sizes[part] / self.last, values[part]

    def at(self, n: Any) -> "ErrorTrend":
        """Return this very trend, if it says something about all of these sizes."""
        # Not a number is refused, too.
        if not np.all(np.asarray(n) >= 1):
            raise ValueError(f"A training size must be at least 1; got {n!r}.")
        if np.any(np.asarray(n) < self.sizes[0]):
            raise ValueError(
                f"This curve begins at {self.sizes[0]:.0f} examples and says nothing about fewer; "
                f"got {n!r}. Simulate smaller train_sizes, or use learning_curve()."
            )
        return self

    def __call__(self, n: Array, level: float = 0.9) -> Forecast:
        """Return the forecast at given sizes, with a central interval of the given level."""
        chances = self.distribution(n)
        ends = chances.quantile(0.5 - 0.5 * level), chances.quantile(0.5 + 0.5 * level)
        return Forecast(np.asarray(n, dtype=float), chances.value, *ends)

    def distribution(self, n: Array) -> ForecastDistribution:
        """Return what the measure may come out as, at given sizes."""
        n = np.asarray(n, dtype=float)
        lowest = 0.0 if self.positive else -np.inf
        curves = np.stack([self._through(fit, n) for fit in self._plausible])
        curves = np.clip(curves, lowest, self.ceiling)
        value = curves[0]
        below, above = value - curves.min(axis=0), curves.max(axis=0) - value
        return ForecastDistribution(value, below, above, self.sampling, lowest, self.ceiling)

    def size_for(self, target: float, probability: float = 0.5) -> int | None:
        """Return the smallest size, from the curve's first on, that meets a target.

        It is met with the probability; at one half, if the forecast is at most the target.
        """
        grid = np.unique(np.round(np.geomspace(self.sizes[0], FARTHEST * self.last, 4000)))
        reached = np.flatnonzero(self.distribution(grid).quantile(probability) <= target)
        if not len(reached):
            return None
        low, high = int(grid[max(reached[0] - 1, 0)]), int(grid[reached[0]])

        def meets(n: int) -> bool:
            return bool(self.distribution(np.array(n)).quantile(probability) <= target)

        return low + bisect_left(range(low, high), 1, key=meets)

    def _through(self, fit: PowerLaw, n: Array) -> Array:
        """Return the curve itself up to its end, and the fit beyond, from where the curve ends."""
        x = np.maximum(n / self.last, 1.0)
        ends, values = self._fitted
        # What the fit misses at the end of the sizes that it is for fades away; a last value that
        # it is not for, the leave-one-out, is a matter of level, and stays.
        shape = fit(x) + (values[-1] - fit(ends[-1])) * (x / ends[-1]) ** -_FADING
        level = fit(np.ones(())) + (values[-1] - fit(ends[-1])) * ends[-1] ** _FADING
        if not self.beyond:
            return np.where(n <= self.last, self._inside(n), shape)
        if self.positive and level > 0.0:
            return np.where(n <= self.last, self._inside(n), shape * (self.values[-1] / level))
        return np.where(n <= self.last, self._inside(n), shape + self.values[-1] - level)

    def _inside(self, n: Array) -> Array:
        if len(self.sizes) == 1:
            return np.broadcast_to(self.values[0], np.shape(n))
        log_n = np.log(np.clip(n, self.sizes[0], self.last))
        return PchipInterpolator(np.log(self.sizes), self.values)(log_n)

    @cached_property
    def _plausible(self) -> list[PowerLaw]:
        """The fits that are nearly as good as the best, the best one first."""
        grid = [self._fit(c) for c in _POWERS]
        fits = sorted([*grid, self._refined(grid)], key=lambda fit: fit.misfit)
        negligible = _NEGLIGIBLE * float(np.mean(np.abs(self._fitted[1])))
        enough = max(_AS_GOOD * fits[0].misfit, negligible)
        return [fit for fit in fits if fit.misfit <= enough or fit is fits[0]]

    def _refined(self, grid: list[PowerLaw]) -> PowerLaw:
        """Return the best fit between the neighbours of the best on the grid."""
        best = int(np.argmin([fit.misfit for fit in grid]))
        ends = grid[max(best - 1, 0)].c, grid[min(best + 1, len(grid) - 1)].c
        found = minimize_scalar(
            lambda c: self._fit(c).misfit, bounds=ends, method="bounded", options={"xatol": 1e-6}
        )
        return self._fit(float(found.x))

    def _fit(self, c: float) -> PowerLaw:
        """Least squares for floor and amplitude, neither of them negative."""
        x, values = self._fitted
        # The floor of a measure that has none is free: far below all values.
        lift = 0.0 if self.positive else float(np.min(values)) - np.ptp(values) * 10.0
        basis = np.stack([np.ones_like(x), x**-c], axis=1)
        # The end of the curve matters most for what comes after it.
        (a, b), misfit = nnls(basis * x[:, None], (values - lift) * x)
        return PowerLaw(float(a + lift), float(b), float(c), float(misfit / np.sqrt(np.sum(x**2))))
