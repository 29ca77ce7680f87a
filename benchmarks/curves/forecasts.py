"""Forecasts from a random half against what the whole shows."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import curve_fit
from sklearn.base import clone

from benchmarks.curves.tasks import Plan, Task, say, tasks
from benchmarks.tables import markdown
from cavity import learning_curve, simulate_learning_curve

__all__ = ["forecast", "forecast_page"]


def forecast(plan: Plan) -> list[dict[str, Any]]:
    """Foresee from a random half what refits to nine tenths of the whole find."""
    rows = []
    for name, task in tasks().items():
        size = round(0.9 * len(task.y))
        whole = simulate_learning_curve(
            task.model, task.X, task.y, train_sizes=[size], n_repeats=200, random_state=0
        )
        for seed in range(plan.halves):
            say(f"{name}, half {seed + 1} of {plan.halves}")
            # The rules of the forecast were settled on halves from other seeds.
            half = np.random.default_rng(100 + seed).permutation(len(task.y))[: len(task.y) // 2]
            for row in _foresee(task, half, size, seed):
                truth = float(getattr(whole, f"test_{row['measure']}")[0])
                rows.append({"set": name, "half": seed, "size": size, "truth": truth, **row})
    return rows


def _foresee(task: Task, half: np.ndarray, size: int, seed: int) -> Iterator[dict[str, Any]]:
    X, y = task.X[half], task.y[half]
    model = clone(task.model).fit(X, y)
    curve = learning_curve(model, X, y)
    refits = simulate_learning_curve(
        model, X, y, train_sizes=(0.2, 0.35, 0.5, 0.7, 0.9), n_repeats=20, random_state=seed
    )
    for measure in ("error", "log_loss"):
        ours = curve.forecast(size, measure)
        fitted = _power_law(refits.train_sizes, getattr(refits, f"test_{measure}"), size)
        yield {"measure": measure, **ours._asdict(), "power_law": fitted}


def _power_law(sizes: np.ndarray, values: np.ndarray, size: int) -> float:
    """Return a + b m^−c fitted to a simulated curve, at a size beyond it."""

    def law(m: np.ndarray, a: float, b: float, c: float) -> np.ndarray:
        return a + b * (m / sizes[-1]) ** -c

    low = -np.inf if np.min(values) < 0.0 else 0.0
    start = (max(values[-1] - np.ptp(values), low), np.ptp(values) + 1e-3, 0.5)
    bounds = ((low, 0.0, 0.05), (np.inf, np.inf, 5.0))
    try:
        found, _ = curve_fit(law, sizes, values, p0=start, bounds=bounds, maxfev=5000)
    except RuntimeError:
        return float(values[-1])
    return float(law(np.array(float(size)), *found))


def forecast_page(rows: list[dict[str, Any]]) -> str:
    """Return coverage and median errors for each set and measure."""
    groups = dict.fromkeys((row["set"], row["measure"]) for row in rows)
    lines = []
    for name, measure in groups:
        some = [r for r in rows if (r["set"], r["measure"]) == (name, measure)]
        value, truth, other = (
            np.array([r[key] for r in some]) for key in ("value", "truth", "power_law")
        )
        inside = np.array([r["low"] <= r["truth"] <= r["high"] for r in some])
        width = np.median([r["high"] - r["low"] for r in some])
        lines.append(
            [
                name,
                measure.replace("_", " "),
                f"{truth[0]:.4g}",
                f"{100.0 * inside.mean():.0f} %",
                f"{width:.3g}",
                f"{np.median(np.abs(value - truth)):.4g}",
                f"{np.median(np.abs(other - truth)):.4g}",
                f"{np.mean(value - truth):+.3g}",
            ]
        )
    return "\n\n".join(
        [
            "## Forecasts",
            f"From {len({r['half'] for r in rows})} random halves of each set, the kernel tuned on "
            "the half: the held-out error at 0.9 of the whole (truth: 200 refits, the kernel tuned "
            "on the whole). The power law is a + b m^-c fitted to 20 refits at each of five "
            "sizes of the same half.",
            markdown(
                [
                    "set",
                    "measure",
                    "truth",
                    "inside 90 % interval",
                    "median width",
                    "median error of forecast",
                    "of power law",
                    "mean deviation",
                ],
                lines,
            ),
        ]
    )
