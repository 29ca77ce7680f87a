"""Files larger than memory: checked and typed in passes, then read in batches of rows."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import polars as pl

from cavity.tables.output import TableError, write_parquet
from cavity.tables.plain import Scratch, no_room
from cavity.tables.table import StoredTable, Watcher
from cavity.tables.text import (
    TYPES,
    UTF8_MARK,
    all_are,
    as_type,
    cleaned,
    has_decimal_commas,
    header,
    refuse_binary,
    refuse_marks,
    refuse_other_letters,
    refuse_ragged,
    refuse_ragged_quoted,
    separator_of,
)

_CHUNK = 2**24
_LONGEST_LINE = 2**28
_ROWS = 2**16


def scan_parquet(path: Path, source: str, progress: Watcher, height: int) -> StoredTable:
    """Return the table in a Parquet file of so many rows."""
    lazy = pl.scan_parquet(path)
    remark = f"The table is large ({height:,} rows): its rows are read in batches."
    return StoredTable(
        source, dict(lazy.collect_schema()), height, partial(_scanned, lazy), [remark], progress
    )


def _scanned(lazy: pl.LazyFrame, names: list[str], rows: int) -> Iterator[pl.DataFrame]:
    batches = lazy.select(names).collect_batches(chunk_size=rows, maintain_order=True)
    return (batch for batch in batches if batch.height)


class TextFile(NamedTuple):
    """A checked text table: how its lines become rows of text."""

    path: Path
    source: str
    separator: str
    names: list[str]
    decimal_comma: bool
    lines: int = 0
    blank: int = 0
    """Number of blank lines at the end."""
    used: Collection[str] | None = None
    """Columns of which spaces are removed and the type is found; by default all."""

    def uses(self, name: str) -> bool:
        """Whether a column's values have a meaning."""
        return self.used is None or name in self.used

    def scan(self, height: int | None, names: list[str], rows: int) -> Iterator[pl.DataFrame]:
        """Yield columns of cleaned text in batches of so many rows."""
        lazy = pl.scan_csv(
            self.path, separator=self.separator, infer_schema=False, new_columns=self.names
        )
        lazy = lazy if height is None else lazy.head(height)
        for batch in _scanned(lazy, names, rows):
            yield batch.with_columns(
                cleaned(column, self.decimal_comma) for column in batch if self.uses(column.name)
            )


def scan_text(
    path: Path,
    source: str,
    separator: str | None,
    progress: Watcher,
    used: Collection[str] | None = None,
    kept: Any = None,
) -> StoredTable:
    """Check a large text table and find the types of its columns; return it.

    A column that is not used stays as it is written. What is ``kept`` must not go away before the
    table.
    """
    text = _checked(path, source, separator, progress)._replace(used=used)
    height, schema = _types(text, progress)
    remark = f"The table is large ({height:,} rows): its rows are read in batches."
    scan = partial(_typed_scan, text, height, schema)
    table = StoredTable(source, schema, height, scan, [remark], progress, kept=kept)
    return replace(table, for_many_passes=partial(to_parquet, table))


def _checked(path: Path, source: str, separator: str | None, progress: Watcher) -> TextFile:
    """Look through the bytes of a text table once; refuse what `read_text` refuses."""
    progress.stage(f"checking {source}", path.stat().st_size)
    with path.open("rb") as file:
        start = file.read(_CHUNK)
        refuse_marks(start, source)
        mark = len(UTF8_MARK) * start.startswith(UTF8_MARK)
        refuse_binary(start, source)
        if not start.strip():
            raise TableError(source, "is empty.")
        refuse_other_letters(start[: start.rfind(b"\n") + 1], source)
        separator = separator or separator_of(start[mark:])
        names = header(start[mark:], source, separator)
        comma = has_decimal_commas(start[mark:], separator)
        text = TextFile(path, source, separator, names, comma)
        file.seek(mark)
        lines = _Lines(text, mark)
        for chunk in _chunks(file, source):
            lines.check(chunk)
            progress.advance(len(chunk))
        if lines.quoted is not None:
            file.seek(lines.quoted[0])
            refuse_ragged_quoted(file, source, separator, len(names), lines.quoted[1])
    return text._replace(blank=lines.blank, lines=lines.count)


def _chunks(file: BinaryIO, source: str) -> Iterator[bytes]:
    """Yield whole lines, many at a time."""
    rest = b""
    while data := file.read(_CHUNK):
        end = data.rfind(b"\n") + 1
        if end:
            yield rest + data[:end]
            rest = b""
        rest += data[end:]
        if len(rest) > _LONGEST_LINE:
            problem = f"has a line of more than {_LONGEST_LINE:,} bytes: it is not a text table."
            raise TableError(source, problem)
    if rest:
        yield rest + b"\n"


class _Lines:
    """Checks a text chunk by chunk, and counts its lines."""

    def __init__(self, text: TextFile, offset: int) -> None:
        self._text, self._offset = text, offset
        self.count = self.blank = 0
        self.quoted: tuple[int, int] | None = None
        """Where the first chunk with quotes begins, and how many lines come before."""

    def check(self, data: bytes) -> None:
        """Refuse what cannot be a part of this table."""
        text = self._text
        refuse_binary(data, text.source)
        refuse_other_letters(data, text.source, self.count, self._offset)
        if self.quoted is None and b'"' in data:
            self.quoted = self._offset, self.count
        if self.quoted is None:
            refuse_ragged(data, text.source, text.separator, len(text.names), self.count)
        rest = data.rstrip(b"\r\n")
        ends = data.count(b"\n", len(rest))
        self.blank = ends - 1 if rest else self.blank + ends
        self.count += data.count(b"\n")
        self._offset += len(data)


def _types(text: TextFile, progress: Watcher) -> tuple[int, dict[str, Any]]:
    """Return the number of rows, and the type that all known values of each column have."""
    left = {name: list(TYPES) if text.uses(name) else [pl.String] for name in text.names}
    known, height = set(), 0
    progress.stage(f"finding the types of the columns of {text.source}", text.lines - 1)
    for batch in text.scan(None, text.names, _ROWS):
        height += batch.height
        for column in batch:
            known |= {column.name} if column.null_count() < batch.height else set()
            ways = left[column.name]
            while not all_are(column, ways[0]):
                del ways[0]
        progress.advance(batch.height)
    schema = {name: ways[0] if name in known else pl.String for name, ways in left.items()}
    return height - text.blank, schema


def _typed_scan(
    text: TextFile, height: int, schema: Mapping[str, Any], names: list[str], rows: int
) -> Iterator[pl.DataFrame]:
    for batch in text.scan(height, names, rows):
        yield batch.with_columns(as_type(column, schema[column.name]) for column in batch)


def to_parquet(table: StoredTable) -> StoredTable:
    """Write the table to a temporary Parquet file, from which one pass is ten times as fast."""
    scratch = Scratch()
    path = scratch.path / "table.parquet"
    try:
        write_parquet(path, table.batches(doing=f"converting {table.source}"))
        size = path.stat().st_size
    except (OSError, pl.exceptions.PolarsError) as error:
        scratch.close()
        raise no_room(scratch.path.parent, error) from error
    except BaseException:
        scratch.close()
        raise
    remark = (
        f"It was converted to a temporary Parquet file of {max(size / 1e6, 1.0):,.0f} MB, because "
        "it is read many times."
    )
    found = scan_parquet(path, table.source, table.progress, table.height)
    remarks = [*table.remarks, remark]
    return replace(found, remarks=remarks, kept=scratch, notations=table.notations)
