"""What several sections have in common."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from cavity.report.analysis import Analysis, Record
from cavity.report.blocks import Cell, HtmlTable
from cavity.report.words import number, percent

_MOST_INPUTS = 8


Column = tuple[str, str, Callable[[Any], Cell]]
"""A column of a table of rows: its head, a field of the rows, and how to show it."""


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


def share_cell(x: float | None) -> Cell:
    """Return a probability as a table's cell."""
    return Cell(percent(x, 1), x)


def word_cell(text: str) -> Cell:
    """Return a name as a table's cell."""
    return Cell(text, text)


def example_table(
    a: Analysis, name: str, caption: str, examples: list[Record], *more: Column
) -> HtmlTable:
    """Return a table of rows: target, prediction, more columns, and the most relevant inputs."""
    if a.is_classes:
        target, show = "label", word_cell
        certainty: Column = ("probability", "probability", share_cell)
    else:
        target, show = a.data.target, partial(cell, digits=4)
        certainty = ("±", "std", cell)
    columns = [(target, "label", show), ("prediction", "prediction", show), certainty, *more]
    inputs = _shown_inputs(a)
    rows = [
        [
            Cell(str(example["row"]), example["row"]),
            *(show(example[field]) for _, field, show in columns),
            *(_value_cell(a.inputs[str(example["row"])][key]) for key in inputs),
        ]
        for example in examples
    ]
    return HtmlTable(name, caption, ["row", *(head for head, *_ in columns), *inputs], rows)


def _value_cell(text: str) -> Cell:
    try:
        return Cell(text.replace("-", "−"), float(text))
    except ValueError:
        return word_cell(text)


def _shown_inputs(a: Analysis) -> list[str]:
    """Return the most relevant columns, in the table's order."""
    relevance = {line["feature"]: line["relevance"] for line in a.relevance or []}
    names = list(next(iter(a.inputs.values())))

    def weight(name: str) -> float:
        # The inputs of a category are called column=level.
        own = [r for feature, r in relevance.items() if f"{feature}=".startswith(f"{name}=")]
        return max(own, default=0.0)

    chosen = sorted(names, key=weight, reverse=True)[:_MOST_INPUTS]
    return [name for name in names if name in chosen]
