"""How sure the model is."""

import math
from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.report import charts
from cavity.report.blocks import Cell, Figure, Figures, Section, Table
from cavity.report.sections.common import (
    cell,
    example_cells,
    example_head,
    is_classes,
    points,
    share_cell,
)
from cavity.report.words import number, percent

__all__ = ["certainty"]

Json = dict[str, Any]
_SURE, _BINS = 0.9, 16


def certainty(a: Json) -> Section:
    """Return the section on how sure predictions are."""
    about = _classes if is_classes(a) else _quantities
    headline, figure = about(a, points(a))
    return Section("certainty", "How sure is it?", headline, [Figures([figure]), _table(a)])


def _classes(a: Json, rows: list[Json]) -> tuple[str, Figure]:
    sure = [row for row in rows if row["probability"] >= _SURE]
    right = sum(row["prediction"] == row["label"] for row in sure)
    if sure:
        headline = (
            f"It is at least {percent(_SURE)} sure of {percent(len(sure) / len(rows))} of the "
            f"examples, and right on {right:,} of these {len(sure):,}."
        )
    else:
        headline = f"It is {percent(_SURE)} sure of none of the examples."
    return headline, _class_figure(a, rows, headline)


def _class_figure(a: Json, rows: list[Json], text: str) -> Figure:
    floor = math.floor(20.0 / len(a["data"]["classes"])) / 20.0
    kinds: dict[str, list[float]] = {"right": [], "wrong": []}
    for row in rows:
        is_right = row["prediction"] == row["label"]
        kinds["right" if is_right else "wrong"].append(row["probability"])
    bars = _bars(kinds, np.linspace(floor, 1.0, round((1.0 - floor) * 20) + 1))
    return Figure(
        "sureness",
        charts.histogram(
            bars, ["right", "wrong"], "probability of the predicted class", ".0%", text
        ),
        "How probable the model held its own answer, leave-one-out, and whether it was right.",
        text,
    )


def _bars(kinds: dict[str, list[float]], edges: Array) -> list[Json]:
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


def _quantities(a: Json, rows: list[Json]) -> tuple[str, Figure]:
    std = sorted(row["std"] for row in rows)
    middle, high = std[len(std) // 2], std[math.ceil(0.95 * len(std)) - 1]
    headline = (
        f"Half of the predictions of {a['data']['target']} are good to ± {number(middle, 2)} or "
        f"better, and 95 in 100 to ± {number(high, 2)}."
    )
    reach = 0.0 if std[-1] > std[0] else 0.5 * abs(std[0])
    bars = _bars({"rows": std}, np.linspace(std[0] - reach, std[-1] + reach, _BINS + 1))
    figure = Figure(
        "sureness",
        charts.histogram(bars, ["rows"], "predicted standard deviation", ",.2~g", headline),
        "How far off the model expects to be, leave-one-out.",
        headline,
    )
    return headline, figure


def _table(a: Json) -> Table:
    if is_classes(a):
        between = ("label", "prediction", "probability")
        rows = [
            example_cells(
                a,
                r["row"],
                Cell(r["label"], r["label"]),
                Cell(r["prediction"], r["prediction"]),
                share_cell(r["probability"]),
            )
            for r in a["least_certain"]
        ]
    else:
        between = (a["data"]["target"], "prediction", "±")
        rows = [
            example_cells(
                a, r["row"], cell(r["label"], 4), cell(r["prediction"], 4), cell(r["std"])
            )
            for r in a["least_certain"]
        ]
    return Table("least-certain", "The least certain rows", example_head(a, *between), rows)
