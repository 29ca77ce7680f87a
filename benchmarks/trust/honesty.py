"""Reported leave-one-out log losses against those on fresh rows, from the same fits."""

from typing import Any

import numpy as np

from benchmarks.tables import markdown
from benchmarks.trust.models import OURS
from benchmarks.trust.scores import mean_and_error

__all__ = ["gaps", "page"]


def page(rows: list[dict[str, Any]]) -> str:
    """Return the gap of each set and model, and how many are near zero."""
    found = gaps(rows)
    kind = {row["set"]: row["kind"] for row in rows}
    lines = [[name, kind[name], *map(_cell, of.values())] for name, of in found.items()]
    for label, summary in (("mean", _average), ("within two standard errors", _near)):
        lines.append([label, "", *(summary([of[w] for of in found.values()]) for w in OURS)])
    return "\n\n".join(
        [
            "## Reported losses against fresh rows",
            "The leave-one-out log loss that a fit reports, minus its log loss on fresh rows: mean "
            "over the splits ± standard error. A negative gap promises too much. **Bold** gaps are "
            "more than two standard errors from zero.",
            markdown(["set", "kind", *OURS], lines),
        ]
    )


def gaps(rows: list[dict[str, Any]]) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the mean gap and its standard error, by set and model."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row["model"] in OURS:
            of_set = found.setdefault(row["set"], {who: [] for who in OURS})
            if "reported" in row:
                gap = row["reported"]["log_loss"] - row["fresh"]["log_loss"]
                of_set[row["model"]].append(gap)
    return {
        name: {who: mean_and_error(of[who]) if of[who] else (np.nan, np.nan) for who in OURS}
        for name, of in found.items()
    }


def _is_near(gap: tuple[float, float]) -> bool:
    return abs(gap[0]) <= 2.0 * gap[1]


def _cell(gap: tuple[float, float]) -> str:
    if np.isnan(gap[0]):
        return "failed"
    text = f"{gap[0]:+.3f} ± {gap[1]:.3f}"
    return text if _is_near(gap) else f"**{text}**"


def _average(column: list[tuple[float, float]]) -> str:
    return "{:+.3f} ± {:.3f}".format(*mean_and_error([gap for gap, _ in column]))


def _near(column: list[tuple[float, float]]) -> str:
    return f"{sum(map(_is_near, column))} of {len(column)}"
