"""Rules that decide how each column is used, and what the target is."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from cavity.arrays import Array
from cavity.tables.encoding import Role, numbers_of
from cavity.tables.output import NoTargetError, TableError
from cavity.tables.read import Table

MOST_LEVELS = 50
"""A text column with more different values than this is free-form text, not a category."""
MOST_CLASS_NUMBERS = 20
"""A numeric target with more different values than this is a quantity, not a class label."""
_ROWS_PER_LEVEL = 2
_NUMERIC_SHARE = 0.9
_ID_NAME = re.compile(
    r"(?i:(.*[ _-])?(id|idx|index|uuid|guid|key|row|rowid)|column_1|unnamed.*)|.*[a-z]I[Dd]"
)
_TIME = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4}))([ T]\d{1,2}:\d{2}.*)?"
    r"|\d{1,2}:\d{2}(:\d{2}.*)?"
)


def role_of(column: pl.Series, source: str, keep: bool = False) -> Role:
    """Return the role of a column as an input.

    It is kept on request even if it looks like an identifier or free-form text. An error is raised
    if only the user can decide what to do with the column.
    """
    known, is_number = column.drop_nulls(), column.dtype.is_numeric()
    _refuse_other_types(column, known, source, keep)
    levels = known.n_unique()
    if not levels:
        return Role("dropped", "it is empty")
    is_text = not is_number and column.dtype != pl.Boolean
    if levels == 1 and (is_number or not column.null_count()):
        return Role("dropped", "it has the same value in every row")
    if not keep and _is_identifier(column, levels):
        return Role("dropped", "it numbers or names the rows (an identifier)")
    # Free-form text has too many levels, or hardly ever repeats one.
    if is_text and not keep and (levels > MOST_LEVELS or len(known) < _ROWS_PER_LEVEL * levels):
        _refuse_nearly_numeric(column, source)
        return Role("dropped", f"it is free-form text ({levels} different values)")
    return Role("number" if is_number else "category")


def _refuse_other_types(column: pl.Series, known: pl.Series, source: str, keep: bool) -> None:
    name, dtype = column.name, column.dtype
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
        remedy = f"leave it out with --drop {name}."
        problem = f"holds {dtype} values, not numbers or categories: {remedy}"
        raise TableError(source, problem, column=name)
    if _is_time(known) and not keep:
        problem = (
            "holds dates or times, which cannot be used as they are: turn them into numbers "
            f"(days since a date, month, hour), or leave them out with --drop {name}."
        )
        raise TableError(source, problem, column=name)


def _is_time(known: pl.Series) -> bool:
    """Whether these are dates or times, by type, or because every text looks like one."""
    if known.dtype != pl.String or not len(known):
        return known.dtype.is_temporal()
    # The first value alone rules out most columns quickly.
    return bool(_TIME.fullmatch(known[0])) and bool(
        known.str.contains(f"^(?:{_TIME.pattern})$").all()
    )


def _is_identifier(column: pl.Series, levels: int) -> bool:
    """Whether all values differ, and either count up row by row or have an identifier's name."""
    if column.dtype.is_float() or levels < len(column) or column.null_count():
        return False
    if _ID_NAME.fullmatch(column.name):
        return True
    return column.dtype.is_integer() and bool((column.diff().drop_nulls() == 1).all())


def _refuse_nearly_numeric(column: pl.Series, source: str) -> None:
    """Report a stray word among numbers, which would turn the whole column into text."""
    text = column.cast(pl.String)
    stray = text.is_not_null() & text.cast(pl.Float64, strict=False).is_null()
    known = len(column) - column.null_count()
    if stray.sum() > (1.0 - _NUMERIC_SHARE) * known:
        return
    row = stray.arg_true()[0]
    problem = (
        f"'{text[row]}' is not a number, though most of the column is: correct it, leave it empty, "
        f"or leave the column out with --drop {column.name}."
    )
    raise TableError(source, problem, column=column.name, row=row + 1)


class Labels(NamedTuple):
    """The rows that have a target, their numbers from 1, and class codes or the target itself."""

    frame: pl.DataFrame
    rows: Array
    y: Array
    classes: tuple[Any, ...]
    target: str
    task: str


def labels_of(
    table: Table, target: str | None, task: str | None, others: Sequence[str] = ()
) -> Labels:
    """Return the labels of a table, once the target and the other columns named are found.

    The target and the task, if not given, are the data set's own; else a rule gives the task.
    """
    target = _existing(table, target if target is not None else table.target, others)
    known = _has_target(table, target)
    frame, classes = table.frame.filter(known), ()
    task = task or (table.task if target == table.target else None) or _task(frame[target])
    if task == "classification":
        y, classes = _classes(frame[target], table.source)
    else:
        y = numbers_of(table.frame[target], table.source)[known]
        if np.ptp(y) == 0.0:
            problem = f"every row has the value {y[0]:g}; there is nothing to predict."
            raise TableError(table.source, problem, column=target)
    return Labels(frame, np.flatnonzero(known) + 1, y, classes, target, task)


def _existing(table: Table, target: str | None, others: Sequence[str]) -> str:
    """Return the target's name; raise an error if it or another column does not exist."""
    have = table.frame.columns
    few = ", ".join(have[:8]) + (f" and {len(have) - 8} more" if len(have) > 8 else "")
    if target is None:
        problem = f"say which column to predict: --target COLUMN, one of {few}."
        raise NoTargetError(table.source, problem)
    for name in (target, *others):
        if name not in have:
            problem = f"there is no such column; there are {few}."
            raise TableError(table.source, problem, column=name)
    if target in others:
        problem = "is the target, which can be neither kept nor dropped."
        raise TableError(table.source, problem, column=target)
    return target


def _has_target(table: Table, target: str) -> Array:
    """Return which rows have a known target."""
    column = table.frame[target]
    if column.dtype.is_temporal() or column.dtype.is_nested() or column.dtype == pl.Binary:
        problem = f"holds {column.dtype} values; a target must be a class or a number."
        raise TableError(table.source, problem, column=target)
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
        problem = (
            f"has {len(values)} different values, too many for classes (at most {MOST_LEVELS}); "
            "if it is a quantity use --task regression."
        )
        raise TableError(source, problem, column=column.name)
    if len(values) < 2:
        problem = f"every row has the class '{values[0]}'; at least two classes are needed."
        raise TableError(source, problem, column=column.name)
    codes = column.replace_strict(values, list(range(len(values))), return_dtype=pl.Int64)
    return codes.to_numpy().copy(), tuple(values.to_list())
