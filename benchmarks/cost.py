"""The cost of an evidence with its gradient against n: numbers and a picture."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contestants import PEERS
from benchmarks.measure import child, interleaved, median
from benchmarks.plan import Plan

__all__ = ["Series", "draw", "measure", "table"]

_OURS = ("cavity EP", "cavity Laplace logit", "cavity naive")
_STYLE = {
    "cavity EP": ("#c0392b", "o", "-"),
    "cavity Laplace logit": ("#e67e22", "s", "-"),
    "cavity naive": ("#f1b434", "^", "-"),
    "scikit-learn": ("#2471a3", "D", "--"),
    "GPBoost": ("#148f77", "v", "--"),
    "GPy": ("#7d3c98", "P", "--"),
    "dpotrf(n)": ("#555555", "", ":"),
}
_CUBIC = 8.0
"""Growth of the time when n doubles."""

Series = dict[str, list[dict[str, float]]]


def measure(plan: Plan, absent: dict[str, str], say: Callable[[str], None]) -> Series:
    """Time every contestant at every size that it can be expected to finish in time."""
    here = [name for name in _STYLE if name in _OURS or (name in PEERS and name not in absent)]
    series: Series = {name: [] for name in here}
    for n in plan.sizes:
        say(f"cost at n = {n}")
        names = [name for name in series if _in_time(name, series[name], n, plan)]
        ask = partial(child, plan.timeout, job="evaluate", data=f"synthetic-{n}-10", at="start")
        found = interleaved({w: partial(ask, contestant=w) for w in names}, plan, say)
        for name in names:
            if good := [a for a in found[name] if "failed" not in a]:
                series[name].append({"n": n, **_medians(good)})
    series["dpotrf(n)"] = [{"n": a["n"], "seconds": a["dpotrf"]} for a in series["cavity EP"]]
    return series


def _in_time(name: str, so_far: list[dict[str, float]], n: int, plan: Plan) -> bool:
    if name not in PEERS or n == plan.sizes[0]:
        return True
    if not so_far or so_far[-1]["n"] != plan.sizes[plan.sizes.index(n) - 1]:
        return False
    return so_far[-1]["seconds"] * _CUBIC < plan.patience


def _medians(answers: list[dict[str, Any]]) -> dict[str, float]:
    return {key: median([a[key] for a in answers]) for key in ("seconds", "dpotrf")}


def draw(series: Series, path: Path) -> None:
    """Draw seconds against n on two logarithmic axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8.0, 5.2), layout="constrained")
    for name, points in series.items():
        if points:
            color, marker, line = _STYLE[name]
            n, seconds = ([p[key] for p in points] for key in ("n", "seconds"))
            axes.loglog(n, seconds, line, color=color, marker=marker, label=name)
    sizes = [int(p["n"]) for p in series["dpotrf(n)"]]
    axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
    axes.minorticks_off()
    axes.set(xlabel="examples n", ylabel="seconds")
    axes.set_title("One log evidence with its gradient, d = 10, one length scale per input")
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def table(series: Series) -> tuple[list[str], list[list[str]]]:
    """Return a header and rows: seconds, and multiples of dpotrf(n)."""
    sizes = [int(p["n"]) for p in series["dpotrf(n)"]]
    rows = [[name, *_cells(points, sizes)] for name, points in series.items()]
    return ["seconds (x dpotrf)", *(f"n = {n:,}" for n in sizes)], rows


def _cells(points: list[dict[str, float]], sizes: list[int]) -> list[str]:
    at = {int(p["n"]): p for p in points}
    return [_cell(at[n]) if n in at else "–" for n in sizes]


def _cell(point: dict[str, float]) -> str:
    floors = point["seconds"] / point["dpotrf"] if "dpotrf" in point else np.nan
    seconds = f"{point['seconds']:.3g}"
    return seconds if np.isnan(floors) else f"{seconds} ({floors:.1f})"
