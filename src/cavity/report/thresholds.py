"""The part of an analysis about decisions: what each threshold of a class's probability does."""

from typing import Any

import numpy as np
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    precision_recall_fscore_support,
    roc_auc_score,
    roc_curve,
)

from cavity.arrays import Array
from cavity.report.parts import records
from cavity.report.scores import Unseen
from cavity.tables.prepare import Prepared

STEPS = np.unique(
    np.round([0.0, 0.001, 0.002, 0.005, *np.arange(1, 100) / 100, 0.995, 0.998, 0.999, 1.0], 3)
)
"""Thresholds to try: hundredths, and finer ones for costs that are far apart."""
_MOST_POINTS, _FEWEST_POINTS = 3000, 30
Record = dict[str, Any]


def thresholds_of(data: Prepared, left_out: Unseen) -> Record | None:
    """Return what thresholds do to left-out rows, or None in regression.

    That is steps (thresholds) and classes: for the second of two classes, or each of several
    against the rest, class, rows (of the class), caught and alarms (how many rows of the class, and
    of others, have at least each threshold's probability), auc, average_precision, roc (false
    and true: shares of the other rows and of the class that are called the class, at all
    thresholds) and precision_recall (recall and precision); and per_class: class, rows, predicted,
    right, precision, recall and f1 of the most probable class, auc and average_precision.
    """
    if left_out.proba is None:
        return None
    events = [1] if len(data.classes) == 2 else range(len(data.classes))
    most = max(_MOST_POINTS // len(events), _FEWEST_POINTS)
    found = [_of_event(left_out.proba[:, k], data.y == k, min(most, 200)) for k in events]
    names = [str(data.classes[k]) for k in events]
    return {
        "steps": STEPS,
        "classes": [{"class": name, **about} for name, about in zip(names, found, strict=True)],
        "per_class": _per_class(data, left_out.proba),
    }


def _of_event(p: Array, happened: Array, most: int) -> Record:
    false, true, _ = roc_curve(happened, p)
    # The last point, of no alarm at all, has no precision.
    precision, recall = (line[:-1][::-1] for line in precision_recall_curve(happened, p)[:2])
    few, fewer = _spread(len(false), most), _spread(len(recall), most)
    return {
        "rows": int(happened.sum()),
        "caught": _at_least(p[happened]),
        "alarms": _at_least(p[~happened]),
        "auc": float(roc_auc_score(happened, p)),
        "average_precision": float(average_precision_score(happened, p)),
        "roc": {"false": false[few], "true": true[few]},
        "precision_recall": {"recall": recall[fewer], "precision": precision[fewer]},
    }


def _at_least(p: Array) -> Array:
    return len(p) - np.searchsorted(np.sort(p), STEPS, side="left")


def _spread(n: int, most: int) -> Array:
    """Return at most so many of n places, with the first and the last."""
    return np.unique(np.round(np.linspace(0, n - 1, min(n, most))).astype(int))


def _per_class(data: Prepared, proba: Array) -> list[Record]:
    predicted, codes = np.argmax(proba, axis=1), np.arange(len(data.classes))
    # A class that is never predicted has no precision.
    scores = precision_recall_fscore_support(data.y, predicted, labels=codes, zero_division=np.nan)
    lines = {
        "class": [str(name) for name in data.classes],
        "predicted": np.bincount(predicted, minlength=len(codes)),
        "right": np.bincount(data.y[predicted == data.y], minlength=len(codes)),
        **dict(zip(("precision", "recall", "f1", "rows"), scores, strict=True)),
        "auc": [roc_auc_score(data.y == k, proba[:, k]) for k in codes],
        "average_precision": [average_precision_score(data.y == k, proba[:, k]) for k in codes],
    }
    return records(lines)
