"""The time of an automatic fit with its honest losses, beside one fit of free relevances."""

import time
from typing import Any

import numpy as np

from benchmarks.data import synthetic
from benchmarks.tables import markdown
from benchmarks.trust.models import models
from benchmarks.trust.plan import Plan, spread
from benchmarks.trust.scores import left_out
from cavity.datasets import load_pima

__all__ = ["measure", "names", "page"]

_WORK = {"relevances": "one fit of free relevances", "auto": "auto, with leave-one-out"}


def names(plan: Plan) -> list[str]:
    """Return the tables to time, by name or shape."""
    return ["Pima", "200 x 10"] if plan.quick else ["Pima", "500 x 10"]


def measure(name: str, plan: Plan, jobs: int) -> list[dict[str, Any]]:
    """Time both models in turn in one process, whatever the number of jobs."""
    (rows,) = spread(_rounds, [(name, plan.rounds)], 1)
    return rows


def _rounds(name: str, rounds: int) -> list[dict[str, Any]]:
    X, y = _table(name)
    for who in _WORK:
        # What is loaded lazily is loaded now.
        _seconds(who, X[:40], y[:40])
    return [
        {"set": name, "model": who, "round": k, "seconds": _seconds(who, X, y)}
        for k in range(rounds)
        for who in _WORK
    ]


def _table(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "Pima":
        return load_pima(return_X_y=True)
    n, d = map(int, name.split(" x "))
    data = synthetic(n, d)
    return data.X, (data.y > 0.0).astype(int)


def _seconds(who: str, X: np.ndarray, y: np.ndarray) -> float:
    begin = time.perf_counter()
    model = models("classes")[who](X.shape[1]).fit(X, y)
    if who == "auto":
        left_out("classes", model, y)
    return time.perf_counter() - begin


def page(rows: list[dict[str, Any]]) -> str:
    """Return seconds and their ratio."""
    lines = []
    for name in dict.fromkeys(row["set"] for row in rows):
        times = {
            who: np.array([r["seconds"] for r in rows if (r["set"], r["model"]) == (name, who)])
            for who in _WORK
        }
        ratio = np.median(times["auto"] / times["relevances"])
        seconds = [f"{np.median(times[who]):.3g} s" for who in _WORK]
        lines.append([name, *seconds, f"{ratio:.1f} x"])
    return "\n\n".join(
        [
            "## Cost",
            "Classification on one thread; medians of rounds in turn, in one process. "
            "Pima has 200 rows and 7 inputs.",
            markdown(["table", *_WORK.values(), "ratio"], lines),
        ]
    )
