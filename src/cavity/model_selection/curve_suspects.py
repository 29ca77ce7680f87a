"""Examples whose labels look wrong, as the largest training sets of a learning curve see them."""

from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.model_selection.label_noise import LabelNoise, label_noise
from cavity.model_selection.outliers import outliers
from cavity.model_selection.suspects import Suspect, Suspects, chosen_places, running_mean

_FIRST = 10


def suspects_of_curve(curve: Any, k: int | None, precision: float | None) -> Suspects:
    """Return the most doubtful examples of a curve, or those of an expected share of wrong ones."""
    n = curve.source.inputs.n
    k = _FIRST if k is None and precision is None else k
    if k is not None and not 1 <= k <= n:
        raise ValueError(f"k must lie between 1 and the {n} examples; got {k!r}.")
    if precision is None:
        index, found = curve.source.most_doubtful(k)
        return Suspects(tuple(map(Suspect, *_columns(curve, index, found))))
    noise = _noise(curve)
    order = np.argsort(-noise.wrong, kind="stable")
    places = chosen_places(noise.wrong[order], order >= 0, precision, k)
    index, every = order[places], curve.source.point_scores
    found = type(every)(*(part[-1][index] for part in every))
    more = noise.wrong[index].tolist(), running_mean(noise.wrong[order])[places].tolist()
    rows = tuple(map(Suspect, *_columns(curve, index, found), *more))
    what = "Outliers" if curve.classes is None else "Wrong labels"
    return Suspects(rows, noise.count, noise.interval(0.9), 0.9, n, what)


def _columns(curve: Any, index: Array, found: Any) -> list[list[Any]]:
    """Return number, label, suggestion, probability, doubt and error of some examples."""
    inputs, suggestion = curve.source.inputs, found.mean
    if curve.classes is not None:
        fitted = inputs.fitted
        suggestion = curve.classes[fitted.coding.best(fitted.likelihood, found.mean)]
    labels, p = inputs.labels(index), np.exp(found.support)
    return [part.tolist() for part in (index, labels, suggestion, p, found.doubt, found.error)]


def _noise(curve: Any) -> LabelNoise:
    """Return which labels are wrong, from the probabilities of the labels as given."""
    if curve.classes is None:
        return outliers(curve.point_doubt[-1])
    if len(curve.classes) > 2:
        raise ValueError(
            "A curve keeps the probability of the given label only, which is not enough for more "
            "than two classes: use find_suspects(model, precision=...)."
        )
    given = np.exp(curve.point_support[-1])
    codes = np.searchsorted(curve.classes, curve.source.inputs.labels(np.arange(len(given))))
    second = np.where(codes == 1, given, 1.0 - given)
    return label_noise(np.stack([1.0 - second, second], axis=1), codes)
