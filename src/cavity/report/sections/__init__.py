"""The questions that a report answers, in the order of the page, and the numbers at its top."""

from typing import NamedTuple

from cavity.report.analysis import Analysis
from cavity.report.sections.baselines import baselines
from cavity.report.sections.checks import checks
from cavity.report.sections.common import agreeing, measures
from cavity.report.sections.inputs import inputs
from cavity.report.sections.labels import labels
from cavity.report.sections.model import methods, more, now_and_twice, record
from cavity.report.sections.predictions import certainty, quality
from cavity.report.sections.thresholds import thresholds
from cavity.report.words import number, percent

__all__ = ["SECTIONS", "strip"]

SECTIONS = (
    quality,
    checks,
    baselines,
    certainty,
    thresholds,
    more,
    inputs,
    labels,
    methods,
    record,
)
"""Each takes an `Analysis` and returns a `Section`, or None if there is nothing to say."""


class Big(NamedTuple):
    """A number, its label, and what to compare it with."""

    name: str
    value: str
    label: str
    beside: str


def strip(a: Analysis) -> list[Big]:
    """Return the numbers that sum up an analysis."""
    where = "held-out rows" if a.held_out else a.left_out_by
    return [*(_classes(a, where) if a.is_classes else _quantities(a, where)), *_twice(a)]


def _classes(a: Analysis, where: str) -> list[Big]:
    s, (inside, groups) = a.best_scores, agreeing(a)
    return [
        Big(
            "error",
            percent(s["error"], 1),
            "of the predictions are wrong",
            f"{where}; always the most common class: {percent(s['baseline_error'], 1)}",
        ),
        Big(
            "log_loss",
            number(s["log_loss"]),
            "log loss (smaller is better)",
            f"{where}; class frequencies alone: {number(s['baseline_log_loss'])}",
        ),
        Big(
            "calibration",
            f"{inside} of {groups}",
            "groups of rows are well calibrated",
            "the predicted probability lies in the 95 % interval of the observed share",
        ),
    ]


def _quantities(a: Analysis, where: str) -> list[Big]:
    s, widest = a.best_scores, a.calibration[0]["bins"][-1]
    return [
        Big(
            "rmse",
            number(s["rmse"]),
            f"typical error of {a.data.target}",
            f"root mean square, {where}; always the mean: {number(s['baseline_rmse'])}",
        ),
        _explained(a, where),
        Big(
            "coverage",
            percent(widest["observed"]),
            f"of the rows are inside their {percent(widest['predicted'])} interval",
            a.left_out_by,
        ),
    ]


def _explained(a: Analysis, where: str) -> Big:
    s = a.best_scores
    if a.data.task == "robust":
        beside = f"{where}; always the middle: {number(s['baseline_mae'])}"
        return Big("mae", number(s["mae"]), "average absolute error", beside)
    if "d2" in s:
        return Big("d2", percent(s["d2"]), "of the deviance explained", f"D², {where}")
    return Big("r2", percent(s["r2"]), "of the variance explained", f"R², {where}")


def _twice(a: Analysis) -> list[Big]:
    error, log_loss = measures(a)
    # An error of zero cannot fall any further; the log loss can.
    measure = error if a.curve["error"][-1] > 0.0 else log_loss
    found = now_and_twice(a, measure)
    if not found:
        return []
    now, twice = found
    show, name = measure.show, measure.curve.replace("_", " ")
    beside = (
        f"now {show(now['value'])} with {a.n_rows:,} rows; {percent(a.curve['level'])} interval "
        f"{show(twice['low'])} to {show(twice['high'])}"
    )
    return [Big("twice", show(twice["value"]), f"expected {name} with twice the rows", beside)]
