"""Tables of coin flips, and whether a fit reports that there is nothing to learn."""

from typing import Any

import numpy as np

from benchmarks.tables import markdown
from benchmarks.trust import made_up
from benchmarks.trust.models import OURS, models
from benchmarks.trust.plan import Plan, spread
from benchmarks.trust.scores import left_out
from cavity.model_selection import inputs_help

__all__ = ["measure", "names", "page", "verdict", "wilson"]


def names(plan: Plan) -> list[str]:
    """Return the one set of tables."""
    return ["coins"]


def measure(name: str, plan: Plan, jobs: int) -> list[dict[str, Any]]:
    """Fit our three models to every table."""
    calls = [(seed, who) for seed in range(plan.coins) for who in OURS]
    return [{"set": name, **row} for row in spread(one_table, calls, jobs)]


def one_table(seed: int, who: str) -> dict[str, Any]:
    """Fit one model to one table, whose shape is random too."""
    rng = np.random.default_rng([seed, 2])
    n, d = int(rng.integers(100, 501)), int(rng.integers(5, 61))
    X, y = made_up.coins(n, rng, d)
    model = models("classes")[who](d).fit(X, y)
    scores = left_out("classes", model, y)
    low, high = wilson(float(scores.error.mean()), n)
    about = {"seed": seed, "model": who, "n": n, "d": d, "low": low, "high": high}
    return {**about, **scores.means(), "no_help": verdict(model, X, y)}


def verdict(model: Any, X: np.ndarray, y: np.ndarray) -> bool:
    """Say whether the inputs do not help, as a report does."""
    return not inputs_help(left_out("classes", model, y).log_loss, y, classes=True).helps


def wilson(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's interval for a share of n."""
    centre = (share + z * z / (2.0 * n)) / (1.0 + z * z / n)
    half = z / (1.0 + z * z / n) * np.sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n))
    return float(centre - half), float(centre + half)


def page(rows: list[dict[str, Any]]) -> str:
    """Return how often each model reports the truth about coins."""
    lines = []
    for who in dict.fromkeys(row["model"] for row in rows):
        some = [row for row in rows if row["model"] == who]
        inside = sum(row["low"] <= 0.5 <= row["high"] for row in some)
        better = sum(row["high"] < 0.5 for row in some)
        counts = [f"{k} of {len(some)}" for k in (inside, better, sum(r["no_help"] for r in some))]
        means = [f"{np.mean([row[key] for row in some]):.3f}" for key in ("error", "log_loss")]
        lines.append([who, *counts, *means])
    header = ["model", "interval contains 1/2", "interval below 1/2", "verdict: inputs do not help"]
    return "\n\n".join(
        [
            "## Coin flips",
            "Labels by the toss of a coin, 100 to 500 rows and 5 to 60 inputs. The true error is "
            "1/2 and the best log loss 0.693. The interval is the 95 % one of the reported "
            "leave-one-out error.",
            markdown([*header, "mean reported error", "mean reported log loss"], lines),
        ]
    )
