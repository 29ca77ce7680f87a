"""Rules that decide how each column of a table is used."""

import re
from typing import NamedTuple

import polars as pl

from cavity.tables.errors import TableError

MOST_LEVELS = 50
"""A text column with more different values than this is free-form text, not a category."""
_ROWS_PER_LEVEL = 2
_NUMERIC_SHARE = 0.9
_ID_NAME = re.compile(
    r"(?i:(.*[ _-])?(id|idx|index|uuid|guid|key|row|rowid)|column_1|unnamed.*)|.*[a-z]I[Dd]"
)
_TIME = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4}))([ T]\d{1,2}:\d{2}.*)?"
    r"|\d{1,2}:\d{2}(:\d{2}.*)?"
)


class Role(NamedTuple):
    """How a column is used: as a "number", as a "category", or not at all: "dropped", and why."""

    kind: str
    reason: str = ""


def role_of(column: pl.Series, source: str, keep: bool = False) -> Role:
    """Return the role of a column as an input.

    It is kept on request even if it looks like an identifier or free-form text. There is an error
    if only the user can say what to do with the column.
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
    dtype = column.dtype
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
        raise TableError(
            source,
            f"holds {dtype} values, not numbers or categories: leave it out with --drop "
            f"{column.name}.",
            column=column.name,
        )
    if _is_time(known) and not keep:
        raise TableError(
            source,
            "holds dates or times, which cannot be used as they are: turn them into numbers "
            f"(days since a date, month, hour), or leave them out with --drop {column.name}.",
            column=column.name,
        )


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
    raise TableError(
        source,
        f"'{text[row]}' is not a number, though most of the column is: correct it, leave it empty, "
        f"or leave the column out with --drop {column.name}.",
        column=column.name,
        row=row + 1,
    )
