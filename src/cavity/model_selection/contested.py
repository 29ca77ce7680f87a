"""What labels that are probably wrong cost."""

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, poisson

from cavity.model_selection.audit import find_suspects

DEVIATIONS = 3.0
"""A real target this many standard deviations off is contested."""
_CHANCE = 0.01
_FEW = 0.1
"""If more than this share of real targets is far off, it is the model that is wrong."""


class Contested(NamedTuple):
    """Labels that are probably wrong.

    Attributes
    ----------
    words : str
        How many there are.
    certain : bool
        Whether there are any beyond chance, and how many is known at least to a factor of two.
    cost : float
        What they add to the average of the measure.
    """

    words: str
    certain: bool
    cost: float


def contested_of(curve: Any, measure: str) -> Contested:
    """Return the contested labels of the table behind a curve."""
    return _targets(curve, measure) if curve.classes is None else _labels(curve, measure)


def _labels(curve: Any, measure: str) -> Contested:
    """Return the labels of classes that are wrong, as `find_suspects` estimates.

    Put right, such a label is what the other rows predict, which is no error; its log loss falls by
    the log odds against it.
    """
    inputs = curve.source.inputs
    if np.any(inputs.fitted.rows.position < 0):
        return Contested("the labels of rows of weight zero are not kept", False, 0.0)
    found = find_suspects(inputs.model, n_reasons=0)
    count, (low, high) = found.count or 0, found.count_interval or (0, 0)
    gains = [(s.wrong or 0.0) * (1.0 if measure == "error" else s.doubt) for s in found]
    words = f"about {count} labels are wrong ({low} to {high}): see cavity.find_suspects()"
    return Contested(words, low > 0 and 2 * low >= count, float(np.sum(gains)) / found.n_rows)


def _targets(curve: Any, measure: str) -> Contested:
    """Return the real targets that are far off, if they are more than a normal law has."""
    points = curve.source.point_scores
    losses, far = getattr(points, measure)[-1], points.doubt[-1] > DEVIATIONS
    number, expected = int(np.sum(far)), 2.0 * float(norm.sf(DEVIATIONS)) * len(far)
    words = (
        f"{number} targets are more than {DEVIATIONS:g} standard deviations off, where chance "
        f"explains {expected:.1f}: see curve.suspects()"
    )
    if not number or number == len(far):
        return Contested(words, False, 0.0)
    excess = max(1.0 - expected / number, 0.0)
    cost = excess * float((losses[far] - np.mean(losses[~far])) @ curve.share[far])
    certain = number <= _FEW * len(far) and poisson.sf(number - 1, expected) < _CHANCE
    return Contested(words, bool(certain), max(cost, 0.0))
