"""The three or four numbers on top."""

from typing import Any, NamedTuple

from cavity.report.sections.common import best_scores, is_classes, where
from cavity.report.sections.more import expected_at
from cavity.report.words import number, percent

__all__ = ["Big", "strip"]

Json = dict[str, Any]


class Big(NamedTuple):
    """A number, what it is, and what to compare it with."""

    name: str
    value: str
    label: str
    beside: str


def strip(a: Json) -> list[Big]:
    """Return the numbers that sum up an analysis."""
    return [*(_classes(a) if is_classes(a) else _quantities(a)), *_ahead(a)]


def _classes(a: Json) -> list[Big]:
    s = best_scores(a)
    sure = f"{where(a)}; class shares alone: {number(s['baseline_log_loss'])}"
    agree = [_within(line) for entry in a["calibration"] for line in entry["bins"]]
    return [
        Big(
            "error",
            percent(s["error"], 1),
            "of answers are wrong",
            f"{where(a)}; always the commonest class: {percent(s['baseline_error'], 1)}",
        ),
        Big("log_loss", number(s["log_loss"]), "log loss, smaller is better", sure),
        Big(
            "calibration",
            f"{sum(agree)} of {len(agree)}",
            "groups of stated probabilities hold",
            "what was stated lies in the 95 % interval of what happened",
        ),
    ]


def _within(line: Json) -> bool:
    return bool(line["observed_low"] <= line["predicted"] <= line["observed_high"])


def _quantities(a: Json) -> list[Big]:
    s = best_scores(a)
    widest = a["calibration"][0]["bins"][-1]
    return [
        Big(
            "rmse",
            number(s["rmse"]),
            f"typical error of {a['data']['target']}",
            f"root mean square, {where(a)}; always the mean: {number(s['baseline_rmse'])}",
        ),
        Big("r2", percent(s["r2"]), "of the variance explained", f"R², {where(a)}"),
        Big(
            "coverage",
            percent(widest["observed"]),
            f"of rows inside their {percent(widest['predicted'])} interval",
            "leave-one-out",
        ),
    ]


def _ahead(a: Json) -> list[Big]:
    rows = a["data"]["counts"]["rows_trained_on"]
    # An error that is zero already has nowhere to go; the log loss has.
    measure = "error" if a["curve"]["error"][-1] > 0.0 else "log_loss"
    now, twice = expected_at(a, rows, measure), expected_at(a, 2 * rows, measure)
    if now is None or twice is None:
        return []
    show = (lambda x: percent(x, 1)) if is_classes(a) and measure == "error" else number
    beside = (
        f"now {show(now['value'])} with {rows:,}; {percent(a['curve']['level'])} interval "
        f"{show(twice['low'])} to {show(twice['high'])}"
    )
    name = measure.replace("_", " ")
    return [Big("twice", show(twice["value"]), f"expected {name} with twice the rows", beside)]
