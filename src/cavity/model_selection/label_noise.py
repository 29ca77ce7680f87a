"""How many labels are wrong, and which, from what the other rows predict.

Class probabilities P of left-out rows come from labels of which some are wrong, and so they are
too soft. Suppose that the true class has probabilities p ∝ P^s, that a label is wrong with
probability ε, and that a wrong label is any other of the C classes alike. Then the label y has
probability (1 − ε) p_y + ε (1 − p_y)/(C − 1), and is wrong with the second part's share of it. The
labels tell of ε and s together; everything here is an average over their posterior. Where nothing
can be predicted p_y is the same whatever s, the labels do not tell ε, and the count is wide open.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax, ndtr

from cavity.arrays import Array

_MOST, _SHARPEST = 0.5, 20.0
"""The priors are flat, of ε up to the first and of log s up to that of the second."""
_RATES, _POWERS = 60, 20
_ROUNDS, _ENOUGH = 5, 6
"""The grid is made finer until its mass is on this many values of ε."""
_NOTHING = 1e-5
_SMALLEST = 1e-300


@dataclass(frozen=True)
class LabelNoise:
    """Probabilities that labels are wrong, and how many are.

    Attributes
    ----------
    wrong : ndarray of shape (n,)
        Probability that each label is wrong.
    weight, mean, variance : ndarrays
        The number of wrong labels is a mixture: of sums of independent chances, one for each ε and
        s, with these moments.
    """

    wrong: Array
    weight: Array
    mean: Array
    variance: Array

    @property
    def count(self) -> int:
        """The median of the number of wrong labels."""
        return self.quantile(0.5)

    def interval(self, level: float = 0.9) -> tuple[int, int]:
        """Return the ends of a central interval of their number."""
        tail = 0.5 * (1.0 - level)
        return self.quantile(tail), self.quantile(1.0 - tail)

    def quantile(self, p: float) -> int:
        """Return the least number that is not exceeded with probability p."""
        low, high = -1, len(self.wrong)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._up_to(middle) >= p else (middle, high)
        return high

    def _up_to(self, k: int) -> float:
        # Each sum is taken for normal: ε and s spread the count more than that is off.
        spread = np.sqrt(np.maximum(self.variance, _SMALLEST))
        return float(self.weight @ ndtr((k + 0.5 - self.mean) / spread))


def label_noise(proba: Array, codes: Array) -> LabelNoise:
    """Return which labels are wrong, given the class probabilities of left-out rows.

    Parameters
    ----------
    proba : array of shape (n, n_classes)
        What the other rows predict for each row.
    codes : array of shape (n,)
        Labels, as numbers of classes.
    """
    seen = _Seen(np.log(np.maximum(proba, _SMALLEST)), np.asarray(codes))
    rates, powers, weight = _posterior(seen)
    wrong, parts = np.zeros(len(codes)), []
    for j, p in enumerate(map(seen.own, powers)):
        for i in np.flatnonzero(weight[:, j] > _NOTHING * weight.max()):
            each = seen.wrong(p, rates[i])
            wrong += weight[i, j] * each
            parts.append((weight[i, j], np.sum(each), np.sum(each * (1.0 - each))))
    shares, means, variances = np.array(parts).T
    total = shares.sum()
    return LabelNoise(wrong / total, shares / total, means, variances)


def cut_off(wrong: Array, precision: float) -> int:
    """Return how many rows, the likeliest first, have wrong labels in this share on average.

    Parameters
    ----------
    wrong : array of shape (n,)
        Probabilities that labels are wrong, the largest first.
    precision : float
        Least share of wrong labels among the rows that are chosen.
    """
    if not 0.0 < precision < 1.0:
        raise ValueError(f"precision must lie between 0 and 1; got {precision!r}.")
    enough = np.flatnonzero(running_mean(wrong) >= precision)
    return int(enough[-1]) + 1 if len(enough) else 0


def running_mean(wrong: Array) -> Array:
    """Return the mean of each entry and all before it."""
    return np.asarray(np.cumsum(wrong) / np.arange(1, len(wrong) + 1))


@dataclass(frozen=True)
class _Seen:
    """Log probabilities of all classes and the labels that were seen."""

    log_p: Array
    codes: Array

    def own(self, power: float) -> Array:
        """Return the probability of each label as the true class."""
        scores = log_softmax(power * self.log_p, axis=1)
        return np.asarray(np.exp(scores[np.arange(len(self.codes)), self.codes]))

    def log_likelihood(self, p: Array, rate: float) -> float:
        """Return the log probability of all labels."""
        other = self._other(rate)
        return float(np.sum(np.log(other + (1.0 - rate - other) * p)))

    def wrong(self, p: Array, rate: float) -> Array:
        """Return the probability that each label is wrong."""
        part = self._other(rate) * (1.0 - p)
        return np.asarray(part / (part + (1.0 - rate) * p))

    def _other(self, rate: float) -> float:
        return rate / float(self.log_p.shape[1] - 1)


def _posterior(seen: _Seen) -> tuple[Array, Array, Array]:
    """Return values of ε and of s, and the weight of each pair, on a grid around the mass."""
    low, high = np.array([0.0, 0.0]), np.array([_MOST, np.log(_SHARPEST)])
    for _ in range(_ROUNDS):
        rates, logs = _middles(low[0], high[0], _RATES), np.linspace(low[1], high[1], _POWERS)
        weight = _weights(seen, rates, np.exp(logs))
        found = list(_reach(weight, rates, logs, low, high))
        if np.sum(weight.sum(axis=1) > 0.01 * weight.sum(axis=1).max()) >= _ENOUGH:
            break
        low, high = np.array(found).T
    return rates, np.exp(logs), weight


def _weights(seen: _Seen, rates: Array, powers: Array) -> Array:
    found = [[seen.log_likelihood(p, e) for e in rates] for p in map(seen.own, powers)]
    values = np.array(found).T
    return np.asarray(np.exp(values - values.max()))


def _reach(
    weight: Array, rates: Array, logs: Array, low: Array, high: Array
) -> Iterator[tuple[float, float]]:
    """Yield the ends, of ε and of log s, between which there is all but nothing of the mass."""
    for axis, values in enumerate((rates, logs)):
        along = weight.max(axis=1 - axis)
        places = np.flatnonzero(along > _NOTHING * along.max())
        step = values[1] - values[0]
        ends = values[places[0]] - step, values[places[-1]] + step
        yield max(ends[0], low[axis]), min(ends[1], high[axis])


def _middles(low: float, high: float, count: int) -> Array:
    return low + (high - low) * (np.arange(count) + 0.5) / count
