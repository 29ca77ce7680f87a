"""How many labels are wrong, and which, from what the other rows predict.

Class probabilities P of left-out rows come from labels of which some are wrong, and so they are
too soft. Suppose that the true class has probabilities p ∝ P^s, and that labels are turned wrong in
one of these ways (`Turning`): a label is wrong with probability ε, and then any other of the C
classes alike; or rows of one class a are called another one b with probability ε. In the second
case the classes also seem to meet in the wrong place, and there P_a counts (1 + ε)/(1 − ε) times.
The labels tell of the way, of ε and of s together; everything here is an average over their
posterior. Where nothing can be predicted p is the same whatever s, the labels do not tell ε, and
the number of wrong ones is wide open.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, softmax

from cavity.arrays import Array

_MOST, _SHARPEST = 0.5, 20.0
"""The priors are flat, of ε up to the first and of log s up to that of the second."""
_ALIKE = 0.8
"""Prior probability that wrong labels are any other class alike."""
_MOST_PAIRS = 12
"""Pairs of classes that are looked at: those that are mistaken for each other most."""
_RATES, _POWERS = 60, 20
_ROUNDS, _ENOUGH = 5, 6
"""The grid is made finer until its mass is on this many values of ε."""
_MANY = 20_000
"""Of more rows, so many say what the way, ε and s are."""
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
        The number of wrong labels is a mixture: of sums of independent chances, one for each way,
        ε and s, with these moments.
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
        # Each sum is taken for normal: ε and s spread the number more than that is off.
        spread = np.sqrt(np.maximum(self.variance, _SMALLEST))
        return float(self.weight @ ndtr((k + 0.5 - self.mean) / spread))


class Turning(NamedTuple):
    """A way in which labels are turned wrong: of class ``first`` into ``second``, or all alike."""

    prior: float
    first: int = -1
    second: int = -1

    def joint(self, q: Array, codes: Array, power: float, rate: Array) -> tuple[Array, Array]:
        """Return the probabilities of each label as seen, if it is right and if it is wrong.

        ``q`` are the probabilities ∝ P^s; ``rate`` has an axis for each of several values of ε.
        """
        own = q[np.arange(len(codes)), codes]
        if self.first < 0:
            return (1.0 - rate) * own, rate / float(q.shape[1] - 1) * (1.0 - own)
        is_first, is_second = codes == self.first, codes == self.second
        more = ((1.0 + rate) / (1.0 - rate)) ** power
        first = q[:, self.first] / (1.0 + (more - 1.0) * q[:, self.first])
        rest = own / (1.0 + (more - 1.0) * q[:, self.first])
        right = np.where(is_first, (1.0 - rate) * more * first, rest)
        return right, np.where(is_second, rate * more * first, 0.0)


def label_noise(proba: Array, codes: Array) -> LabelNoise:
    """Return which labels are wrong, given the class probabilities of left-out rows.

    Parameters
    ----------
    proba : array of shape (n, n_classes)
        What the other rows predict for each row.
    codes : array of shape (n,)
        Labels, as numbers of classes.
    """
    log_p, codes = np.log(np.maximum(proba, _SMALLEST)), np.asarray(codes)
    ways = _ways(proba, codes)
    some = np.random.default_rng(0).permutation(len(codes))[:_MANY]
    weight, rates, powers = _posterior(ways, log_p[some], codes[some])
    found, moments = np.zeros(len(codes)), []
    for w, j in np.argwhere(weight.max(axis=2) > _NOTHING):
        q = softmax(powers[j] * log_p, axis=1)
        for i in np.flatnonzero(weight[w, j] > _NOTHING):
            right, wrong = ways[w].joint(q, codes, powers[j], rates[i])
            chance = wrong / (right + wrong)
            found += weight[w, j, i] * chance
            moments.append((weight[w, j, i], np.sum(chance), np.sum(chance * (1.0 - chance))))
    shares, mean, variance = np.array(moments).T
    return LabelNoise(found / shares.sum(), shares / shares.sum(), mean, variance)


def _ways(proba: Array, codes: Array) -> list[Turning]:
    """Return the ways that are looked at, of many pairs of classes those mistaken most."""
    n_classes = proba.shape[1]
    mistaken = np.array([proba[codes == b].sum(axis=0) for b in range(n_classes)]).T
    pairs = sorted(permutations(range(n_classes), 2), key=lambda pair: -mistaken[pair])
    each = (1.0 - _ALIKE) / len(pairs)
    return [Turning(_ALIKE), *(Turning(each, *pair) for pair in pairs[:_MOST_PAIRS])]


def _posterior(ways: Sequence[Turning], log_p: Array, codes: Array) -> tuple[Array, Array, Array]:
    """Return the weight of each way, s and ε on a grid around the mass, the ε and the s."""
    low, high = np.zeros(2), np.array([_MOST, np.log(_SHARPEST)])
    for _ in range(_ROUNDS):
        rates, logs = _middles(low[0], high[0], _RATES), np.linspace(low[1], high[1], _POWERS)
        weight = _weights(ways, log_p, codes, rates, np.exp(logs))
        along = weight.sum(axis=(0, 1))
        if np.sum(along > 0.01 * along.max()) >= _ENOUGH:
            break
        low, high = np.array(list(_reach(weight, rates, logs, low, high))).T
    return weight, rates, np.exp(logs)


def _weights(
    ways: Sequence[Turning], log_p: Array, codes: Array, rates: Array, powers: Array
) -> Array:
    found = np.empty((len(ways), len(powers), len(rates)))
    blocks = np.array_split(rates, -(-len(rates) * len(codes) // _MANY))
    for j, power in enumerate(powers):
        q = softmax(power * log_p, axis=1)
        for w, way in enumerate(ways):
            parts = (way.joint(q, codes, power, block[:, None]) for block in blocks)
            sums = [np.log(np.maximum(a + b, _SMALLEST)).sum(axis=1) for a, b in parts]
            found[w, j] = np.log(way.prior) + np.concatenate(sums)
    weight = np.exp(found - found.max())
    return np.asarray(weight / weight.sum())


def _reach(
    weight: Array, rates: Array, logs: Array, low: Array, high: Array
) -> Iterator[tuple[float, float]]:
    """Yield the ends, of ε and of log s, between which there is all but nothing of the mass."""
    for axis, values in ((2, rates), (1, logs)):
        along = weight.max(axis=tuple({0, 1, 2} - {axis}))
        places = np.flatnonzero(along > _NOTHING * along.max())
        step, k = values[1] - values[0], 2 - axis
        yield (
            max(values[places[0]] - step, low[k]),
            min(values[places[-1]] + step, high[k]),
        )


def _middles(low: float, high: float, count: int) -> Array:
    return low + (high - low) * (np.arange(count) + 0.5) / count
