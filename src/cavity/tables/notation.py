"""Amounts with a sign and dates, written as text: recognised, read, and remembered."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import polars as pl

from cavity.tables.large import to_parquet
from cavity.tables.output import TableError
from cavity.tables.table import StoredTable, Table

_ENGLISH = ("$", "£", "¥", "₹", "USD", "GBP", "JPY", "INR")
"""In amounts with one of these, a point or comma that may mean either is read as in English."""
_MARKS = ("%", *_ENGLISH, "€", "EUR", "CHF", "kr")
_GROUPS = " '’\u00a0\u202f"
_STYLES = {
    "whole": r"\d+",
    "point": rf"(?:\d{{1,3}}(?:[,{_GROUPS}]\d{{3}})+|\d+)(?:\.\d+)?",
    "comma": rf"(?:\d{{1,3}}(?:[.{_GROUPS}]\d{{3}})+|\d+)(?:,\d+)?",
}
_SHARES = {"whole": r"\d+", "point": r"\d+(?:\.\d+)?", "comma": r"\d+(?:,\d+)?"}
_DATES = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y"),
    *("%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y"),
)
_WRITTEN = "as written\x1f"
"""What the names of columns begin with that hold what was written in others."""
_CLOCK = r"[T ](\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?Z?$"


def _amount(mark: str, number: str) -> str:
    mark = re.escape(mark)
    before = "" if mark == "%" else rf"{mark}[ \u00a0]?[-+]?{number}|"
    return rf"[-+]?(?:{before}{number}[ \u00a0\u202f]?{mark})"


class Notation(NamedTuple):
    """How the values of a column are written.

    Amounts have a mark, such as % or $, and a style: with a decimal point, with a decimal comma, or
    whole, which says neither. Dates have no mark; their style is a format such as %d/%m/%Y.
    """

    mark: str
    style: str

    @property
    def is_date(self) -> bool:
        """Whether these are dates."""
        return not self.mark

    @property
    def pattern(self) -> str:
        """What a value looks like."""
        if self.mark:
            number = (_SHARES if self.mark == "%" else _STYLES)[self.style]
            return f"^{_amount(self.mark, number)}$"
        date = re.escape(self.style).replace("%Y", r"\d{4}")
        return "^" + re.sub("%[dm]", r"\\d{1,2}", date) + rf"(?:{_CLOCK[:-1]})?$"

    def read(self, text: pl.Series) -> pl.Series:
        """Return numbers, or dates with their time; null where it is written in another way."""
        text = text.set(~text.str.contains(self.pattern).fill_null(False), None)
        return self._dates(text) if self.is_date else self._numbers(text)

    def _numbers(self, text: pl.Series) -> pl.Series:
        text = text.str.replace(self.mark, "", literal=True)
        text = text.str.replace_all(f"[{_GROUPS}{'.' if self.style == 'comma' else ','}]", "")
        if self.style == "comma":
            text = text.str.replace(",", ".", literal=True)
        return text.cast(pl.Int64 if self.style == "whole" else pl.Float64, strict=False)

    def _dates(self, text: pl.Series) -> pl.Series:
        day = text.str.extract(r"^([\d./-]+)").str.to_date(self.style, strict=False)
        parts = text.to_frame("t").select(
            pl.col("t").str.extract(_CLOCK, k).cast(pl.Float64).fill_null(0.0).alias(str(k))
            for k in (1, 2, 3)
        )
        seconds = parts["1"] * 3600.0 + parts["2"] * 60.0 + parts["3"]
        clock = (seconds * 1e6).round().cast(pl.Int64).cast(pl.Duration("us"))
        # A day has no 25th hour.
        day = day.set((seconds >= 86_400.0) | (parts["2"] >= 60.0), None)
        return (day.cast(pl.Datetime("us")) + clock).alias(text.name)

    def words(self) -> str:
        """Return how the values are written, in words."""
        if self.is_date:
            names = {"%Y": "year", "%m": "month", "%d": "day"}
            return re.sub("%[Ymd]", lambda found: names[found[0]], self.style)
        return "percentages" if self.mark == "%" else f"amounts in {self.mark}"

    def example(self) -> str:
        """Return what was read from a value, in brackets."""
        number = {"whole": "12", "point": "1,234.5", "comma": "1.234,5"}[self.style]
        if self.mark == "%":
            return " (12 % as 12)"
        read = number.replace("1,234", "1234").replace("1.234,", "1234.")
        return "" if self.style == "whole" else f" ({number} as {read})"

    @classmethod
    def from_json(cls, stored: Any) -> "Notation | None":
        """Return a notation that was stored as a list."""
        if stored is None:
            return None
        found = cls(*map(str, stored))
        if found not in ALL:
            raise ValueError("its notation is unknown")
        return found

    def alike(self) -> "tuple[Notation, ...]":
        """Return the notations that values of the same column may have."""
        if self.is_date:
            return (self,)
        styles = _STYLES if self.style == "whole" else ("whole", self.style)
        return tuple(Notation(self.mark, style) for style in styles)


DATES = tuple(Notation("", style) for style in _DATES)
ALL = (*(Notation(mark, style) for mark in _MARKS for style in _STYLES), *DATES)
"""Every notation that is recognised."""

ANY_AMOUNT = f"^(?:{'|'.join(_amount(m, _STYLES[s]) for m in _MARKS for s in ('point', 'comma'))})$"
"""What an amount with any mark looks like."""


class _Search:
    """Which notation all values of a column have, found batch by batch."""

    def __init__(self, ways: Sequence[Notation]) -> None:
        self.ways, self._same, self._seen = list(ways), True, False

    def add(self, text: pl.Series) -> None:
        """Take in another batch."""
        known = text.drop_nulls()
        if not len(known):
            return
        # The first value alone rules out most of them quickly.
        likely = [way for way in self.ways if _compiled(way).match(known[0])]
        read = [(way, way.read(known)) for way in likely]
        fitting = [(way, found) for way, found in read if not found.null_count()]
        self.ways, self._seen = [way for way, _ in fitting], True
        self._same = self._same and all(found.equals(fitting[0][1]) for _, found in fitting)

    def found(self) -> Notation | None:
        """Return the notation; None if there is none, or one cannot tell which."""
        if not self._seen or not self.ways:
            return None
        first = self.ways[0]
        if len(self.ways) == 1 or self._same:
            return first
        return Notation(first.mark, "point") if first.mark in _ENGLISH else None


@cache
def _compiled(way: Notation) -> re.Pattern[str]:
    return re.compile(way.pattern)


Ways = Mapping[str, Sequence[Notation]]
"""The notations that columns may have."""


def noted(table: Table | StoredTable, ways: Ways | None = None) -> Table | StoredTable:
    """Return a table whose texts that are amounts or dates are numbers and times.

    By default every column may have any notation. If they are given, the table keeps what was
    written as well: `as_written` returns it.
    """
    searches = {
        name: _Search(ALL if ways is None else ways.get(name, ()))
        for name, dtype in table.schema.items()
        if dtype == pl.String
    }
    left = {name: search for name, search in searches.items() if search.ways}
    for batch in table.batches(list(left), "looking for amounts and dates") if left else ():
        for name, search in left.items():
            search.add(batch[name])
        if not any(search.ways for search in left.values()):
            break
    found = {name: way for name, search in left.items() if (way := search.found()) is not None}
    if not found:
        return table
    for name in table.schema:
        if name.startswith(_WRITTEN):
            raise TableError(table.source, "rename this column.", column=name)
    read = partial(_read, found, kept=ways is not None)
    if isinstance(table, Table):
        return replace(table, frame=read(table.frame), notations=found)
    schema = dict(read(pl.DataFrame(schema=dict(table.schema))).schema)
    table = replace(table, schema=schema, scan=partial(_scanned, table.scan, read), notations=found)
    many = table.for_many_passes and partial(to_parquet, table)
    return replace(table, for_many_passes=many)


def _read(found: Mapping[str, Notation], frame: pl.DataFrame, kept: bool) -> pl.DataFrame:
    here = {name: way for name, way in found.items() if name in frame.columns}
    written = [frame[name].alias(_WRITTEN + name) for name in here if kept]
    return frame.with_columns(way.read(frame[name]) for name, way in here.items()).hstack(written)


def _scanned(
    scan: Callable[[list[str], int], Iterator[pl.DataFrame]],
    read: Callable[[pl.DataFrame], pl.DataFrame],
    names: list[str],
    rows: int,
) -> Iterator[pl.DataFrame]:
    needed = list(dict.fromkeys(name.removeprefix(_WRITTEN) for name in names))
    return (read(batch).select(names) for batch in scan(needed, rows))


def own_columns(table: Table | StoredTable) -> list[str]:
    """Return the names of the columns that the table has in its file."""
    return [name for name in table.schema if not name.startswith(_WRITTEN)]


def with_written(table: Table | StoredTable, names: Sequence[str]) -> list[str]:
    """Return these columns, and those that hold how they were written."""
    return [*names, *(_WRITTEN + name for name in names if _WRITTEN + name in table.schema)]


def as_written(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return these columns, with amounts and dates as they were written."""
    here = {name: _WRITTEN + name for name in names if _WRITTEN + name in frame.columns}
    return frame.select(pl.col(here.get(name, name)).alias(name) for name in names)


def refuse_other_notation(table: Table | StoredTable, name: str, notation: Notation | None) -> None:
    """Raise an error if a column is not written as in the rows that a model was fitted to."""
    if notation is None:
        return
    if table.schema[name].is_numeric() and name not in table.notations:
        problem = f"holds plain numbers, where the model was fitted to {notation.words()}."
        raise TableError(table.source, problem, column=name)
    first = 0
    for frame in table.batches([name], "") if table.schema[name] == pl.String else ():
        row = _misfit(frame[name], notation.alike())
        if row is not None:
            problem = (
                f"'{frame[name][row]}' is not what the model was fitted to: {notation.words()}."
            )
            raise TableError(table.source, problem, column=name, row=first + row + 1)
        first += frame.height


def _misfit(text: pl.Series, ways: Sequence[Notation]) -> int | None:
    """Return the first row that fits none of these notations, or not the one that fits longest."""
    wrong = [(way.read(text).is_null() & text.is_not_null()).arg_true() for way in ways]
    return None if any(len(w) == 0 for w in wrong) else max(int(w[0]) for w in wrong)
