"""Which labels look wrong."""

from typing import Any

from cavity.report.blocks import Cell, Note, Section, Table
from cavity.report.sections.common import cell, example_cells, example_head, is_classes, share_cell
from cavity.report.words import number, percent

__all__ = ["labels"]

Json = dict[str, Any]


def labels(a: Json) -> Section:
    """Return the section on suspicious labels."""
    first = a["suspects"][0]
    about = _classes if is_classes(a) else _quantities
    headline, between, rows = about(a, first)
    return Section(
        "labels",
        "Which labels look wrong?",
        headline,
        [
            Table("suspects", "The rows to check first", example_head(a, *between), rows),
            Note(
                "Each row is predicted from all the others. A surprising row may be wrong, or "
                "rare, or right where the model is not: look before you change it.",
                quiet=True,
            ),
        ],
    )


def _classes(a: Json, first: Json) -> tuple[str, tuple[str, ...], list[list[Cell]]]:
    wrong = sum(r["probability_of_label"] < 0.1 for r in a["suspects"])
    if first["probability_of_label"] < 0.5:
        headline = (
            f"Check row {first['row']} first: it says {first['label']}, and the other rows give "
            f"that {percent(first['probability_of_label'], 1)}."
        )
        if wrong > 1:
            least = "At least " if wrong == len(a["suspects"]) else ""
            headline += f" {least}{wrong} rows are given less than 10 %."
    else:
        headline = "None: every row's label is what the other rows predict."
    rows = [
        example_cells(
            a,
            r["row"],
            Cell(r["label"], r["label"]),
            share_cell(r["probability_of_label"]),
            Cell(r["prediction"], r["prediction"]),
            share_cell(r["probability"]),
        )
        for r in a["suspects"]
    ]
    return headline, ("label", "probability of it", "the others say", "with probability"), rows


def _quantities(a: Json, first: Json) -> tuple[str, tuple[str, ...], list[list[Cell]]]:
    headline = (
        f"Check row {first['row']} first: it says {number(first['label'])}, and the other rows say "
        f"{number(first['prediction'])} ± {number(first['std'], 2)}, "
        f"{number(abs(first['z']), 2)} standard deviations away."
    )
    rows = [
        example_cells(
            a,
            r["row"],
            cell(r["label"], 4),
            cell(r["prediction"], 4),
            cell(r["std"]),
            cell(r["z"]),
        )
        for r in a["suspects"]
    ]
    return headline, (a["data"]["target"], "the others say", "±", "deviations off"), rows
