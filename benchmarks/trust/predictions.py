"""The mean log loss of every model on fresh rows, set by set."""

from typing import Any

import numpy as np

from benchmarks.tables import markdown
from benchmarks.trust.models import MODELS
from benchmarks.trust.scores import mean_and_error

__all__ = ["losses", "page"]

SLACK = 0.01
"""Nats by which the automatic model may lose to the better of the two kernels."""
_TITLES = {"classes": "Classification: mean log loss", "target": "Regression: mean log loss"}


def page(rows: list[dict[str, Any]]) -> str:
    """Return one table for classes and one for targets."""
    parts = ["## Predictions on fresh rows"]
    for kind, title in _TITLES.items():
        some = [row for row in rows if row["kind"] == kind]
        if some:
            parts += [f"### {title}", _verdict(some), _table(some, kind), *_failures(some)]
    return "\n\n".join(parts)


def losses(rows: list[dict[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """Return the log losses on fresh rows of all splits, by set and model."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if "fresh" in row:
            of_set = found.setdefault(row["set"], {})
            of_set.setdefault(row["model"], []).append(row["fresh"]["log_loss"])
    return found


def _table(rows: list[dict[str, Any]], kind: str) -> str:
    found = losses(rows)
    tried = {row["model"] for row in rows}
    who = [name for name in MODELS[kind] if name in tried]
    size = {row["set"]: str(row["n"]) for row in rows}
    lines = [[name, size[name], *_cells(found[name], who)] for name in found]
    average = [np.mean([np.mean(of.get(w, [np.nan])) for of in found.values()]) for w in who]
    lines.append(["mean over sets", "", *(f"{value:.3f}" for value in average)])
    wins = [sum(_best(of) == w for of in found.values()) for w in who]
    lines.append(["best on", "", *map(str, wins)])
    return markdown(["set", "rows", *who], lines)


def _cells(of_set: dict[str, list[float]], who: list[str]) -> list[str]:
    """Return mean ± standard error, the best in bold."""
    cells = []
    for name in who:
        if name not in of_set:
            cells.append("failed")
            continue
        text = "{:.3f} ± {:.3f}".format(*mean_and_error(of_set[name]))
        cells.append(f"**{text}**" if name == _best(of_set) else text)
    return cells


def _best(of_set: dict[str, list[float]]) -> str:
    return min(of_set, key=lambda name: float(np.mean(of_set[name])))


def _verdict(rows: list[dict[str, Any]]) -> str:
    """Say on how many sets the automatic choice is no worse than the better kernel."""
    lost = {}
    for name, of_set in losses(rows).items():
        if {"auto", "isotropic", "relevances"} <= of_set.keys():
            ours, *others = (np.mean(of_set[w]) for w in ("auto", "isotropic", "relevances"))
            lost[name] = float(ours - min(others))
    worse = [f"{name} ({loss:+.3f})" for name, loss in lost.items() if loss > SLACK]
    return (
        f"`auto` loses at most {SLACK} nats to the better of the isotropic kernel and free "
        f"relevances on {len(lost) - len(worse)} of {len(lost)} sets. "
        f"Where it loses more: {', '.join(worse) or 'nowhere'}."
    )


def _failures(rows: list[dict[str, Any]]) -> list[str]:
    failed = [f"{r['model']} on {r['set']}, split {r['split']}" for r in rows if "failed" in r]
    notes = [f"Fits that failed and are missing from the means: {'; '.join(failed)}."]
    missing = sorted(set(MODELS[rows[0]["kind"]]) - {row["model"] for row in rows})
    notes = notes if failed else []
    return notes + ([f"Not installed: {', '.join(missing)}."] if missing else [])
