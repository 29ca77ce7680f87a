"""How much more data would help."""

import math
from collections.abc import Callable
from typing import Any

from cavity.report import charts
from cavity.report.blocks import Figure, Figures, Goal, Note, Section
from cavity.report.sections.common import error_key, is_classes
from cavity.report.words import number, percent

__all__ = ["expected_at", "more"]

Json = dict[str, Any]
_FORECASTS = {"error": "forecast", "log_loss": "log_loss_forecast"}
# A smaller change than this share of the error is not worth anybody's labelling.
_HARDLY = 0.02


def more(a: Json) -> Section:
    """Return the section on learning curves."""
    measures = ("error", "log_loss")
    return Section(
        "more",
        "How much would more data help?",
        _headline(a),
        [
            Figures([_figure(a, measure) for measure in measures]),
            *(_goal(a, measure) for measure in measures),
            Note(
                "Up to your rows the curve is the average over training sets of that size drawn "
                "from them, computed by theory from the one fit. Beyond, it is continued as a "
                "power law, where its error is weighed with the error that the model expects of "
                f"itself; the band is a {percent(a['curve']['level'])} interval. The kernel "
                "stays as tuned, and new rows are taken to be like those at hand.",
                quiet=True,
            ),
        ],
    )


def expected_at(a: Json, size: int, measure: str = "error") -> Json | None:
    """Return value, low and high of the curve at a size, if it is tabulated there."""
    found = [line for line in _line(a, measure) if line["size"] == size]
    return found[0] if found else None


def _line(a: Json, measure: str) -> list[Json]:
    """Return the curve and its forecast by size; of squared errors, the roots."""
    curve = a["curve"]
    inside = [
        {"size": size, "value": value, "low": value, "high": value}
        for size, value in zip(curve["sizes"], curve[measure], strict=True)
    ]
    # Where both speak, the forecast has an interval as well.
    found = {p["size"]: p for p in [*inside, *curve[_FORECASTS[measure]]]}
    root = _root(a, measure)
    return [
        {"size": size, **{k: root(found[size][k]) for k in ("value", "low", "high")}}
        for size in sorted(found)
    ]


def _root(a: Json, measure: str) -> Callable[[float], float]:
    """Return how a squared error becomes one in the target's own units."""
    return math.sqrt if measure == "error" and not is_classes(a) else float


def _headline(a: Json) -> str:
    n = a["data"]["counts"]["rows_trained_on"]
    now, then = expected_at(a, n), expected_at(a, 2 * n)
    if now is None or then is None:
        return "The curve says how the error falls with the number of rows."
    if now["value"] == 0.0:
        return f"With {n:,} rows no row is mistaken any more; more data cannot show in the error."
    change = 1.0 - then["value"] / now["value"]
    if change < _HARDLY:
        return (
            f"More rows of the same kind would hardly lower the error: with twice as many it is "
            f"expected to be {_said(a, then['value'])}, and is {_said(a, now['value'])} now."
        )
    return (
        f"With twice as many rows the error is expected to fall from {_said(a, now['value'])} to "
        f"{_said(a, then['value'])}, a change of {percent(change)}."
    )


def _said(a: Json, value: float) -> str:
    return percent(value, 1) if is_classes(a) else number(value)


def _title(a: Json, measure: str) -> str:
    if measure == "log_loss":
        return "log loss"
    return "share of wrong answers" if is_classes(a) else "root mean square error"


def _figure(a: Json, measure: str) -> Figure:
    n = a["data"]["counts"]["rows_trained_on"]
    line = _line(a, measure)
    title = _title(a, measure)
    form = ".1%" if measure == "error" and is_classes(a) else ",.3~g"
    first, last = line[0], line[-1]
    show = _said if measure == "error" else (lambda a, x: number(x))
    text = (
        f"Learning curve: {title} against the number of rows, from {show(a, first['value'])} at "
        f"{first['size']:,} rows to an expected {show(a, last['value'])} at {last['size']:,}."
    )
    return Figure(
        f"curve-{measure}",
        charts.learning(line, n, _held_out(a, measure), title, form, text),
        f"{title.capitalize()} on new examples. Solid: within your rows. Dashed: forecast."
        + (" The dot is the score on the held-out rows." if a["held_out"] else ""),
        text,
    )


def _held_out(a: Json, measure: str) -> list[Json]:
    scores = a["held_out"]
    if not scores:
        return []
    key = measure if measure == "log_loss" else error_key(a)
    value, reach = scores[key], 1.96 * (scores[f"{key}_se"] or 0.0)
    n = a["data"]["counts"]["rows_trained_on"]
    return [
        {
            "name": "held-out rows",
            "size": n,
            "value": value,
            "low": value - reach,
            "high": value + reach,
        }
    ]


def _far(a: Json, measure: str) -> list[Json]:
    """Return the curve up to the rows at hand and the forecast as far as anybody may ask."""
    n, far = a["data"]["counts"]["rows_trained_on"], a["curve"]["far"]
    root = _root(a, measure)
    beyond = [
        {"size": size, "value": root(value)}
        for size, value in zip(far["size"], far[measure], strict=True)
        if size > n
    ]
    return [p for p in _line(a, measure) if p["size"] <= n] + beyond


def _goal(a: Json, measure: str) -> Goal:
    line = _line(a, measure)
    n = a["data"]["counts"]["rows_trained_on"]
    now = next(p["value"] for p in line if p["size"] == n)
    rate = measure == "error" and is_classes(a)
    least = min(p["value"] for p in line)
    start = (now + least) / 2
    before, after = (
        ("To be wrong at most", "times in 100,")
        if rate
        else (f"For a {_title(a, measure)} of", ",")
    )
    return Goal(
        name=measure,
        before=before,
        after=after,
        start=number(100 * start if rate else start).replace(",", "").replace("−", "-"),
        unit=0.01 if rate else 1.0,
        at_hand=n,
        sizes=[p["size"] for p in _far(a, measure)],
        values=[p["value"] for p in _far(a, measure)],
    )
