"""One draw: what a curve from few rows states, and what fits to more rows find."""

import time
from typing import Any

import numpy as np

from benchmarks.goals.sets import FACTORS, Draw, draw, named
from benchmarks.trust.models import auto
from benchmarks.trust.scores import on_rows
from cavity import learning_curve
from cavity.model_selection import ErrorTrend

__all__ = ["MEASURES", "one_draw"]

MEASURES = ("error", "log_loss")


def one_draw(name: str, seed: int) -> list[dict[str, Any]]:
    """Return a row for each measure and size."""
    begin, about = time.process_time(), named(name)
    rows, kind = draw(about, seed), about.set.kind
    n = about.rows
    curve = learning_curve(auto(kind).fit(rows.X[:n], rows.y[:n]), rows.X[:n], rows.y[:n])
    trends = {what: curve.source.trend(what) for what in MEASURES}
    found = []
    for factor in FACTORS:
        scores = _refitted(kind, rows, factor * n)
        for what in MEASURES:
            case = {"set": name, "kind": kind, "draw": seed, "n": n, "times": factor}
            truth = {"measure": what, "truth": scores[what], "alone": _alone(kind, rows)[what]}
            found.append({**case, **truth, **_distribution(trends[what], factor * n)})
    seconds = round(time.process_time() - begin, 2)
    return [{**row, "seconds": seconds} for row in found]


def _distribution(trend: ErrorTrend, n: int) -> dict[str, float]:
    """Return what is stated, to twelve digits of what `curve.probability` uses."""
    found = trend.distribution(np.array(float(n)))
    return {key: float(f"{float(value):.12g}") for key, value in found._asdict().items()}


def _refitted(kind: str, rows: Draw, n: int) -> dict[str, float]:
    """Tune and fit again on the first n rows, and score fresh ones."""
    model = auto(kind).fit(rows.X[:n], rows.y[:n])
    return on_rows(kind, model, rows.X_fresh, rows.y_fresh).means()


def _alone(kind: str, rows: Draw) -> dict[str, float]:
    """Return the scores of the best guess that looks at no inputs."""
    y = rows.y_fresh
    if kind == "target":
        return {"error": float(y.var()), "log_loss": 0.5 * np.log(2.0 * np.pi * np.e * y.var())}
    p = np.bincount(y.astype(int)) / len(y)
    return {"error": float(1.0 - p.max()), "log_loss": float(-p[p > 0.0] @ np.log(p[p > 0.0]))}
