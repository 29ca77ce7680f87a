"""Every model on every set and split: what it reports, and what fresh rows say."""

import time
from typing import Any

from benchmarks.trust.models import OURS, models
from benchmarks.trust.plan import Plan, spread
from benchmarks.trust.scores import left_out, on_rows
from benchmarks.trust.sets import SETS, available

__all__ = ["measure", "names"]

_QUICK = ("birth weight", "iris", "ring", "coin flips", "noise", "Friedman")


def names(plan: Plan) -> list[str]:
    """Return the sets to do."""
    return [name for name in available() if not plan.quick or name in _QUICK]


def measure(name: str, plan: Plan, jobs: int) -> list[dict[str, Any]]:
    """Fit all models to all splits of a set."""
    calls = [(name, seed, who) for seed in range(plan.splits) for who in models(SETS[name].kind)]
    return spread(one_fit, calls, jobs)


def one_fit(name: str, seed: int, who: str) -> dict[str, Any]:
    """Fit one model to one split; the log loss on fresh rows and the reported one, if any."""
    some = SETS[name]
    split = some.split(seed)
    row = {"set": name, "kind": some.kind, "split": seed, "model": who, "n": len(split.y)}
    begin = time.perf_counter()
    try:
        model = models(some.kind)[who](split.X.shape[1]).fit(split.X, split.y)
        row["fresh"] = on_rows(some.kind, model, split.X_fresh, split.y_fresh).means()
        if who in OURS:
            row["reported"] = left_out(some.kind, model, split.y).means()
    # Whatever goes wrong belongs in the table.
    except Exception as failure:
        row["failed"] = f"{type(failure).__name__}: {failure}"
    return {**row, "seconds": round(time.perf_counter() - begin, 3)}
