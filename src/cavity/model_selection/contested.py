"""Labels that the other rows contradict more often than they should."""

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, poisson

from cavity.arrays import Array

SURE = 0.9
"""A prediction counts as sure from this probability on; a label of at most the rest contradicts."""
DEVIATIONS = 3.0
"""A real target this many standard deviations off contradicts."""
_CHANCE = 0.01


class Contested(NamedTuple):
    """Labels that contradict sure predictions.

    Attributes
    ----------
    number : int
    expected : float
        How many there would be by chance, if the probabilities are right.
    cost : float
        What the excess adds to the average of the measure.
    """

    number: int
    expected: float
    cost: float

    @property
    def too_many(self) -> bool:
        """Whether chance would hardly lead to as many."""
        return bool(poisson.sf(self.number - 1, max(self.expected, 1e-12)) < _CHANCE)


def contested_of(curve: Any, measure: str) -> Contested:
    """Return the contested labels of a curve, at its largest size."""
    points = curve.source.point_scores
    losses = getattr(points, measure)[-1]
    if curve.classes is None:
        contradicts = points.doubt[-1] > DEVIATIONS
        expected = 2.0 * float(norm.sf(DEVIATIONS)) * len(losses)
    else:
        contradicts, expected = _of_classes(np.exp(points.support[-1]), len(curve.classes))
    count = int(np.sum(contradicts))
    excess = max(1.0 - expected / count, 0.0) if count else 0.0
    # Without them a row would cost what the others do.
    usual = float(np.mean(losses[~contradicts])) if count < len(losses) else 0.0
    cost = excess * float((losses[contradicts] - usual) @ curve.share[contradicts])
    return Contested(count, expected, max(cost, 0.0))


def _of_classes(p: Array, n_classes: int) -> tuple[Array, float]:
    """Return which labels, of these probabilities, contradict, and how many are expected to.

    A sure prediction is seen with its own label as often as that is probable, p. So each such row
    stands for 1/p sure predictions, of which 1 − p are contradicted. Among several classes, an
    unsure prediction may also leave a label with next to nothing, but not more often than SURE
    allows.
    """
    contradicts = p <= (1.0 - SURE) / (n_classes - 1)
    sure = p >= SURE
    expected = float(np.sum((1.0 - p[sure]) / p[sure]))
    if n_classes > 2:
        expected += (1.0 - SURE) * float(np.sum(~sure & ~contradicts))
    return contradicts, expected
