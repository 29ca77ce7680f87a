"""Predictions of rows that the model has not seen, and their scores."""

import math
from typing import Any, NamedTuple

import numpy as np

from cavity import cross_val_tuned
from cavity.arrays import Array
from cavity.model_selection.leave_one_out import inputs_help, loo_class_losses
from cavity.resampling.scores import Losses, class_scores, target_scores
from cavity.tables.prepare import Prepared

FOLDS = 10
MANY = 20_000
"""Rows from which on ten further fits would take too long."""
Summary = dict[str, float]


class Unseen(NamedTuple):
    """Predictions of rows by models that have not seen them, and the losses at each row."""

    how: str
    """In words, how they were made."""
    y: Array
    losses: Losses
    proba: Array | None = None
    mean: Array = None
    std: Array = None


def left_out_of(data: Prepared, fitted: Any) -> Unseen:
    """Return leave-one-out predictions or, where these cannot be trusted, those of ten folds.

    Leave-one-out accounts for the tuning to first order, which is enough if there are many rows;
    every fold is tuned again.
    """
    n = len(data.y)
    if n < 2 * FOLDS or n > MANY or fitted.loo_is_believable_:
        if data.classes:
            return left_out_classes("leave-one-out", data.y, fitted.loo_proba_)
        return of_targets("leave-one-out", data.y, fitted.loo_mean_, fitted.loo_std_)
    found = cross_val_tuned(fitted, data.X, data.y, cv=FOLDS)
    how = f"{FOLDS}-fold cross-validation"
    if data.classes:
        return left_out_classes(how, data.y, found)
    return of_targets(how, data.y, *found)


def held_out_of(data: Prepared, fitted: Any) -> Unseen | None:
    """Return predictions of the held-out rows, if there are any."""
    if not len(data.y_test):
        return None
    if data.classes:
        return of_classes("held-out rows", data.y_test, fitted.predict_proba(data.X_test))
    mean, std = fitted.predict(data.X_test, return_std=True)
    return of_targets("held-out rows", data.y_test, mean, std)


def left_out_classes(how: str, y: Array, proba: Array) -> Unseen:
    """Return class probabilities of training rows that were left out."""
    return Unseen(how, y, loo_class_losses(proba, y), proba)


def of_classes(how: str, y: Array, proba: Array) -> Unseen:
    """Return class probabilities of held-out rows."""
    with np.errstate(divide="ignore"):
        return Unseen(how, y, class_scores(np.log(proba), y), proba)


def of_targets(how: str, y: Array, mean: Array, std: Array) -> Unseen:
    """Return means and standard deviations of targets."""
    return Unseen(how, y, target_scores(mean, std**2, y), None, mean, std)


def verdict_of(left_out: Unseen) -> dict[str, Any]:
    """Return whether the inputs help, with the gain in log loss and its standard error."""
    classes = left_out.proba is not None
    return inputs_help(left_out.losses.log_loss, left_out.y, classes=classes)._asdict()


def scores_of(unseen: Unseen, train: Array) -> Summary:
    """Return the scores of predictions, and of a guess without inputs from the training targets."""
    return _of_targets(unseen, train) if unseen.proba is None else _of_classes(unseen, train)


def _of_classes(unseen: Unseen, train: Array) -> Summary:
    """Summarise scores; the baseline predicts the class frequencies of the training rows."""
    y, losses, shares = unseen.y, unseen.losses, np.bincount(train) / len(train)
    return {
        "rows": len(y),
        **_average("error", losses.error),
        **_average("log_loss", losses.log_loss),
        "brier": float(np.asarray(losses.brier).mean()),
        "baseline_error": float(np.mean(y != np.argmax(shares))),
        "baseline_log_loss": float(-np.mean(np.log(shares[y]))),
    }


def _of_targets(unseen: Unseen, train: Array) -> Summary:
    """Summarise scores; the baseline predicts the training targets' mean and deviation."""
    y, losses = unseen.y, unseen.losses
    baseline = target_scores(train.mean(), train.var(), y)
    rmse = math.sqrt(losses.error.mean())
    return {
        "rows": len(y),
        "rmse": rmse,
        "rmse_se": standard_error(losses.error) / (2 * rmse),
        "mae": float(np.mean(np.sqrt(losses.error))),
        # A single row has no R².
        "r2": float(1.0 - losses.error.mean() / y.var()) if y.var() > 0.0 else math.nan,
        **_average("log_loss", losses.log_loss),
        "baseline_rmse": math.sqrt(baseline.error.mean()),
        "baseline_log_loss": float(baseline.log_loss.mean()),
    }


def _average(name: str, values: Array) -> Summary:
    return {name: float(values.mean()), f"{name}_se": standard_error(values)}


def standard_error(values: Array) -> float:
    """Return the standard error of a mean, or NaN of a single value."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
