"""Scores of predictions with their standard errors, and calibration."""

import math
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import binomtest
from sklearn.metrics import confusion_matrix

from cavity.arrays import Array
from cavity.resampling.scores import class_scores, target_scores
from cavity.tables.prepare import Prepared

Summary = dict[str, float]


def scores_of(data: Prepared, fitted: Any) -> tuple[Summary, Summary | None]:
    """Return the leave-one-out scores, and those of the held-out rows if there are any."""
    held_out = None
    if data.classes:
        left_out = _of_classes(fitted.loo_proba_, data.y, data.y)
        if len(data.y_test):
            held_out = _of_classes(fitted.predict_proba(data.X_test), data.y_test, data.y)
    else:
        left_out = _of_quantities(fitted.loo_mean_, fitted.loo_std_, data.y, data.y)
        if len(data.y_test):
            mean, std = fitted.predict(data.X_test, return_std=True)
            held_out = _of_quantities(mean, std, data.y_test, data.y)
    return left_out, held_out


def _of_classes(proba: Array, y: Array, train: Array) -> Summary:
    """Summarise scores; the baseline predicts the class frequencies of the training rows."""
    with np.errstate(divide="ignore"):
        losses = class_scores(np.log(proba), y)
    shares = np.bincount(train, minlength=proba.shape[1]) / len(train)
    return {
        "rows": len(y),
        **_average("error", losses.error),
        **_average("log_loss", losses.log_loss),
        "brier": float(np.asarray(losses.brier).mean()),
        "baseline_error": float(np.mean(y != np.argmax(shares))),
        "baseline_log_loss": float(-np.mean(np.log(shares[y]))),
    }


def _of_quantities(mean: Array, std: Array, y: Array, train: Array) -> Summary:
    """Summarise scores; the baseline predicts the training targets' mean and deviation."""
    losses = target_scores(mean, std**2, y)
    baseline = target_scores(train.mean(), train.var(), y)
    rmse = math.sqrt(losses.error.mean())
    return {
        "rows": len(y),
        "rmse": rmse,
        "rmse_se": _standard_error(losses.error) / (2 * rmse),
        "mae": float(np.mean(np.abs(y - mean))),
        # A single row has no R².
        "r2": float(1.0 - losses.error.mean() / y.var()) if y.var() > 0.0 else math.nan,
        **_average("log_loss", losses.log_loss),
        "baseline_rmse": math.sqrt(baseline.error.mean()),
        "baseline_log_loss": float(baseline.log_loss.mean()),
    }


def _average(name: str, values: Array) -> Summary:
    return {name: float(values.mean()), f"{name}_se": _standard_error(values)}


def _standard_error(values: Array) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def confusion_of(data: Prepared, fitted: Any) -> list[list[int]] | None:
    """Return the leave-one-out counts of true (rows) and predicted (columns) classes."""
    if not data.classes:
        return None
    predicted, codes = np.argmax(fitted.loo_proba_, axis=1), np.arange(len(data.classes))
    counts: list[list[int]] = confusion_matrix(data.y, predicted, labels=codes).tolist()
    return counts


def calibration_of(data: Prepared, fitted: Any) -> list[dict[str, Any]]:
    """Return class and bins for the second of two classes or for each of several.

    In regression there is one entry, whose class is None.
    """
    if not data.classes:
        bins = coverage(fitted.loo_mean_, fitted.loo_std_, data.y)
        return [{"class": None, "bins": bins}]
    proba = fitted.loo_proba_
    events = [1] if len(data.classes) == 2 else range(len(data.classes))
    return [
        {"class": str(data.classes[k]), "bins": calibration(proba[:, k], data.y == k)}
        for k in events
    ]


def calibration(p: Array, happened: Array, bins: int = 10) -> list[Summary]:
    """Compare probabilities of an event with how often it happened, in bins of equal width.

    >>> [b] = calibration(np.full(4, 0.75), np.array([True, True, True, False]))
    >>> b["predicted"], b["observed"], b["count"]
    (0.75, 0.75, 4)
    """
    place = np.minimum((p * bins).astype(int), bins - 1)
    return [
        {
            "lower": k / bins,
            "upper": (k + 1) / bins,
            **_observed(float(p[place == k].mean()), happened[place == k]),
        }
        for k in np.unique(place).tolist()
    ]


def coverage(mean: Array, std: Array, y: Array) -> list[Summary]:
    """Return the share of targets inside central intervals of nominal 10, 20, ..., 90 %."""
    z = np.abs(y - mean) / std
    return [
        _observed(nominal, z <= ndtri(0.5 + nominal / 2))
        for nominal in (np.arange(1, 10) / 10).tolist()
    ]


def _observed(predicted: float, happened: Array) -> Summary:
    count, n = int(happened.sum()), len(happened)
    low, high = binomtest(count, n).proportion_ci(0.95, "wilson")
    return {
        "count": n,
        "predicted": predicted,
        "observed": count / n,
        "observed_low": float(low),
        "observed_high": float(high),
    }
