"""Rules that decide how each column is used, and what the target is."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from cavity.arrays import Array
from cavity.resampling.scores import LARGEST_TARGET, SMALLEST_SPREAD
from cavity.tables.encoding import Role, numbers_of, too_large
from cavity.tables.facts import MOST_VALUES, MOSTLY, ColumnFacts, all_different
from cavity.tables.notation import ANY_AMOUNT
from cavity.tables.output import NoTargetError, TableError, near_miss
from cavity.tables.table import StoredTable, Table
from cavity.tables.task import WITH_CLASSES, TaskDecision, decided, ordered_levels

MOST_LEVELS = 50
"""A text column with more different values than this is free-form text, not a category."""
CONSTANT = "it has the same value in every row"
"""Why a column is not used."""
_ROWS_PER_LEVEL = 2
_ID_NAME = re.compile(
    r"(?i:(.*[ _-])?(id|idx|index|uuid|guid|key|row|rowid)|column_1|unnamed.*)|.*[a-z]I[Dd]"
)


def role_of(facts: ColumnFacts, table: Table | StoredTable, keep: bool = False) -> Role:
    """Return the role of a column as an input.

    It is kept on request even if it looks like an identifier or free-form text. An error is raised
    if only the user can decide what to do with the column.
    """
    is_number, source = facts.dtype.is_numeric(), table.source
    is_date = facts.dtype == pl.Date or facts.dtype == pl.Datetime
    _refuse_other_types(facts, source, keep)
    if not facts.known:
        return Role("dropped", "it is empty")
    if facts.levels == 1 and (is_number or is_date or not facts.missing):
        return Role("dropped", CONSTANT)
    if is_date:
        return Role("date")
    if not keep and _is_identifier(facts, table):
        return Role("dropped", "it numbers or names the rows (an identifier)")
    if facts.is_text and not keep and _is_free_form(facts):
        _refuse_nearly_numeric(facts, source)
        count = f"more than {MOST_VALUES:,}" if facts.levels is None else facts.levels
        return Role("dropped", f"it is free-form text ({count} different values)")
    if not is_number and facts.levels is None:
        problem = f"has more than {MOST_VALUES:,} different values, too many for categories."
        raise TableError(source, problem, column=facts.name)
    if facts.beyond is not None:
        raise too_large(facts.beyond[1], source, facts.name, facts.beyond[0])
    return Role("number" if is_number else "category")


def _refuse_other_types(facts: ColumnFacts, source: str, keep: bool) -> None:
    name = facts.name
    if not facts.usable:
        remedy = f"leave it out with --drop {name}."
        problem = f"holds {facts.dtype} values, not numbers or categories: {remedy}"
        raise TableError(source, problem, column=name)
    if keep or not facts.known or facts.dtype in (pl.Date, pl.Datetime):
        return
    if facts.is_time:
        _refuse_times(facts, source)
    if facts.is_amount:
        raise unlike_amounts(str(facts.amount), source, name)


def _refuse_times(facts: ColumnFacts, source: str) -> None:
    remedy = f"or leave the column out with --drop {facts.name}."
    if (wrong := facts.not_a_date()) is not None:
        row, text = wrong
        problem = (
            f"'{text}' is not a date, though most of the column is: correct it, leave it empty, "
            f"{remedy}"
        )
        raise TableError(source, problem, column=facts.name, row=row)
    problem = (
        "holds dates or times that can be read in more than one way, or have no date: write them "
        f"like 2020-12-31 or 2020-12-31 23:59, {remedy}"
    )
    raise TableError(source, problem, column=facts.name)


def unlike_amounts(example: str, source: str, name: str) -> TableError:
    """Return the error that one cannot tell what amounts mean."""
    problem = (
        f"holds amounts with different signs, or that can be read in more than one way ('{example}'"
        f"): write them alike, as plain numbers, or leave the column out with --drop {name}."
    )
    return TableError(source, problem, column=name)


def _is_identifier(facts: ColumnFacts, table: Table | StoredTable) -> bool:
    """Whether all values differ, and either count up row by row or have an identifier's name."""
    if facts.dtype.is_float() or facts.missing:
        return False
    return facts.counts_up or bool(_ID_NAME.fullmatch(facts.name) and all_different(table, facts))


def _is_free_form(facts: ColumnFacts) -> bool:
    """Whether a text has too many levels, or hardly ever repeats one."""
    levels = facts.levels
    return levels is None or levels > MOST_LEVELS or facts.known < _ROWS_PER_LEVEL * levels


def _refuse_nearly_numeric(facts: ColumnFacts, source: str) -> None:
    """Report a stray word among numbers, which would turn the whole column into text."""
    if facts.strays > (1.0 - MOSTLY) * facts.known:
        return
    remedy = f"or leave the column out with --drop {facts.name}."
    if facts.stray is None:
        problem = f"holds numbers as text: store them as numbers, {remedy}"
        raise TableError(source, problem, column=facts.name)
    row, text = facts.stray
    problem = (
        f"'{text}' is not a number, though most of the column is: correct it, leave it empty, "
        f"{remedy}"
    )
    raise TableError(source, problem, column=facts.name, row=row)


class Labels(NamedTuple):
    """The rows that have a target, their numbers from 1, and class codes or the target itself."""

    rows: Array
    y: Array
    classes: tuple[Any, ...]
    target: str
    task: str
    note: str = ""
    """How the task was decided, if that could be wrong."""


def labels_of(
    table: Table | StoredTable,
    target: str | None,
    task: str | None,
    others: Sequence[str] = (),
    order: Sequence[str] = (),
) -> Labels:
    """Return the labels of a table, once the target and the other columns named are found.

    The target and the task, if not given, are the data set's own; else a rule gives the task.
    """
    target = _existing(table, target if target is not None else table.target, others)
    _refuse_as_target(table, target)
    column, classes = table.column(target), ()
    known = _known(column, table.source)
    rows = np.flatnonzero(known) + 1
    given = task or (table.task if target == table.target else None)
    task, note = TaskDecision(given) if given else decided(column.filter(known))
    if task in WITH_CLASSES:
        order = order or (table.order if target == table.target else ())
        y, classes = _classes(column.filter(known), table.source, task, order)
    else:
        y = numbers_of(column, table.source, largest=LARGEST_TARGET)[known]
        _refuse_as_numbers(y, rows, task, table.source, target)
    return Labels(rows, y, classes, target, task, note)


def _refuse_as_numbers(y: Array, rows: Array, task: str, source: str, target: str) -> None:
    """Raise an error if nothing varies, or hardly, or if a count is none."""
    if np.ptp(y) == 0.0:
        problem = f"every row has the value {y[0]:g}; there is nothing to predict."
        raise TableError(source, problem, column=target)
    if np.ptp(y) < SMALLEST_SPREAD:
        problem = (
            f"its values differ by at most {np.ptp(y):.3g}, too little to compute with: write it "
            f"in units in which they differ by {SMALLEST_SPREAD:g} or more."
        )
        raise TableError(source, problem, column=target)
    wrong = np.flatnonzero((y < 0.0) | (y % 1.0 != 0.0))
    if task == "counts" and len(wrong):
        problem = f"{y[wrong[0]]:g} is not a count 0, 1, 2, ...: correct it, or use another --task."
        raise TableError(source, problem, column=target, row=int(rows[wrong[0]]))


def _existing(table: Table | StoredTable, target: str | None, others: Sequence[str]) -> str:
    """Return the target's name; raise an error if it or another column does not exist."""
    have = list(table.schema)
    few = ", ".join(have[:8]) + (f" and {len(have) - 8} more" if len(have) > 8 else "")
    if target is None:
        problem = f"say which column to predict: --target COLUMN, one of {few}."
        raise NoTargetError(table.source, problem)
    for name in (target, *others):
        if name not in have:
            problem = f"there is no such column{near_miss(name, have) or '.'} There are {few}."
            raise TableError(table.source, problem, column=name)
    if target in others:
        problem = "is the target, which can be neither kept nor dropped, nor an offset."
        raise TableError(table.source, problem, column=target)
    return target


def _refuse_as_target(table: Table | StoredTable, target: str) -> None:
    dtype = table.schema[target]
    if dtype.is_temporal() or dtype.is_nested() or dtype == pl.Binary:
        held = "dates or times" if dtype.is_temporal() else f"{dtype} values"
        problem = f"holds {held}; a target must be a class or a number."
        raise TableError(table.source, problem, column=target)
    if dtype == pl.String:
        known = table.column(target).drop_nulls()
        number = known.cast(pl.Float64, strict=False).is_not_null()
        if len(known) and not number.all() and (number | known.str.contains(ANY_AMOUNT)).all():
            raise unlike_amounts(str(known.filter(~number)[0]), table.source, target)


def _known(column: pl.Series, source: str) -> Array:
    """Return which rows have a known target."""
    known = column.is_not_null()
    if column.dtype.is_float():
        known &= column.is_finite().fill_null(False)
    if not known.any():
        raise TableError(source, "every value of the target is missing.", column=column.name)
    return known.to_numpy()


def _classes(
    column: pl.Series, source: str, task: str, order: Sequence[str]
) -> tuple[Array, tuple[Any, ...]]:
    if isinstance(column.dtype, pl.Enum) and not order:
        order = [name for name in column.dtype.categories if (column == name).any()]
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
    if task == "ordinal":
        values = ordered_levels(values, order, source)
    codes = column.replace_strict(values, list(range(len(values))), return_dtype=pl.Int64)
    return codes.to_numpy().copy(), tuple(values.to_list())
