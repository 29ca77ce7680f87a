"""A table in memory, or one on disk of which only batches of rows are ever in memory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import polars as pl

from cavity.arrays import Array
from cavity.tables.output import TableError

IN_MEMORY = 2**27
"""Bytes of text, or of a table's values as numbers, up to which it is held in memory: about a
million rows of sixteen columns."""
_CELLS, _FEWEST, _MOST = 2**22, 1000, 2**17
"""Values in a batch of rows, and the bounds of its number of rows."""


class Watcher(Protocol):
    """Who is told what happens, and how many steps of it are done."""

    def stage(self, text: str, total: int | None = None) -> None:
        """Take note that something begins, in so many steps."""

    def advance(self, steps: int) -> None:
        """Take note that some more steps are done."""

    def passing(self, done: int, total: int | None) -> None:
        """Take note that so many rows are done, in a pass over a table of so many."""


class Silence:
    """A `Watcher` that shows nothing."""

    def stage(self, text: str, total: int | None = None) -> None:
        """Show nothing."""

    def advance(self, steps: int) -> None:
        """Show nothing."""

    def passing(self, done: int, total: int | None) -> None:
        """Show nothing."""


SILENCE = Silence()


@dataclass(frozen=True)
class Table:
    """A data frame and the name of its file or data set.

    A shipped data set has a default target and task, columns that it does not use, and possibly
    test rows, which are True in ``held_out``, an order of its classes, and a column of exposures.
    """

    frame: pl.DataFrame
    source: str
    target: str | None = None
    task: str | None = None
    drop: tuple[str, ...] = ()
    held_out: Array | None = None
    notations: Mapping[str, Any] = field(default_factory=dict)
    """How amounts and dates were written, by column."""
    order: tuple[str, ...] = ()
    exposure: str | None = None

    @property
    def height(self) -> int:
        """Number of rows."""
        return self.frame.height

    @property
    def schema(self) -> Mapping[str, Any]:
        """The type of each column."""
        return self.frame.schema

    @property
    def remarks(self) -> list[str]:
        """What there is to say about how the table was read: nothing."""
        return []

    def batches(
        self, names: Sequence[str] | None = None, doing: str = ""
    ) -> Iterator[pl.DataFrame]:
        """Yield these columns of all rows at once."""
        yield self.frame if names is None else self.frame.select(names)

    def column(self, name: str) -> pl.Series:
        """Return a whole column."""
        return self.frame[name]

    def close(self) -> None:
        """There is nothing to tidy up."""


@dataclass(frozen=True)
class StoredTable:
    """A table on disk.

    Attributes
    ----------
    source : str
        The name of its file.
    schema : dict
        The type of each column.
    height : int
        Number of rows.
    scan : callable
        From names of columns and a number of rows to an iterator over batches of about so many.
    remarks : list of str
        How it was read, in sentences.
    progress : Watcher
    for_many_passes : callable
        Returns the same table where it is read faster.
    kept : object
        What must be kept as long as the table, such as a temporary folder with a ``close``.
    notations : dict
        How amounts and dates were written, by column.
    """

    source: str
    schema: Mapping[str, Any]
    height: int
    scan: Callable[[list[str], int], Iterator[pl.DataFrame]]
    remarks: Sequence[str] = ()
    progress: Watcher = SILENCE
    for_many_passes: "Callable[[], StoredTable] | None" = None
    kept: Any = None
    target: str | None = None
    task: str | None = None
    drop: tuple[str, ...] = ()
    held_out: Array | None = None
    notations: Mapping[str, Any] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    exposure: str | None = None

    def batches(
        self, names: Sequence[str] | None = None, doing: str = "reading rows"
    ) -> Iterator[pl.DataFrame]:
        """Yield these columns in batches of rows, in order; say what is done with them."""
        chosen = list(self.schema) if names is None else list(names)
        if doing:
            self.progress.stage(doing, self.height)
        rows = min(max(_CELLS // max(len(chosen), 1), _FEWEST), _MOST)
        seen = 0
        try:
            for batch in self.scan(chosen, rows):
                seen += batch.height
                yield batch
                self.progress.advance(batch.height)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise TableError(self.source, f"cannot be read as a table: {reason}") from error
        if seen != self.height:
            problem = (
                f"had {self.height:,} rows and now has {seen:,}: it changed while it was read."
            )
            raise TableError(self.source, problem)

    def column(self, name: str) -> pl.Series:
        """Return a whole column."""
        parts = [batch[name] for batch in self.batches([name], f"reading column {name}")]
        return pl.concat(parts)

    def close(self) -> None:
        """Remove what was written to read the table faster."""
        if self.kept is not None:
            self.kept.close()


def fits_in_memory(size: float) -> bool:
    """Return whether so many bytes are to be held in memory."""
    return size <= IN_MEMORY


def faster(table: Table | StoredTable) -> Table | StoredTable:
    """Return the table where many passes over it are fast."""
    again = getattr(table, "for_many_passes", None)
    return table if again is None else again()
