"""What several sections look up in an analysis."""

from typing import Any

from cavity.report.blocks import Cell
from cavity.report.words import number, percent

__all__ = [
    "best_scores",
    "cell",
    "error_key",
    "example_cells",
    "example_head",
    "is_classes",
    "points",
    "share_cell",
    "where",
]

Json = dict[str, Any]
_MOST_INPUTS = 8


def is_classes(a: Json) -> bool:
    """Tell whether the target is a class."""
    return bool(a["data"]["task"] == "classification")


def error_key(a: Json) -> str:
    """Return which score is the error: the error rate or the root mean squared error."""
    return "error" if is_classes(a) else "rmse"


def best_scores(a: Json) -> Json:
    """Return the scores on held-out rows if there are any, else the leave-one-out ones."""
    scores: Json = a["held_out"] or a["left_out"]
    return scores


def where(a: Json) -> str:
    """Say which rows the best scores are about."""
    return "held-out rows" if a["held_out"] else "leave-one-out"


def points(a: Json) -> list[Json]:
    """Return what the other rows say about each row, row by row."""
    columns = a["points"]
    lines = zip(*columns.values(), strict=True)
    return [dict(zip(columns, values, strict=True)) for values in lines]


def cell(x: float | None, digits: int = 3, *, strong: bool = False) -> Cell:
    """Return a number as a table's cell."""
    return Cell(number(x, digits), x, strong)


def share_cell(x: float | None) -> Cell:
    """Return a probability as a table's cell."""
    return Cell(percent(x, 1), x)


def example_head(a: Json, *between: str) -> list[str]:
    """Return the head of a table of rows: the row, what is said about it, its own inputs."""
    return ["row", *between, *_shown_inputs(a)]


def example_cells(a: Json, row: int, *between: Cell) -> list[Cell]:
    """Return the cells under `example_head`."""
    values = a["inputs"].get(str(row), {})
    shown = [_value(values.get(name, "–")) for name in _shown_inputs(a)]
    return [Cell(str(row), row), *between, *shown]


def _value(text: str) -> Cell:
    try:
        return Cell(text.replace("-", "−"), float(text))
    except ValueError:
        return Cell(text, text)


def _shown_inputs(a: Json) -> list[str]:
    """Return the columns to show: those that matter most, in the table's order."""
    rows = list(a["inputs"].values())
    if not rows:
        return []
    names = list(rows[0])
    weight = dict.fromkeys(names, 0.0)
    for line in a["relevance"] or []:
        # The inputs of a category are called column=level.
        owner = next(
            (n for n in names if line["feature"] in (n, f"{n}={line['feature'][len(n) + 1 :]}")),
            None,
        )
        if owner is not None:
            weight[owner] = max(weight[owner], line["relevance"])
    chosen = sorted(names, key=lambda name: -weight[name])[:_MOST_INPUTS]
    return [name for name in names if name in chosen]
