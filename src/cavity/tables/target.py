"""What to predict: which column, and whether it holds classes or quantities."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from cavity.arrays import Array
from cavity.tables.columns import MOST_LEVELS
from cavity.tables.encoding import numbers_of
from cavity.tables.errors import NoTargetError, TableError
from cavity.tables.read import Table

MOST_CLASS_NUMBERS = 20
"""A numeric target with more different values than this is a quantity, not a class label."""


class Labels(NamedTuple):
    """Which rows have a target, and their class codes or the target itself."""

    known: Array
    y: Array
    classes: tuple[Any, ...]
    task: str


def labels_of(table: Table, target: str, task: str | None) -> Labels:
    """Return the labels of a table; the task, if not given, is the data set's own or by a rule."""
    known = _has_target(table, target)
    column = table.frame[target].filter(known)
    task = task or (table.task if target == table.target else None) or _task(column)
    if task == "classification":
        return Labels(known, *_classes(column, table.source), task)
    y = numbers_of(table.frame[target], table.source)[known]
    if np.ptp(y) == 0.0:
        problem = f"every row has the value {y[0]:g}; there is nothing to predict."
        raise TableError(table.source, problem, column=target)
    return Labels(known, y, (), task)


def find_target(table: Table, target: str | None, others: Sequence[str]) -> str:
    """Return the target's name; raise an error if it or another column does not exist."""
    target = target if target is not None else table.target
    have = table.frame.columns
    if target is None:
        raise NoTargetError(
            table.source, f"say which column to predict: --target COLUMN, one of {_few(have)}."
        )
    for name in (target, *others):
        if name not in have:
            raise TableError(
                table.source, f"there is no such column; there are {_few(have)}.", column=name
            )
    if target in others:
        raise TableError(
            table.source, "is the target, which can be neither kept nor dropped.", column=target
        )
    return target


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown


def _has_target(table: Table, target: str) -> Array:
    """Return which rows have a known target."""
    column = table.frame[target]
    if column.dtype.is_temporal() or column.dtype.is_nested() or column.dtype == pl.Binary:
        raise TableError(
            table.source,
            f"holds {column.dtype} values; a target must be a class or a number.",
            column=target,
        )
    known = column.is_not_null()
    if column.dtype.is_float():
        known &= column.is_finite().fill_null(False)
    if not known.any():
        raise TableError(table.source, "every value of the target is missing.", column=target)
    return known.to_numpy()


def _task(column: pl.Series) -> str:
    if not column.dtype.is_numeric():
        return "classification"
    fractional = bool((column.cast(pl.Float64) % 1 != 0).any())
    is_quantity = fractional or column.n_unique() > MOST_CLASS_NUMBERS
    return "regression" if is_quantity else "classification"


def _classes(column: pl.Series, source: str) -> tuple[Array, tuple[Any, ...]]:
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    values = column.unique().sort()
    if len(values) > MOST_LEVELS:
        raise TableError(
            source,
            f"has {len(values)} different values, too many for classes (at most {MOST_LEVELS}); "
            "if it is a quantity use --task regression.",
            column=column.name,
        )
    if len(values) < 2:
        problem = f"every row has the class '{values[0]}'; at least two classes are needed."
        raise TableError(source, problem, column=column.name)
    codes = column.replace_strict(values, list(range(len(values))), return_dtype=pl.Int64)
    return codes.to_numpy().copy(), tuple(values.to_list())
