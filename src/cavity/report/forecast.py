"""The learning curve of a fitted model and its forecast."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cavity import learning_curve
from cavity.tables.prepare import Prepared

LEVEL = 0.9
"""Coverage of a forecast's interval."""
_SIZES = 8
_FACTORS = np.geomspace(1.0, 4.0, 9)
"""From the present number of rows to four times as many; twice as many is among them."""
_FAR_FACTORS = np.geomspace(1.0, 1000.0, 61)
"""From the present number of rows to the largest that `LearningCurve.size_for` tries."""


def curve_of(
    data: Prepared, fitted: Any, sizes: Sequence[int] | None = None, resampling: str = "subsample"
) -> Any:
    """Return the `LearningCurve` of a fitted model on its training rows.

    By default its sizes are eight from a fortieth of the rows (at least five) to all of them. Its
    ``converged`` says whether its equations were solved; there are no warnings.
    """
    n = len(data.y)
    if sizes is None:
        first = max(min(5, n), n / 40)
        sizes = np.unique(np.round(np.geomspace(first, n, _SIZES)).astype(int)).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return learning_curve(fitted, data.X, data.y, train_sizes=sizes, resampling=resampling)


def describe_curve(curve: Any, ahead: Sequence[int] | None = None) -> dict[str, Any]:
    """Return a learning curve and its forecasts in plain numbers.

    These are measure ("error rate" or "mean squared error"), resampling, rows (the present number),
    sizes, error, log_loss, converged; level, and forecast and log_loss_forecast, lists of size,
    value, low, high at the sizes ``ahead``; far, the forecast of error and log_loss by size up to a
    thousand times the rows.
    """
    n = len(curve.y)
    sizes = np.round(n * _FACTORS).astype(int) if ahead is None else np.array(ahead)
    far = np.unique(np.round(n * _FAR_FACTORS).astype(int))
    return {
        "measure": "error rate" if curve.task == "classification" else "mean squared error",
        "resampling": curve.resampling,
        "rows": n,
        "sizes": [int(size) for size in curve.train_sizes],
        "error": curve.test_error.tolist(),
        "log_loss": curve.test_log_loss.tolist(),
        "converged": curve.converged.tolist(),
        "level": LEVEL,
        "forecast": _forecasts(curve, sizes, "error"),
        "log_loss_forecast": _forecasts(curve, sizes, "log_loss"),
        "far": {
            "size": far.tolist(),
            "error": curve.forecast(far, "error").value.tolist(),
            "log_loss": curve.forecast(far, "log_loss").value.tolist(),
        },
    }


def _forecasts(curve: Any, sizes: Any, measure: str) -> list[dict[str, float]]:
    found = curve.forecast(sizes, measure, LEVEL)
    return [
        {"size": int(size), "value": float(value), "low": float(low), "high": float(high)}
        for size, value, low, high in zip(*found, strict=True)
    ]
