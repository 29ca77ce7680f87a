"""What the rules about a column need to know of it, gathered from batches of rows."""

import re
from typing import Any

import polars as pl

from cavity.tables.encoding import LARGEST
from cavity.tables.notation import ANY_AMOUNT, DATES
from cavity.tables.table import StoredTable, Table

_TIME = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4}))([ T]\d{1,2}:\d{2}.*)?"
    r"|\d{1,2}:\d{2}(:\d{2}.*)?"
)
MOST_VALUES = 10_000
"""Different values of a column of a large table that are kept: a category has fewer."""
MOSTLY = 0.9
"""Of a column's known values, a share from which on they are mostly of a kind."""
_COUNTED = 2**24
"""Different values that are counted at a time."""


_Place = tuple[int, str] | None
_NOWHERE: _Place = None


class ColumnFacts:
    """What is known of a column.

    Attributes
    ----------
    name, dtype : str and polars data type
    known, missing : int
        Number of values, and of those that are missing.
    values : polars.Series
        The different values, in no order; more than ``most`` need not be all.
    counts_up : bool
        Whether each is the one before it plus 1.
    stray : tuple of (int, str) or None
        Row and value of the first text that is neither a number nor an amount.
    strays : int
        Number of texts that are neither numbers nor amounts.
    amount : str or None
        The first text that is an amount.
    untimely : tuple of (int, str) or None
        Row and value of the first text that does not look like a date or time.
    untimes : int
        Number of such texts.
    beyond : tuple of (int, float) or None
        Row and value of the first number that is too large.
    """

    def __init__(self, name: str, dtype: Any, most: float = float("inf")) -> None:
        self.name, self.dtype = name, dtype
        # Of numbers, it only matters whether there is more than one.
        self._most = min(most, 2) if dtype.is_float() or dtype.is_integer() else most
        self.known = self.missing = self.strays = self.untimes = 0
        self.values = pl.Series(name, [], dtype=dtype)
        self.counts_up = dtype.is_integer()
        self.stray: tuple[int, str] | None = None
        self.untimely: tuple[int, str] | None = None
        self.amount: str | None = None
        self._unread = dict.fromkeys(DATES, (0, _NOWHERE))
        self.beyond: tuple[int, float] | None = None
        self._last: int | None = None

    @property
    def is_time(self) -> bool:
        """Whether these are dates or times, by type, or because most texts look like one."""
        if self.dtype != pl.String:
            return bool(self.dtype.is_temporal())
        return self.untimes <= (1.0 - MOSTLY) * self.known

    def not_a_date(self) -> tuple[int, str] | None:
        """Return row and value of the first text that is no date, if most of them are."""
        count, place = min(self._unread.values(), key=lambda found: found[0])
        mostly = 0 < count <= (1.0 - MOSTLY) * self.known
        return place if mostly else self.untimely

    @property
    def is_amount(self) -> bool:
        """Whether these are texts of amounts, and perhaps numbers."""
        return self.amount is not None and not self.strays

    @property
    def is_text(self) -> bool:
        """Whether these are neither numbers nor true and false."""
        return not self.dtype.is_numeric() and self.dtype != pl.Boolean

    @property
    def levels(self) -> int | None:
        """Number of different values, if all of them were kept."""
        return len(self.values) if len(self.values) <= self._most else None

    @property
    def usable(self) -> bool:
        """Whether values of this type can be inputs at all."""
        return not (self.dtype.is_nested() or self.dtype in (pl.Binary, pl.Object))

    def add(self, column: pl.Series, first: int) -> None:
        """Take in another batch, whose first row has this number, counted from zero."""
        known = column.drop_nulls()
        self.known, self.missing = self.known + len(known), self.missing + column.null_count()
        if not len(known) or not self.usable:
            return
        self.counts_up = self.counts_up and not self.missing and self._goes_on(known)
        if self.dtype.is_float() and self.beyond is None:
            self._find_beyond(column, first)
        if self.is_text and not known.dtype.is_temporal():
            known = known.cast(pl.String)
            self._look_at(column.cast(pl.String), first)
        if len(self.values) <= self._most:
            values = known.unique()
            first_ones = self.values.is_empty()
            self.values = values if first_ones else pl.concat([self.values, values]).unique()

    def _goes_on(self, known: pl.Series) -> bool:
        last, self._last = self._last, known[-1]
        joins = last is None or known[0] == last + 1
        return joins and bool((known.diff().drop_nulls() == 1).all())

    def _find_beyond(self, column: pl.Series, first: int) -> None:
        beyond = (column.is_finite() & (column.abs() > LARGEST)).arg_true()
        if len(beyond):
            self.beyond = first + int(beyond[0]) + 1, float(column[beyond[0]])

    def _look_at(self, text: pl.Series, first: int) -> None:
        number = text.cast(pl.Float64, strict=False).is_not_null()
        amount = text.str.contains(ANY_AMOUNT) & ~number
        if self.amount is None and amount.any():
            self.amount = str(text.filter(amount)[0])
        stray = text.is_not_null() & ~number & ~amount
        self.strays, self.stray = _first(text, stray, first, self.strays, self.stray)
        other = ~text.str.contains(f"^(?:{_TIME.pattern})$")
        found = _first(text, other, first, self.untimes, self.untimely)
        self.untimes, self.untimely = found
        for way in DATES if self.is_time else ():
            unread = way.read(text).is_null() & text.is_not_null()
            self._unread[way] = _first(text, unread, first, *self._unread[way])


def _first(
    text: pl.Series, which: pl.Series, begin: int, count: int, place: tuple[int, str] | None
) -> tuple[int, tuple[int, str] | None]:
    """Return how many of these there are so far, and row and value of the first."""
    rows = which.fill_null(False).arg_true()
    if len(rows) and place is None:
        place = begin + int(rows[0]) + 1, str(text[rows[0]])
    return count + len(rows), place


def facts_of(table: Table | StoredTable, names: list[str]) -> dict[str, ColumnFacts]:
    """Return the facts about these columns, from one pass over the table."""
    most = float("inf") if isinstance(table, Table) else MOST_VALUES
    facts = {name: ColumnFacts(name, table.schema[name], most) for name in names}
    readable = [name for name in names if facts[name].usable]
    first = 0
    for batch in table.batches(readable, "looking at the columns") if readable else ():
        for column in batch:
            facts[column.name].add(column, first)
        first += batch.height
    return facts


def all_different(table: Table | StoredTable, facts: ColumnFacts) -> bool:
    """Return whether no known value of a column occurs twice."""
    if facts.counts_up or facts.levels is not None:
        return facts.counts_up or facts.levels == facts.known
    parts = -(-facts.known // _COUNTED)
    return all(_different(table, facts.name, k, parts) for k in range(parts))


def _different(table: Table | StoredTable, name: str, k: int, parts: int) -> bool:
    """Return whether all values differ among those in one of several parts by their hash."""
    chosen = (
        batch[name].drop_nulls().filter(batch[name].drop_nulls().hash() % parts == k)
        for batch in table.batches([name], f"counting the values of {name}")
    )
    found = pl.concat(chosen)
    return found.n_unique() == len(found)
