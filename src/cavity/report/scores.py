"""Scores of predictions with their standard errors, and calibration."""

import math
from typing import Any

import numpy as np
from scipy.special import ndtri

from cavity.arrays import Array
from cavity.tables.prepare import Prepared

_TWO_SIDED_95 = float(ndtri(0.975))
Scores = dict[str, float]


def scores_of(data: Prepared, fitted: Any) -> tuple[Scores, Scores | None]:
    """Return the leave-one-out scores, and those of the held-out rows if there are any."""
    y, tested = data.y, len(data.y_test) > 0
    if not data.classes:
        left_out = quantity_scores(fitted.loo_mean_, fitted.loo_std_, y, y)
        if not tested:
            return left_out, None
        mean, std = fitted.predict(data.X_test, return_std=True)
        return left_out, quantity_scores(mean, std, data.y_test, y)
    shares = np.bincount(y, minlength=len(data.classes)) / len(y)
    left_out = class_scores(fitted.loo_proba_, y, shares)
    if not tested:
        return left_out, None
    return left_out, class_scores(fitted.predict_proba(data.X_test), data.y_test, shares)


def class_scores(proba: Array, y: Array, shares: Array) -> Scores:
    """Return error rate, log loss and Brier score, and the baseline's error rate and log loss.

    The baseline predicts the class frequencies of the training rows.

    Parameters
    ----------
    proba : array of shape (n, n_classes)
    y : array of int of shape (n,)
        Class codes.
    shares : array of shape (n_classes,)
        Class frequencies of the training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.report.scores import class_scores
    >>> proba = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> scores = class_scores(proba, np.array([0, 1, 1]), np.array([0.5, 0.5]))
    >>> round(scores["error"], 3), round(scores["baseline_error"], 3)
    (0.333, 0.667)
    """
    wrong = np.argmax(proba, axis=1) != y
    loss = -np.log(proba[np.arange(len(y)), y])
    brier = np.sum((proba - np.eye(proba.shape[1])[y]) ** 2, axis=1)
    if proba.shape[1] == 2:
        # Both classes are off by the same; one is counted, as in scikit-learn.
        brier = brier / 2.0
    return {
        "rows": len(y),
        "error": float(wrong.mean()),
        "error_se": _standard_error(wrong),
        "log_loss": float(loss.mean()),
        "log_loss_se": _standard_error(loss),
        "brier": float(brier.mean()),
        "baseline_error": float(np.mean(y != np.argmax(shares))),
        "baseline_log_loss": float(-np.mean(np.log(shares[y]))),
    }


def quantity_scores(mean: Array, std: Array, y: Array, train: Array) -> Scores:
    """Return root mean square error, mean absolute error, R², log loss, and the baseline's.

    The baseline predicts the training targets' mean with their standard deviation.

    Parameters
    ----------
    mean, std : arrays of shape (n,)
        Predictions of a new observation, noise included.
    y : array of shape (n,)
    train : array of shape (m,)
        Training targets.
    """
    residual = y - mean
    # Zero for a single row, which has no R².
    spread = np.sum((y - y.mean()) ** 2)
    loss = _normal_loss(residual, std)
    baseline = y - train.mean()
    return {
        "rows": len(y),
        "rmse": float(np.sqrt(np.mean(residual**2))),
        "rmse_se": _standard_error(residual**2) / (2 * math.sqrt(np.mean(residual**2))),
        "mae": float(np.mean(np.abs(residual))),
        "r2": float(1.0 - np.sum(residual**2) / spread) if spread > 0.0 else math.nan,
        "log_loss": float(loss.mean()),
        "log_loss_se": _standard_error(loss),
        "baseline_rmse": float(np.sqrt(np.mean(baseline**2))),
        "baseline_log_loss": float(np.mean(_normal_loss(baseline, train.std()))),
    }


def _normal_loss(residual: Array, std: Any) -> Array:
    return 0.5 * (residual / std) ** 2 + np.log(std) + 0.5 * math.log(2.0 * math.pi)


def _standard_error(values: Array) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def confusion_of(data: Prepared, fitted: Any) -> list[list[int]] | None:
    """Return the leave-one-out counts of true (rows) and predicted (columns) classes."""
    if not data.classes:
        return None
    table = np.zeros((len(data.classes), len(data.classes)), dtype=int)
    np.add.at(table, (data.y, np.argmax(fitted.loo_proba_, axis=1)), 1)
    return [[int(count) for count in line] for line in table]


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


def calibration(p: Array, happened: Array, bins: int = 10) -> list[Scores]:
    """Compare predicted probabilities with observed shares, in bins of equal width.

    Parameters
    ----------
    p : array of shape (n,)
        Probability of an event, such as one class.
    happened : array of bool of shape (n,)
    bins : int
        Empty bins are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.report.scores import calibration
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


def coverage(mean: Array, std: Array, y: Array) -> list[Scores]:
    """Return the share of targets inside central intervals of nominal 10, 20, ..., 90 %."""
    z = np.abs(y - mean) / std
    return [
        _observed(nominal, z <= ndtri(0.5 + nominal / 2))
        for nominal in (np.arange(1, 10) / 10).tolist()
    ]


def _observed(predicted: float, happened: Array) -> Scores:
    count, n = int(happened.sum()), len(happened)
    low, high = interval_of_share(count, n)
    return {
        "count": n,
        "predicted": predicted,
        "observed": count / n,
        "observed_low": low,
        "observed_high": high,
    }


def interval_of_share(count: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval for a share, if ``count`` of ``n`` were observed.

    Examples
    --------
    >>> from cavity.report.scores import interval_of_share
    >>> [round(x, 3) for x in interval_of_share(0, 10)]
    [0.0, 0.278]
    """
    z2, share = _TWO_SIDED_95**2, count / n
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return max(0.0, centre - half), min(1.0, centre + half)
