"""How good predictions are: plain numbers with their standard errors."""

import math
from typing import Any

import numpy as np
from scipy.special import ndtri

from cavity.arrays import Array

__all__ = [
    "calibration",
    "class_scores",
    "confusion",
    "coverage",
    "interval_of_share",
    "quantity_scores",
]

_TWO_SIDED_95 = float(ndtri(0.975))


def class_scores(proba: Array, y: Array, shares: Array) -> dict[str, float]:
    """Return error rate, log loss and Brier score, and what class frequencies alone achieve.

    Parameters
    ----------
    proba : array of shape (n, n_classes)
    y : array of int of shape (n,)
        Class codes.
    shares : array of shape (n_classes,)
        Class frequencies among the training rows: the baseline.

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
        # Both classes miss by the same; one of them is counted, as in scikit-learn.
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


def quantity_scores(mean: Array, std: Array, y: Array, train: Array) -> dict[str, float]:
    """Return root mean square and absolute error, R², log loss, and the baseline's.

    The baseline predicts the training targets' mean with their standard deviation.

    Parameters
    ----------
    mean, std : arrays of shape (n,)
        Predictions, noise included.
    y : array of shape (n,)
    train : array of shape (m,)
        Training targets.
    """
    residual = y - mean
    loss = _normal_loss(residual, std)
    baseline = y - train.mean()
    return {
        "rows": len(y),
        "rmse": float(np.sqrt(np.mean(residual**2))),
        "rmse_se": _standard_error(residual**2) / (2 * math.sqrt(np.mean(residual**2))),
        "mae": float(np.mean(np.abs(residual))),
        "r2": float(1.0 - np.sum(residual**2) / np.sum((y - y.mean()) ** 2)),
        "log_loss": float(loss.mean()),
        "log_loss_se": _standard_error(loss),
        "baseline_rmse": float(np.sqrt(np.mean(baseline**2))),
        "baseline_log_loss": float(np.mean(_normal_loss(baseline, train.std()))),
    }


def _normal_loss(residual: Array, std: Any) -> Array:
    return 0.5 * (residual / std) ** 2 + np.log(std) + 0.5 * math.log(2.0 * math.pi)


def _standard_error(values: Array) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def confusion(proba: Array, y: Array) -> list[list[int]]:
    """Return how many rows of each class (rows) are given each class (columns)."""
    table = np.zeros((proba.shape[1], proba.shape[1]), dtype=int)
    np.add.at(table, (y, np.argmax(proba, axis=1)), 1)
    return [[int(count) for count in line] for line in table]


def calibration(p: Array, happened: Array, bins: int = 10) -> list[dict[str, float]]:
    """Compare stated probabilities with frequencies, in bins of equal width; empty ones left out.

    Parameters
    ----------
    p : array of shape (n,)
        Probability of an event, such as one class.
    happened : array of bool of shape (n,)
    bins : int

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
        _bin(k / bins, (k + 1) / bins, p[place == k], happened[place == k])
        for k in np.unique(place)
    ]


def _bin(lower: float, upper: float, p: Array, happened: Array) -> dict[str, float]:
    low, high = interval_of_share(int(happened.sum()), len(p))
    return {
        "lower": lower,
        "upper": upper,
        "count": len(p),
        "predicted": float(p.mean()),
        "observed": float(happened.mean()),
        "observed_low": low,
        "observed_high": high,
    }


def interval_of_share(count: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval for a share of which ``count`` of ``n`` were seen.

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


def coverage(mean: Array, std: Array, y: Array) -> list[dict[str, float]]:
    """Return which share of targets lies in central intervals of nominal 10, 20, ..., 90 %."""
    z = np.abs(y - mean) / std
    found = []
    for nominal in np.arange(1, 10) / 10:
        inside = int(np.sum(z <= ndtri(0.5 + nominal / 2)))
        low, high = interval_of_share(inside, len(y))
        found.append(
            {
                "predicted": float(nominal),
                "observed": inside / len(y),
                "observed_low": low,
                "observed_high": high,
                "count": len(y),
            }
        )
    return found
