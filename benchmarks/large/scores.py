"""How good predicted probabilities are."""

from typing import Any

import numpy as np

__all__ = ["scores"]

_BINS = 20
_LOW = 1e-12
"""Probabilities are limited to [1e-12, 1 − 1e-12]: a single 0 can make the log loss infinite."""


def scores(p: Any, y: Any, truth: Any = None) -> dict[str, float]:
    """Return log loss, error and expected calibration error; the regret too if P(1) is known.

    The expected calibration error sorts the rows by P(1) into 20 bins of as many rows each: it is
    the average over the bins of |mean P(1) − share of ones|. The regret is the average over the
    rows of the divergence KL(true ‖ predicted), by which the expected log loss exceeds the least
    possible one; it does not depend on the labels that were drawn.
    """
    if not np.all(np.isfinite(p)):
        raise ArithmeticError(f"{np.mean(~np.isfinite(p)):.0%} of the probabilities are NaN")
    p = np.clip(np.asarray(p, dtype=np.float64), _LOW, 1.0 - _LOW)
    found = {
        "log_loss": float(-np.mean(np.where(y == 1, np.log(p), np.log1p(-p)))),
        "error": float(np.mean((p > 0.5) != (y == 1))),
        "calibration": _calibration(p, y),
    }
    return found if truth is None else {**found, "regret": _regret(p, truth)}


def _calibration(p: Any, y: Any) -> float:
    bins = np.array_split(np.argsort(p, kind="stable"), _BINS)
    gaps = [abs(float(np.mean(p[rows]) - np.mean(y[rows]))) for rows in bins]
    return float(np.average(gaps, weights=[len(rows) for rows in bins]))


def _regret(p: Any, truth: Any) -> float:
    t = np.clip(truth, _LOW, 1.0 - _LOW)
    return float(np.mean(t * np.log(t / p) + (1.0 - t) * (np.log1p(-t) - np.log1p(-p))))
