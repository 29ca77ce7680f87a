"""Other methods on the same rows, to see whether a simpler model does as well."""

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cavity.arrays import Array, all_threads_for
from cavity.report.scores import (
    FOLDS,
    MANY,
    Unseen,
    left_out_classes,
    of_classes,
    of_targets,
    scores_of,
    standard_error,
)
from cavity.tables.prepare import Prepared

SAME = 0.005
"""In nats per row; a smaller difference between predictions has no practical effect."""
_ENOUGH = 2.0
_STOPPABLE = 20
"""Rows (of the rarest class) from which on boosting can put a tenth aside to know when to stop."""
_WITHOUT = ("counts", "robust")
_LEAST = float(np.finfo(float).eps)
NONE, BOOSTED = "no inputs", "HistGradientBoosting"
Record = dict[str, Any]
Maker = Callable[[Array], list[Any]]
"""Returns candidates for these training targets, the best of which is taken."""
Fold = tuple[Array, Array]


def skipped(reason: str) -> Record:
    """Return the field baselines of an analysis that has none, and why."""
    return {"how": "", "skipped": reason, "fewer": None, "methods": []}


def baselines_of(
    data: Prepared, left_out: Unseen, held_out: Unseen | None, curve: Record, seed: int
) -> Record:
    """Return how other methods predict the same rows from the same inputs.

    That is how (their left-out predictions were made), skipped (why there are none, or None), fewer
    (rows, error and log_loss of our model if it is trained on as few rows as they are in each fold,
    by its learning curve; None if ours are of the same folds) and methods, the simplest first:
    name, left_out and held_out (scores), excess and excess_se (their log loss above ours, row by
    row, and its standard error) and verdict (worse, as good or better).

    Their folds leave out more rows than leave-one-out does. What that would cost our model is taken
    off the excess. Held-out rows count if there are any; there, all methods have the same rows.
    """
    if data.task in _WITHOUT:
        return skipped("There is no other method here that says how such a target scatters.")
    if data.stored is not None or len(data.y) > MANY:
        return skipped(f"Other methods are compared on tables of up to {MANY:,} rows.")
    folds = list(_folds(data, seed))
    how = f"{len(folds)}-fold cross-validation"
    fewer = None if left_out.how == how else _on_fewer(curve, 1.0 - 1.0 / len(folds))
    cost = 0.0
    if fewer and held_out is None:
        cost = max(fewer["log_loss"] - curve["log_loss"][-1], 0.0)
    methods = []
    for name, make in _makers(data).items():
        with all_threads_for(len(data.y)):
            theirs = _predicted(data, make, folds)
        excess = _excess(theirs[-1], held_out or left_out, cost)
        methods.append({"name": name, **_scores(theirs, data.y), **excess})
    return {"how": how, "skipped": None, "fewer": fewer, "methods": methods}


def _folds(data: Prepared, seed: int) -> Iterator[Fold]:
    """Yield training and test rows; classes keep their shares, if any has two rows."""
    # The import takes a quarter of a second, which other commands can do without.
    from sklearn.model_selection import KFold, StratifiedKFold

    most = int(np.bincount(data.y).max()) if data.classes else 0
    parts = min(FOLDS, most if most > 1 else len(data.y))
    splitter = (StratifiedKFold if most > 1 else KFold)(parts, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # A class of fewer rows than folds is missing in some of them.
        warnings.simplefilter("ignore", UserWarning)
        yield from splitter.split(data.X, data.y)


def _on_fewer(curve: Record, share: float) -> Record:
    """Return the scores of our model on a share of the rows, between the sizes of its curve."""
    rows, sizes = share * curve["rows"], np.log(curve["sizes"])
    found = {
        key: float(np.interp(np.log(rows), sizes, curve[key])) for key in ("error", "log_loss")
    }
    return {"rows": round(rows), **found}


def _makers(data: Prepared) -> dict[str, Maker]:
    # Half a second for imports, which a page without baselines can do without.
    from sklearn import dummy, ensemble, linear_model

    if not data.classes:
        return {
            NONE: lambda y: [dummy.DummyRegressor()],
            "ridge regression": lambda y: [linear_model.RidgeCV(np.logspace(-3.0, 3.0, 13))],
            BOOSTED: lambda y: [
                ensemble.HistGradientBoostingRegressor(
                    early_stopping=len(y) >= _STOPPABLE, random_state=0
                )
            ],
        }
    penalties = np.logspace(-2.0, 2.0, 5)
    return {
        NONE: lambda y: [dummy.DummyClassifier(strategy="prior")],
        "logistic regression": lambda y: [
            linear_model.LogisticRegression(C=C, max_iter=1000) for C in penalties
        ],
        BOOSTED: lambda y: [
            ensemble.HistGradientBoostingClassifier(
                early_stopping=_rarest(y) >= _STOPPABLE, random_state=0
            )
        ],
    }


def _rarest(y: Array) -> int:
    return int(np.unique(y, return_counts=True)[1].min())


def _predicted(data: Prepared, make: Maker, folds: list[Fold]) -> list[Unseen]:
    """Return the predictions of left-out rows and, if there are any, of held-out rows."""

    def predict(train: Array, X: Array) -> Array:
        """Return the predictions of each candidate."""
        y = data.y[train]
        if data.classes:
            return np.array([_proba(data, model, train, X) for model in make(y)])
        return np.array([model.fit(data.X[train], y).predict(X) for model in make(y)])

    with warnings.catch_warnings():
        # Trouble of another method is not the table's: its scores tell.
        warnings.simplefilter("ignore")
        parts = [predict(train, data.X[test]) for train, test in folds]
        new = predict(np.arange(len(data.y)), data.X_test) if len(data.y_test) else None
    every = np.empty((len(parts[0]), len(data.y), *parts[0].shape[2:]))
    for (_, test), part in zip(folds, parts, strict=True):
        every[:, test] = part
    left_out, best = _best(data, folds, every)
    held_out = None if new is None else new[best]
    if data.classes:
        return _of_classes(data, left_out, held_out)
    return _of_targets(data, folds, left_out, held_out)


def _best(data: Prepared, folds: list[Fold], every: Array) -> tuple[Array, int]:
    """Return the predictions of each fold by the candidate best in the others, and the best one."""
    left_out = every[0].copy()
    if len(every) == 1:
        return left_out, 0
    losses = np.array([left_out_classes("", data.y, p).losses.log_loss for p in every])
    for train, test in folds:
        left_out[test] = every[np.argmin(losses[:, train].mean(axis=1)), test]
    return left_out, int(np.argmin(losses.mean(axis=1)))


def _proba(data: Prepared, model: Any, train: Array, X: Array) -> Array:
    """Return probabilities of all classes; as in scikit-learn's log loss, none is zero."""
    y, proba = data.y[train], np.zeros((len(X), len(data.classes)))
    if len(np.unique(y)) == 1:
        proba[:, y[0]] = 1.0
    else:
        model.fit(data.X[train], y)
        proba[:, model.classes_] = model.predict_proba(X)
    return np.maximum(proba, _LEAST)


def _of_classes(data: Prepared, left_out: Array, new: Array | None) -> list[Unseen]:
    found = [left_out_classes("", data.y, left_out)]
    return found if new is None else [*found, of_classes("", data.y_test, new)]


def _of_targets(
    data: Prepared, folds: list[Fold], left_out: Array, new: Array | None
) -> list[Unseen]:
    """Add to each prediction the deviation that the errors of other folds have."""
    errors, std = data.y - left_out, np.empty(len(data.y))
    for train, test in folds:
        std[test] = _deviation(errors[train], data.y)
    found = [of_targets("", data.y, left_out, std)]
    if new is None:
        return found
    return [*found, of_targets("", data.y_test, new, np.full(len(new), _deviation(errors, data.y)))]


def _deviation(errors: Array, y: Array) -> float:
    """Return the root mean square error, never quite zero."""
    return max(float(np.sqrt(np.mean(errors**2))), 1e-6 * float(np.std(y)))


def _scores(theirs: list[Unseen], train: Array) -> Record:
    """Return left_out and held_out; the guess without inputs is one of the methods."""
    found = [
        {key: value for key, value in scores_of(part, train).items() if "baseline" not in key}
        for part in theirs
    ]
    return {"left_out": found[0], "held_out": found[1] if len(found) > 1 else None}


def _excess(theirs: Unseen, ours: Unseen, cost: float) -> Record:
    more = np.asarray(theirs.losses.log_loss - ours.losses.log_loss)
    excess, error = float(more.mean()) - cost, standard_error(more)
    # One row, which has no standard error, decides nothing.
    # Of n rows, one more or less changes a guess by 1/n, whatever its standard error.
    least = max(SAME, _ENOUGH * error, 1.0 / len(more)) if len(more) > 1 else math.inf
    verdict = "worse" if excess > least else "better" if excess < -least else "as good"
    return {"excess": excess, "excess_se": error, "verdict": verdict}
