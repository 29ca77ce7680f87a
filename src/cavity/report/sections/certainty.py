"""How certain the predictions are."""

import math
from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.report import charts
from cavity.report.analysis import Analysis, Record
from cavity.report.blocks import Figure, Figures, Section
from cavity.report.sections.common import example_table
from cavity.report.words import number, percent

_SURE, _BINS = 0.9, 16


def certainty(a: Analysis) -> Section:
    """Return the section on the certainty of predictions."""
    headline, caption, spec = _classes(a) if a.is_classes else _quantities(a)
    figure = Figure("sureness", spec, caption, headline)
    table = example_table(a, "least-certain", "The least certain rows", a.least_certain)
    title = "How certain are the predictions?"
    return Section("certainty", title, headline, [Figures([figure]), table])


def _classes(a: Analysis) -> tuple[str, str, Record]:
    probability = np.array(a.points["probability"])
    right = np.array(a.points["prediction"]) == np.array(a.points["label"])
    sure = probability >= _SURE
    headline = f"No row is predicted with a probability of {percent(_SURE)} or more."
    if sure.any():
        headline = (
            f"{percent(sure.mean())} of the rows are predicted with a probability of at least "
            f"{percent(_SURE)}, and {np.sum(sure & right):,} of these {sure.sum():,} predictions "
            "are right."
        )
    caption = "Probability of the predicted class (leave-one-out), for right and wrong predictions."
    floor = math.floor(20.0 / len(a.data.classes)) / 20.0
    kinds = {"right": probability[right], "wrong": probability[~right]}
    bars = _bars(kinds, np.linspace(floor, 1.0, round((1.0 - floor) * 20) + 1))
    title = "probability of the predicted class"
    return headline, caption, charts.histogram(bars, [*kinds], title, ".0%")


def _quantities(a: Analysis) -> tuple[str, str, Record]:
    std = sorted(a.points["std"])
    middle, high = std[len(std) // 2], std[math.ceil(0.95 * len(std)) - 1]
    headline = (
        f"Half of the predictions of {a.data.target} have a standard deviation of at most "
        f"{number(middle, 2)}, and 95 in 100 of at most {number(high, 2)}."
    )
    caption = "Standard deviations of the leave-one-out predictions."
    reach = 0.0 if std[-1] > std[0] else 0.5 * abs(std[0])
    bars = _bars({"rows": std}, np.linspace(std[0] - reach, std[-1] + reach, _BINS + 1))
    spec = charts.histogram(bars, ["rows"], "predicted standard deviation", ",.2~g")
    return headline, caption, spec


def _bars(kinds: dict[str, Any], edges: Array) -> list[Record]:
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
