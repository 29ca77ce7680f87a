"""How certain the predictions are."""

import math

import numpy as np

from cavity.arrays import Array
from cavity.report import charts
from cavity.report.analysis import Analysis, Record
from cavity.report.blocks import Figure, Figures, Section
from cavity.report.examples import records
from cavity.report.sections.common import example_table
from cavity.report.words import number, percent

_SURE, _BINS = 0.9, 16


def certainty(a: Analysis) -> Section:
    """Return the section on the certainty of predictions."""
    headline, figure = _classes(a) if a.is_classes else _quantities(a)
    table = example_table(a, "least-certain", "The least certain rows", a.least_certain)
    title = "How certain are the predictions?"
    return Section("certainty", title, headline, [Figures([figure]), table])


def _classes(a: Analysis) -> tuple[str, Figure]:
    rows = records(a.points)
    sure = [row for row in rows if row["probability"] >= _SURE]
    right = sum(row["prediction"] == row["label"] for row in sure)
    if sure:
        headline = (
            f"{percent(len(sure) / len(rows))} of the rows are predicted with a probability of at "
            f"least {percent(_SURE)}, and {right:,} of these {len(sure):,} predictions are right."
        )
    else:
        headline = f"No row is predicted with a probability of {percent(_SURE)} or more."
    return headline, _class_figure(a, rows, headline)


def _class_figure(a: Analysis, rows: list[Record], text: str) -> Figure:
    floor = math.floor(20.0 / len(a.data.classes)) / 20.0
    kinds: dict[str, list[float]] = {"right": [], "wrong": []}
    for row in rows:
        is_right = row["prediction"] == row["label"]
        kinds["right" if is_right else "wrong"].append(row["probability"])
    bars = _bars(kinds, np.linspace(floor, 1.0, round((1.0 - floor) * 20) + 1))
    title = "probability of the predicted class"
    return Figure(
        "sureness",
        charts.histogram(bars, ["right", "wrong"], title, ".0%", text),
        "Probability of the predicted class (leave-one-out), for right and wrong predictions.",
        text,
    )


def _bars(kinds: dict[str, list[float]], edges: Array) -> list[Record]:
    """Return the bars of a stacked histogram, the first kind at the bottom."""
    bars, below = [], np.zeros(len(edges) - 1, dtype=int)
    for kind, values in kinds.items():
        counts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
        bars += [
            {
                "lower": float(edges[k]),
                "upper": float(edges[k + 1]),
                "kind": kind,
                "count": int(counts[k]),
                "below": int(below[k]),
                "above": int(below[k] + counts[k]),
            }
            for k in np.flatnonzero(counts)
        ]
        below = below + counts
    return bars


def _quantities(a: Analysis) -> tuple[str, Figure]:
    std = sorted(a.points["std"])
    middle, high = std[len(std) // 2], std[math.ceil(0.95 * len(std)) - 1]
    headline = (
        f"Half of the predictions of {a.data.target} have a standard deviation of at most "
        f"{number(middle, 2)}, and 95 in 100 of at most {number(high, 2)}."
    )
    reach = 0.0 if std[-1] > std[0] else 0.5 * abs(std[0])
    bars = _bars({"rows": std}, np.linspace(std[0] - reach, std[-1] + reach, _BINS + 1))
    figure = Figure(
        "sureness",
        charts.histogram(bars, ["rows"], "predicted standard deviation", ",.2~g", headline),
        "Standard deviations of the leave-one-out predictions.",
        headline,
    )
    return headline, figure
