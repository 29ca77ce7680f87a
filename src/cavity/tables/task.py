"""What kind of target a column is: the rules that decide it, and the sentence that says so."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from cavity.arrays import Array
from cavity.tables.output import TableError

TASKS = ("classification", "regression", "counts", "ordinal", "robust")
"""Classes, quantities, counts, classes in an order, and quantities with outliers."""
WITH_CLASSES = ("classification", "ordinal")
_MOST_CODES, _MOST_RANKS = 4, 10
"""Up to the first of these, different whole numbers are codes of classes; up to the second, if
none is left out, they are ranks."""
_LARGEST_COUNT = 1000
_FEW_NUMBERS = 20
"""More different whole numbers are a quantity to anyone, unless they look like counts."""
_SKEWED = 0.5
"""Skewness from which on there is a tail to the right: a Poisson variable of mean four has it."""
_TAKEN_AS = {
    "classification": "codes of classes",
    "counts": "counts",
    "ordinal": "classes in an order",
    "regression": "a quantity",
}


class TaskDecision(NamedTuple):
    """A task, and the sentence that says how it was decided if that could be wrong."""

    task: str
    note: str = ""


def decided(column: pl.Series) -> TaskDecision:
    """Return the task that the known values of a target suggest.

    Text, booleans and two whole numbers are classes, and numbers with fractions are a quantity. Of
    other whole numbers the rules can only guess, and say so.

    >>> decided(pl.Series("visits", [0, 0, 1, 0, 2, 9, 0, 1, 3, 0])).task
    'counts'
    >>> decided(pl.Series("answer", [1, 2, 3, 4, 5, 4])).task
    'ordinal'
    """
    if not column.dtype.is_numeric():
        return TaskDecision("classification")
    values = column.cast(pl.Float64).to_numpy()
    if np.any(values % 1.0 != 0.0):
        return TaskDecision("regression")
    if column.n_unique() <= 2:
        return TaskDecision("classification")
    task, seen = _whole(values)
    if not seen:
        return TaskDecision(task)
    others = [f"--task {name}" for name in _TAKEN_AS if name != task]
    note = (
        f"The target '{column.name}' holds {seen}: it is taken as {_TAKEN_AS[task]} "
        f"(--task {task}). If it is something else, say {', '.join(others[:-1])} or {others[-1]}."
    )
    return TaskDecision(task, note)


def _whole(values: Array) -> tuple[str, str]:
    """Return the task of three or more different whole numbers, and what was seen.

    With many different numbers that do not look like counts there is nothing to say.
    """
    low, high, different = values.min(), values.max(), len(np.unique(values))
    if different <= _MOST_CODES:
        return "classification", f"only {different} different whole numbers"
    if low == 0.0 and high <= _LARGEST_COUNT and _skewness(values) >= _SKEWED:
        return "counts", f"{different} different whole numbers from 0 on with a tail to the right"
    if different <= _MOST_RANKS and high - low == different - 1:
        return "ordinal", f"all whole numbers from {low:g} to {high:g}"
    return "regression", f"{different} different whole numbers" * (different <= _FEW_NUMBERS)


def _skewness(values: Array) -> float:
    return float(np.mean(((values - values.mean()) / values.std()) ** 3))


def ordered_levels(values: pl.Series, order: Sequence[str], source: str) -> pl.Series:
    """Return the different values of a target in their order; numbers have one of their own."""
    if not order:
        if not values.dtype.is_numeric():
            names = ",".join(_written(value) for value in values)
            problem = f'has text, whose order is not known: say --order "{names}", lowest first.'
            raise TableError(source, problem, column=values.name)
        return values
    named = {_written(value): value for value in values}
    if len(set(order)) < len(order) or set(order) != set(named):
        problem = (
            f"the order {','.join(order)} must name each of its values once, and no others: they "
            f"are {', '.join(named)}."
        )
        raise TableError(source, problem, column=values.name)
    return pl.Series(values.name, [named[name] for name in order], dtype=values.dtype)


def _written(value: Any) -> str:
    """Return a value as people write it: 2 and not 2.0."""
    return f"{value:g}" if isinstance(value, float) else str(value)
