"""How well wrong labels are found: the order of the rows, their number, and what was promised."""

from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.suspects.fits import OURS, PEERS, Case, Seen
from cavity.model_selection.label_noise import label_noise
from cavity.model_selection.suspects import cut_off

__all__ = ["PROMISES", "scores"]

PROMISES = (0.5, 0.7, 0.9)
"""Precisions that the cut-off is asked for."""


def scores(case: Case, seen: Seen) -> list[dict[str, Any]]:
    """Return a row for each model: by cleanlab's rules, and by ours for ours."""
    about = {**case._asdict(), "n": len(seen.wrong), "wrong": int(seen.wrong.sum())}
    rows = []
    for name in PEERS:
        doubt, count = _by_cleanlab(seen.given, seen.proba[name])
        rows.append({"model": name, "count": count, **_order(doubt, seen.wrong)})
    rows.insert(0, {"model": OURS, **_ours(seen)})
    return [about | row | {"seconds": round(seen.seconds[row["model"]], 3)} for row in rows]


def _by_cleanlab(given: np.ndarray, proba: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the doubt about each label, and how many are wrong."""
    from cleanlab.count import num_label_issues
    from cleanlab.rank import get_label_quality_scores

    return -get_label_quality_scores(given, proba), int(num_label_issues(given, proba))


def _ours(seen: Seen) -> dict[str, Any]:
    found = label_noise(seen.proba[OURS], seen.given)
    low, high = found.interval(0.9)
    order = np.argsort(-found.wrong)
    kept = {}
    for precision in PROMISES:
        k = cut_off(found.wrong[order], precision)
        kept[f"kept {precision:g}"] = float(seen.wrong[order[:k]].mean()) if k else None
    return {
        "count": found.count,
        "low": low,
        "high": high,
        **kept,
        **_order(found.wrong, seen.wrong),
    }


def _order(doubt: np.ndarray, wrong: np.ndarray) -> dict[str, float]:
    """Return how well the order of the rows tells wrong labels from right ones."""
    first = np.argsort(-doubt, kind="stable")[: wrong.sum()]
    found = {
        "auc": roc_auc_score(wrong, doubt),
        "ap": average_precision_score(wrong, doubt),
        "at_k": wrong[first].mean(),
    }
    return {name: round(float(value), 4) for name, value in found.items()}
