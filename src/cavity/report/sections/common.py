"""What several sections have in common."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from cavity.report.analysis import Analysis, Record
from cavity.report.blocks import Cell, HtmlTable
from cavity.report.words import number, percent


class Measure(NamedTuple):
    """A measure of the error: its names among scores and curves, and how to write it."""

    score: str
    curve: str
    title: str
    format: str
    show: Callable[[float], str]
    of_curve: Callable[[float], float] = float
    """From the curve's errors to errors in the target's units."""


def measures(a: Analysis) -> tuple[Measure, Measure]:
    """Return the error and the log loss."""
    log_loss = Measure("log_loss", "log_loss", "log loss", ",.3~g", number)
    if a.is_classes:
        show = partial(percent, digits=1)
        return Measure("error", "error", "error rate", ".1%", show), log_loss
    rmse = Measure("rmse", "error", "root mean square error", ",.3~g", number, math.sqrt)
    return rmse, log_loss


def interval(scores: Record, key: str) -> Record:
    """Return a score's value with low and high, the ends of its 95 % interval."""
    value, reach = scores[key], 1.96 * (scores[f"{key}_se"] or 0.0)
    return {"value": value, "low": value - reach, "high": value + reach}


def agreeing(a: Analysis) -> tuple[int, int]:
    """Return in how many groups predicted and observed agree, and how many groups there are."""
    bins = [line for entry in a.calibration for line in entry["bins"]]
    inside = [b["observed_low"] <= b["predicted"] <= b["observed_high"] for b in bins]
    return sum(inside), len(inside)


def cell(x: float | None, digits: int = 3) -> Cell:
    """Return a number as a table's cell."""
    return Cell(number(x, digits), x)


def word_cell(text: str) -> Cell:
    """Return a name as a table's cell."""
    return Cell(text, text)


def share_cell(x: float | None) -> Cell:
    """Return a probability or a share as a table's cell."""
    return Cell(percent(x, 1), x)


def count_cell(n: int) -> Cell:
    """Return a number of rows as a table's cell."""
    return Cell(f"{n:,}", n)


def behind(
    name: str, rows: list[Record], /, **columns: tuple[str, Callable[[Any], Cell]]
) -> HtmlTable:
    """Return the table behind a chart, of columns head = (field, how to show it)."""
    cells = [[show(row[field]) for field, show in columns.values()] for row in rows]
    heads = [head.replace("_", " ") for head in columns]
    return HtmlTable(f"{name}-numbers", "Numbers of the chart", heads, cells)
