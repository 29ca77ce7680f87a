"""Which labels of a fitted model's table look wrong, and how many are."""

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from cavity.arrays import Array
from cavity.estimators.fitted import FittedModel, fitted_model
from cavity.model_selection.importance import check_level
from cavity.model_selection.label_noise import label_noise
from cavity.model_selection.pools import take_apart
from cavity.model_selection.reasons import against_labels, can_be_taken_apart, strongest
from cavity.model_selection.suspects import (
    Reason,
    Suspect,
    Suspects,
    check_positions,
    chosen_places,
    running_mean,
)
from cavity.model_selection.target_suspects import suspects_of_targets
from cavity.resampling.scores import class_scores, log_odds_against

_SMALLEST = 1e-300


def find_suspects(
    estimator: Any,
    *,
    precision: float | None = None,
    k: int | None = None,
    level: float = 0.9,
    n_reasons: int = 3,
) -> Suspects:
    """Return the rows whose labels look wrong, why they do, and how many labels are wrong.

    It takes one fit: every row is judged by its leave-one-out prediction. How many labels are wrong
    is estimated from how often confident predictions are contradicted; where nothing can be
    predicted the interval is wide. Wrong labels are taken to be any other class alike, or one class
    to be called another; what gathers where classes meet is taken for their overlap.

    Of targets that are numbers, suspects are outliers: errors that most other errors' sizes cannot
    explain. Fit them with ``likelihood="student_t"``. A Gaussian model is pulled by outliers, its
    predictions are off near them, and their number comes out too large.

    Parameters
    ----------
    estimator : GaussianProcessClassifier, GaussianProcessRegressor, or a Pipeline ending in one
        Fitted.
    precision : float, optional
        As many rows as are expected to have wrong labels in this share: 0.5 if every second label
        that you look at should be wrong. Fewer rows are more precise.
    k : int, optional
        At most this many rows. With neither, all rows whose label is not the class that the others
        predict, or more likely wrong than right; of numbers, all that are likely outliers.
    level : float, default 0.9
        Coverage of the interval of the number of wrong labels.
    n_reasons : int, default 3
        How many rows that speak against a label are named. There are none for models with inducing
        points and with multi_class="multinomial".

    Returns
    -------
    Suspects
        A table of rows, the likeliest to be wrong first, with ``count`` and ``count_interval``.

    Examples
    --------
    >>> import numpy as np
    >>> from cavity import GaussianProcessClassifier, find_suspects
    >>> X = np.random.default_rng(0).uniform(-2.0, 2.0, (150, 2))
    >>> y = X[:, 0] + X[:, 1] > 0.0
    >>> y[[3, 50, 77]] = ~y[[3, 50, 77]]
    >>> found = find_suspects(GaussianProcessClassifier("auto").fit(X, y), precision=0.5)
    >>> sorted(suspect.index for suspect in found[:3])
    [3, 50, 77]
    >>> found.count_interval[0] <= 3 <= found.count_interval[1]
    True
    """
    model, _ = take_apart(estimator, "Suspects need")
    fitted = fitted_model(model)
    if fitted is None:
        raise NotFittedError(f"This {type(model).__name__} is not fitted yet: call fit first.")
    check_level(level)
    _check_number("n_reasons", n_reasons, 0)
    if fitted.coding is None:
        return suspects_of_targets(model, fitted, precision, k, level, n_reasons)
    log_p = np.log(np.maximum(model.loo_proba_, _SMALLEST))
    return suspects_of_classes(
        fitted, model.classes_, log_p, precision=precision, k=k, level=level, n_reasons=n_reasons
    )


def suspects_of_classes(
    fitted: FittedModel,
    classes: Array,
    log_p: Array,
    *,
    precision: float | None = None,
    k: int | None = None,
    level: float = 0.9,
    n_reasons: int = 3,
) -> Suspects:
    """Return the suspects of a classifier, given log class probabilities of left-out rows."""
    check_positions(fitted.rows.position)
    codes = fitted.codes[fitted.rows.position]
    noise = label_noise(np.exp(log_p), codes)
    order = np.argsort(-noise.wrong, kind="stable")
    others = np.argmax(np.where(np.eye(len(classes))[codes] > 0.0, -np.inf, log_p), axis=1)
    doubted = (np.argmax(log_p, axis=1) != codes) | (noise.wrong > 0.5)
    places = chosen_places(noise.wrong[order], doubted[order], precision, k)
    chosen = order[places]
    about = {
        "index": chosen,
        "label": classes[codes[chosen]],
        "suggestion": classes[others[chosen]],
        **_scores(log_p[chosen], codes[chosen]),
        "wrong": noise.wrong[chosen],
        "precision": running_mean(noise.wrong[order])[places],
    }
    reasons = _reasons(fitted, classes, codes, others, chosen, n_reasons)
    lines = zip(*(values.tolist() for values in about.values()), reasons, strict=True)
    rows = tuple(Suspect(*line) for line in lines)
    return Suspects(rows, noise.count, noise.interval(level), level, len(codes))


def _scores(log_p: Array, codes: Array) -> dict[str, Array]:
    own = log_p[np.arange(len(codes)), codes]
    error = class_scores(log_p, codes).error
    return {"probability": np.exp(own), "doubt": log_odds_against(own), "error": error}


def _reasons(
    fitted: FittedModel, classes: Array, codes: Array, others: Array, chosen: Array, count: int
) -> list[tuple[Reason, ...]]:
    """Return the rows that speak most against each label, if they are known."""
    if not count or not len(chosen) or not can_be_taken_apart(fitted):
        return [()] * len(chosen)
    places = fitted.rows.position[chosen]
    against = against_labels(fitted, places, codes[chosen], others[chosen])
    found = []
    for some, shares in strongest(against, count):
        index = fitted.rows.index[some]
        about = zip(index.tolist(), classes[codes[index]].tolist(), shares.tolist(), strict=True)
        found.append(tuple(Reason(*line) for line in about))
    return found


def _check_number(name: str, value: Any, least: int) -> None:
    if not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}.")
