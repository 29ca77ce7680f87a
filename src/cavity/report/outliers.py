"""Rows too far off for Gaussian noise, and what a model with heavy tails makes of them."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from cavity.arrays import Array
from cavity.report.scores import Unseen, left_out_of, scores_of, standard_error, verdict_of
from cavity.tables.fitting import Settings, fit_model
from cavity.tables.prepare import Prepared

_FALSE_ALARM = 0.01
"""Share of tables with Gaussian noise in which any row is called an outlier."""
_MIDDLE, _MIDDLE_ERROR = float(norm.ppf(0.75)), 1.167
"""Of a standard normal: the median of its size, and the relative standard error of that, by √n."""
_ENOUGH, _SAME = 2.0, 0.005
"""Standard errors, and nats per row, by which the log loss must be lower."""
_MOST_ROWS = 3000
"""Rows up to which another fit takes about the time of the first."""
Record = dict[str, Any]


def threshold(n: int) -> float:
    """Return by how many standard deviations a row must be off to be no Gaussian noise.

    One of n rows is further off in one table of a hundred; Student's t counts that the deviation
    itself was estimated.
    """
    return float(student.isf(0.5 * _FALSE_ALARM / n, max(n - 2, 1)))


def outliers_of(data: Prepared, left_out: Unseen, settings: Settings) -> Record | None:
    """Return what is found about outliers, or None if the target is not a quantity.

    That is threshold, rows (the numbers of those further off, the furthest first) and, if there are
    any, robust: what a model with heavy tails predicts of left-out rows. It has rows (those further
    off than the threshold in its own units), scores, helps (whether to it the inputs help), gain
    and gain_se (by how much its log loss is lower), and verdict: better, as good or worse.
    """
    if data.task != "regression" or data.stored is not None:
        return None
    limit, far = threshold(len(data.y)), unmasked(left_out.deviations)
    found: Record = {"threshold": limit, "rows": _rows(data, far, limit), "robust": None}
    if found["rows"] and len(data.y) <= _MOST_ROWS:
        found["robust"] = _robust(data, left_out, settings, limit)
    return found


def unmasked(deviations: Array) -> Array:
    """Return deviations in units of those of most rows: many outliers inflate the model's own.

    The middle of their sizes says how much, once it is two standard errors too small for chance.
    """
    typical = np.median(np.abs(deviations)) / _MIDDLE
    typical *= 1.0 + 2.0 * _MIDDLE_ERROR / np.sqrt(len(deviations))
    return np.asarray(deviations / min(typical, 1.0) if typical > 0.0 else deviations)


def _rows(data: Prepared, deviations: Array, limit: float) -> list[int]:
    far = np.abs(deviations)
    order = np.argsort(-far, kind="stable")[: np.sum(far > limit)]
    return [int(row) for row in data.rows[order]]


def _robust(data: Prepared, left_out: Unseen, settings: Settings, limit: float) -> Record:
    heavy = replace(data, task="robust", notes=[])
    unseen = left_out_of(heavy, fit_model(heavy, settings)[0])
    gains = left_out.losses.log_loss - unseen.losses.log_loss
    gain, error = float(np.mean(gains)), standard_error(gains)
    least = max(_ENOUGH * error, _SAME)
    return {
        "rows": _rows(data, (unseen.y - unseen.mean) / unseen.std, limit),
        "scores": scores_of(unseen, data.y),
        "helps": verdict_of(unseen)["helps"],
        "gain": gain,
        "gain_se": error,
        "verdict": "better" if gain > least else "worse" if gain < -least else "as good",
    }


def seen_through(about: Record) -> Record:
    """Return the fields of an analysis, with a verdict that outliers do not spoil.

    The losses of a few rows may hide from the ordinary model that the inputs help.
    """
    robust = (about["outliers"] or {}).get("robust")
    helps = about["verdict"]["helps"] or bool(robust and robust["helps"])
    return about | {"verdict": about["verdict"] | {"helps": helps}}
