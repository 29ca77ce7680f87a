"""What the page says about outliers: which rows they are, and whether heavy tails do better."""

from typing import Any

from cavity.report.analysis import Analysis, Record
from cavity.report.blocks import Cell, HtmlTable, Note
from cavity.report.sections.common import cell, word_cell
from cavity.report.words import count, join, number, plus_minus

_MOST_NAMED = 12
_SCORES = {"log_loss": "log loss", "rmse": "root mean square error", "mae": "mean absolute error"}


def outlier_blocks(a: Analysis) -> list[Any]:
    """Return a sentence about outliers and, if another model was tried, both models' scores."""
    said = [Note(text) for text in outlier_sentences(a)]
    robust = a.outliers and a.outliers["robust"]
    return [*said, _table(a, robust)] if robust else said


def outlier_sentences(a: Analysis) -> list[str]:
    """Return what was found about outliers, in sentences; nothing if nothing was looked for."""
    found = a.outliers
    if found is None:
        return []
    limit = number(found["threshold"], 2)
    if not found["rows"]:
        none = f"No row is an outlier: none is more than {limit} standard deviations off, which"
        return [f"{none} Gaussian noise would exceed in one of a hundred such tables."]
    far = (
        f"{_named(found['rows'])} further off than {limit} standard deviations, which Gaussian "
        "noise would exceed in one of a hundred such tables."
    )
    return [far, *_tried(a, found["robust"])]


def _named(rows: list[int]) -> str:
    names = [str(row) for row in rows[:_MOST_NAMED]]
    more = [f"{len(rows) - len(names):,} more"] if len(rows) > len(names) else []
    kind = count(len(rows), "row is an outlier", "rows are outliers")
    return f"{kind} ({join([*names, *more])}),"


def _tried(a: Analysis, robust: Record | None) -> list[str]:
    if robust is None:
        return ["A model with heavy tails was not tried on so many rows: see --task robust."]
    losses = (
        f"its log loss on left-out rows is {number(robust['scores']['log_loss'])}, and that of "
        f"this model {number(a.left_out['log_loss'])}"
    )
    ours = {
        "better": f"A model with heavy tails (--task robust) predicts better: {losses}.",
        "as good": f"A model with heavy tails (--task robust) predicts no better: {losses}.",
        "worse": f"A model with heavy tails (--task robust) predicts worse: {losses}.",
    }[robust["verdict"]]
    if robust["verdict"] != "better" or not robust["rows"]:
        return [ours]
    return [f"{ours} To it, {_named(robust['rows']).rstrip(',')}."]


def _table(a: Analysis, robust: Record) -> HtmlTable:
    def line(name: str, scores: Record) -> list[Cell]:
        shown = [
            Cell(plus_minus(scores[k], scores.get(f"{k}_se")), scores[k])
            if scores[k] is not None
            else cell(None)
            for k in _SCORES
        ]
        return [word_cell(name), *shown]

    rows = [
        line("Gaussian noise (this model)", a.left_out),
        line("heavy tails (--task robust)", robust["scores"]),
    ]
    return HtmlTable(
        "outliers", "Two kinds of noise, on left-out rows", ["", *_SCORES.values()], rows
    )
