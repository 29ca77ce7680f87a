"""Quantiles of the targets when the latent values are Gaussian."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtri

from cavity.arrays import Array, same_kind, to_numpy
from cavity.likelihoods.base import Likelihood
from cavity.likelihoods.numerical import averages
from cavity.sites import Marginals

_COUNTS = {"counts", "codes"}
_ROUNDS = 200
_LARGEST = float(np.finfo(float).max)
_LOGS = float(np.log(np.nextafter(0.0, 1.0))), float(np.log(_LARGEST))
"""Logarithms of the smallest and the largest positive float."""
# In units of a standard normal, and relative to the quantile.
_NORMAL, _RELATIVE = 1e-11, 1e-13

Distance = Callable[[Array], Array]


def quantiles(lik: Likelihood, q: Marginals, levels: Any) -> Array:
    """Return quantiles of y under Gaussians over f: a row for each level.

    Of counts it is the smallest whole number with a probability of at least the level to be there
    or below. What is beyond the largest float is infinite.

    Parameters
    ----------
    lik : Likelihood
        One with a ``cdf``.
    q : Marginals
        Gaussians over f.
    levels : float or sequence of float
        Probabilities between 0 and 1.

    Returns
    -------
    array of shape (levels, ...)

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.likelihoods import Poisson, quantiles
    >>> from cavity.sites import Marginals
    >>> quantiles(Poisson(), Marginals(np.array([0.0, 3.0]), np.array([0.1, 0.1])), [0.05, 0.95])
    array([[ 0., 10.],
           [ 3., 36.]])
    """
    m, v = (to_numpy(part) for part in q)
    p = _checked(levels).reshape((-1,) + (1,) * m.ndim)
    if lik.quadratic:
        mean, variance = lik.response(Marginals(m, v))
        return same_kind(mean + np.sqrt(variance) * ndtri(p), q.mean)
    wide = Marginals(*np.broadcast_arrays(m, v, p + 0.0 * m)[:2])
    p = np.broadcast_to(p, wide.mean.shape)

    def below(y: Array) -> Array:
        [mass] = averages(lambda f: [lik.cdf(y, f)], wide)
        return np.clip(mass, 0.0, 1.0)

    if lik.support in _COUNTS:
        return same_kind(_whole(lambda y: below(y) - p, wide), q.mean)
    positive = lik.support == "positive"
    target, ends = ndtri(p), _LOGS if positive else (-np.inf, np.inf)
    distance: Distance = lambda u: ndtri(below(np.exp(u) if positive else u)) - target  # noqa: E731
    found = _real(distance, wide, ends)
    return same_kind(np.exp(found) if positive else found, q.mean)


def _checked(levels: Any) -> Array:
    p = np.atleast_1d(np.asarray(levels, dtype=float))
    if p.ndim != 1 or not np.all((p > 0.0) & (p < 1.0)):
        raise ValueError(f"levels must be numbers between 0 and 1, got {levels!r}.")
    return p


def _whole(distance: Distance, q: Marginals) -> Array:
    """Return the smallest whole numbers at which the distance is not negative, by bisection."""
    low, high = -1.0 + 0.0 * q.mean, np.ceil(np.exp(np.minimum(q.mean, _LOGS[1])))
    growth = 2.0
    while np.any(short := (distance(high) < 0.0) & (high < _LARGEST)):
        with np.errstate(over="ignore"):
            more = np.minimum(growth * high + 1.0, _LARGEST)
        low, high = np.where(short, high, low), np.where(short, more, high)
        growth = min(growth**2, 1e150)
    beyond = (high == _LARGEST) & (distance(high) < 0.0)
    for _ in range(_ROUNDS):
        middle = np.floor(_between(low, high))
        if not np.any((middle > low) & (middle < high)):
            break
        enough = distance(middle) >= 0.0
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(beyond, np.inf, high)


def _between(low: Array, high: Array) -> Array:
    """Return the middle, or that of the logarithms where the numbers are far apart."""
    with np.errstate(over="ignore"):
        apart = high > 4.0 * (low + 1.0)
    return np.where(apart, np.sqrt(low + 1.0) * np.sqrt(high), low + 0.5 * (high - low))


def _real(distance: Distance, q: Marginals, ends: tuple[float, float]) -> Array:
    """Return where the distance is zero: regula falsi, with a bisection every third time.

    If that is not between the ends it is infinite.
    """
    (low, at_low), (high, at_high) = (_beyond(distance, q, side, ends) for side in (-1.0, 1.0))
    under, over = at_low > 0.0, at_high < 0.0
    x = 0.5 * (low + high)
    with np.errstate(invalid="ignore"):
        for k in range(_ROUNDS):
            middle = 0.5 * (low + high)
            secant = (low * at_high - high * at_low) / (at_high - at_low)
            inside = (secant > low) & (secant < high) & (k % 3 < 2)
            x = np.where(inside, secant, middle)
            at_x = distance(x)
            narrow = high - low <= _RELATIVE * (np.abs(low) + np.abs(high))
            if np.all(narrow | (np.abs(at_x) <= _NORMAL)):
                break
            left = at_x < 0.0
            low, at_low = np.where(left, x, low), np.where(left, at_x, at_low)
            high, at_high = np.where(left, high, x), np.where(left, at_high, at_x)
    return np.where(under, -np.inf, np.where(over, np.inf, x))


def _beyond(
    distance: Distance, q: Marginals, side: float, ends: tuple[float, float]
) -> tuple[Array, Array]:
    """Return points beyond the quantile on one side, or at the end there, and their distances."""
    step = 1.0 + np.sqrt(q.variance)
    x = np.clip(q.mean + side * step, *ends)
    for _ in range(_ROUNDS):
        at_x = distance(x)
        beyond = side * at_x > 0.0
        if np.all(beyond | (x == ends[side > 0.0])):
            break
        step = 2.0 * step
        x = np.where(beyond, x, np.clip(q.mean + side * step, *ends))
    return x, at_x
