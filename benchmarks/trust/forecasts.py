"""Forecasts from a part of a table against fits with twice as many rows."""

from typing import Any

import numpy as np

from benchmarks.tables import markdown
from benchmarks.trust.models import auto
from benchmarks.trust.plan import Plan, spread
from benchmarks.trust.scores import mean_and_error, on_rows
from benchmarks.trust.sets import SETS, available
from cavity import learning_curve

__all__ = ["measure", "names", "page"]

# Four parts or more fit into each of these, so that fresh rows are left at twice the size.
_SETS = (
    "Pima breast_cancer Mroz Swiss_labour turnout mortgages additive ring "
    "Boston abalone computer_prices Friedman"
)
_MEASURES = ("error", "log_loss")
_MOST = 150
"""The most rows of a part."""


def names(plan: Plan) -> list[str]:
    """Return the sets to do."""
    listed = [name.replace("_", " ") for name in _SETS.split()]
    some = [name for name in listed if name in available()]
    return [some[0], some[-1]] if plan.quick else some


def measure(name: str, plan: Plan, jobs: int) -> list[dict[str, Any]]:
    """Forecast from random parts, and measure what comes true."""
    size = _part_size(name)
    # The truth comes from other seeds than the parts.
    truths = spread(_truth, [(name, 2 * size, 1000 + seed) for seed in range(plan.truths)], jobs)
    forecasts = spread(_forecast, [(name, size, seed) for seed in range(plan.parts)], jobs)
    rows = []
    for what in _MEASURES:
        truth, error = mean_and_error([means[what] for means in truths])
        about = {"set": name, "measure": what, "from": size, "truth": truth, "se": error}
        rows += [{**about, "part": i, **found[what]} for i, found in enumerate(forecasts)]
    return rows


def _part_size(name: str) -> int:
    return min(_MOST, len(SETS[name].table(0)[1]) // 4)


def _truth(name: str, size: int, seed: int) -> dict[str, float]:
    """Tune on as many rows as the forecast is for, and score fresh rows."""
    some = SETS[name]
    split = some.split(seed, size)
    model = auto(some.kind).fit(split.X, split.y)
    return on_rows(some.kind, model, split.X_fresh, split.y_fresh).means()


def _forecast(name: str, size: int, seed: int) -> dict[str, dict[str, float]]:
    X, y = SETS[name].table(seed, size)
    curve = learning_curve(auto(SETS[name].kind).fit(X, y), X, y)
    found = {what: curve.forecast(2 * size, what) for what in _MEASURES}
    keys = ("value", "low", "high")
    return {what: {key: float(getattr(f, key)) for key in keys} for what, f in found.items()}


def page(rows: list[dict[str, Any]]) -> str:
    """Return the share inside the intervals, by set and measure."""
    groups = dict.fromkeys((row["set"], row["measure"]) for row in rows)
    lines = []
    for name, what in groups:
        some = [row for row in rows if (row["set"], row["measure"]) == (name, what)]
        lines.append([name, what.replace("_", " "), *_cells(some)])
    inside = [f"{100.0 * _inside([r for r in rows if r['measure'] == w]):.0f} %" for w in _MEASURES]
    return "\n\n".join(
        [
            "## Forecasts",
            f"From {len({row['part'] for row in rows})} random parts of each set: the error and "
            "the log loss at twice the size, with 90 % intervals. The truth is the mean score on "
            "fresh rows of fits with that many rows, tuned again, ± its standard error. Inside "
            f"over all sets: error {inside[0]}, log loss {inside[1]}.",
            markdown(
                [
                    *("set", "measure", "rows", "truth at twice as many", "inside 90 % interval"),
                    *("median width", "median deviation", "mean deviation"),
                ],
                lines,
            ),
        ]
    )


def _inside(rows: list[dict[str, Any]]) -> float:
    return float(np.mean([row["low"] <= row["truth"] <= row["high"] for row in rows]))


def _cells(rows: list[dict[str, Any]]) -> list[str]:
    off = np.array([row["value"] - row["truth"] for row in rows])
    width = np.median([row["high"] - row["low"] for row in rows])
    return [
        str(rows[0]["from"]),
        f"{rows[0]['truth']:.4g} ± {rows[0]['se']:.1g}",
        f"{100.0 * _inside(rows):.0f} %",
        f"{width:.3g}",
        f"{np.median(np.abs(off)):.3g}",
        f"{off.mean():+.3g}",
    ]
