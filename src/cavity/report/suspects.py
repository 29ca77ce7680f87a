"""The rows of a report whose labels look wrong, and how many labels are."""

import warnings
from typing import Any

import numpy as np
import polars as pl

from cavity import find_suspects
from cavity.arrays import Array
from cavity.estimators.fitted import fitted_model
from cavity.model_selection.audit import suspects_of_classes
from cavity.model_selection.suspects import Reason, Suspects
from cavity.report.parts import LEVEL, records_of
from cavity.report.scores import Unseen
from cavity.tables.prepare import Prepared

SHOWN = 10
"""Suspects that are shown on the page, as many as there are rows for, doubtful or not."""
_PROMISE = 0.5
_SMALLEST = 1e-300


def suspects_of(data: Prepared, fitted: Any, left_out: Unseen) -> tuple[Array, dict[str, Any]]:
    """Return which rows are suspects, and the fields suspects and wrong_labels of an analysis.

    ``wrong_labels`` has count, low, high and level (how many labels are wrong, or targets
    outliers), rows, and chosen: how many suspects to look at if every second one is to be wrong.
    """
    found = _found(data, fitted, left_out, None)
    if len(found) < min(SHOWN, len(data.y)):
        found = _found(data, fitted, left_out, min(SHOWN, len(data.y)))
    places = np.array([suspect.index for suspect in found])
    names = np.array([str(name) for name in data.classes], dtype=object)
    lines = records_of(data, left_out, places)
    for line, suspect in zip(lines, found, strict=True):
        line |= {"wrong": suspect.wrong, "precision": suspect.precision}
        line |= {"suggestion": names[suspect.suggestion] if data.classes else suspect.suggestion}
        line |= dict(zip(("low", "high"), suspect.interval or (), strict=False))
        line["reasons"] = [_reason(data, names, reason) for reason in suspect.reasons]
    low, high = found.count_interval or (0, 0)
    about = {"count": found.count, "low": low, "high": high, "level": LEVEL}
    chosen = sum((line["precision"] or 0.0) >= _PROMISE for line in lines)
    about |= {"rows": found.n_rows, "chosen": chosen}
    return places, {"suspects": lines, "wrong_labels": about}


def _found(data: Prepared, fitted: Any, left_out: Unseen, k: int | None) -> Suspects:
    with warnings.catch_warnings():
        # Where leave-one-out is too good, folds have taken its place.
        warnings.simplefilter("ignore", UserWarning)
        if left_out.proba is None:
            return find_suspects(fitted, k=k, level=LEVEL)
        log_p, codes = np.log(np.maximum(left_out.proba, _SMALLEST)), np.arange(len(data.classes))
        return suspects_of_classes(fitted_model(fitted), codes, log_p, k=k, level=LEVEL)


def _reason(data: Prepared, names: Array, reason: Reason) -> dict[str, Any]:
    label = names[reason.label] if data.classes else reason.label
    return {"row": data.rows[reason.index], "label": label, "share": reason.share}


def suspects_frame(lines: list[dict[str, Any]]) -> pl.DataFrame:
    """Return suspects as a table, with the reasons as text: rows, and the share of each."""
    return pl.DataFrame(
        [line | {"reasons": reasons_text(line, with_shares=True)} for line in lines]
    )


def reasons_text(line: dict[str, Any], *, with_shares: bool = False) -> str:
    """Return the rows that speak against a suspect, in words."""
    each = line["reasons"]
    shares = [f" ({reason['share']:.0%})" if with_shares else "" for reason in each]
    return ", ".join(f"{reason['row']}{share}" for reason, share in zip(each, shares, strict=True))
