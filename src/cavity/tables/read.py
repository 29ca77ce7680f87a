"""Tables from files and from the shipped data sets; anything irregular is an error."""

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from sklearn import datasets as sklearn_datasets

from cavity.arrays import Array
from cavity.datasets import DATA, SPECS, DatasetSpec
from cavity.tables.output import TableError

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "?")
"""Fields of a text file that count as missing."""
_DECIMAL_COMMA = re.compile(rb"(?:^|;)-?\d+,\d+(?:;|\r?\n)", re.M)
_COMMA_NUMBER = r"^(-?\d+),(\d+)$"
_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\x1f\x8b": "gzip", b"PK": "zip"}
_UTF8_MARK = b"\xef\xbb\xbf"


def read_text(data: bytes, source: str, separator: str | None = None) -> pl.DataFrame:
    """Return the table in the bytes of a CSV or TSV file.

    By default the separator is whichever of comma, semicolon and tab is most frequent in the
    first line.
    """
    data = _checked_text(data, source)
    first = data.split(b"\n", 1)[0].decode()
    separator = separator or max(",;\t", key=first.count)
    names = _header(data, source, separator)
    _refuse_ragged(data, source, separator, len(names))
    try:
        # Types are chosen below, from all values of a column instead of the first few.
        frame = pl.read_csv(data, separator=separator, infer_schema=False, new_columns=names)
    except pl.exceptions.PolarsError as error:
        reason = str(error).partition("\n")[0]
        raise TableError(source, f"cannot be read as a table: {reason}") from error
    comma = separator == ";" and bool(_DECIMAL_COMMA.search(data[:100_000]))
    return frame.with_columns(_typed(column, comma) for column in frame)


def _checked_text(data: bytes, source: str) -> bytes:
    """Return the bytes if they are UTF-8 text, without a byte-order mark."""
    for mark, name in _MARKS.items():
        if data.startswith(mark):
            raise TableError(source, f"is {name}, not plain text: save it as CSV in UTF-8.")
    if b"\0" in data:
        raise TableError(source, "is binary, not a text table.")
    data = data.removeprefix(_UTF8_MARK)
    if not data.strip():
        raise TableError(source, "is empty.")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"0x{data[error.start]:02x}"
        problem = f"line {line} is not UTF-8 (byte {byte}): save the file as UTF-8."
        raise TableError(source, problem) from error
    # Blank lines at the end are not rows.
    return data.rstrip(b"\r\n") + b"\n"


def _rows(data: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row's last line number and its fields."""
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="")
    reader = csv.reader(text, delimiter=separator)
    for fields in reader:
        yield reader.line_num, fields


def _header(data: bytes, source: str, separator: str) -> list[str]:
    try:
        _, fields = next(_rows(data, separator))
    except csv.Error as error:
        raise TableError(source, f"line 1 cannot be read: {error}.") from error
    names = [field.strip() or f"column_{i + 1}" for i, field in enumerate(fields)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(source, "two columns have this name: rename one.", column=twice[0])
    if all(map(_is_number, names)):
        raise TableError(source, "line 1 holds numbers: a line of column names must come first.")
    return names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _refuse_ragged(data: bytes, source: str, separator: str, width: int) -> None:
    """Raise an error if a row has too few fields (which would read as missing) or too many."""
    try:
        if b'"' in data:
            rows = _rows(data, separator)
            found = next(((line, len(f)) for line, f in rows if f and len(f) != width), None)
        else:
            found = _ragged_plain(data, separator, width)
    except csv.Error as error:
        raise TableError(source, f"a quoted field cannot be read: {error}.") from error
    if found:
        line, count = found
        problem = f"line {line} has {count} fields where the header has {width}: correct that line."
        raise TableError(source, problem)


def _ragged_plain(data: bytes, separator: str, width: int) -> tuple[int, int] | None:
    """Count separators between line ends, fifty times faster than splitting the lines."""
    letters = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    before = np.searchsorted(np.flatnonzero(letters == ord(separator)), ends)
    fields = np.diff(before, prepend=0) + 1
    length = np.diff(ends, prepend=-1)
    blank = (length == 1) | ((length == 2) & (letters[ends - 1] == ord("\r")))
    wrong = np.flatnonzero((fields != width) & ~blank)
    return (int(wrong[0]) + 1, int(fields[wrong[0]])) if len(wrong) else None


def _typed(column: pl.Series, decimal_comma: bool) -> pl.Series:
    """Return integers, floats or booleans if every known value is one, else text."""
    text = column.str.strip_chars()
    text = text.set(text.is_in(list(MISSING)), None)
    if text.null_count() == len(text):
        return text
    if decimal_comma:
        text = text.str.replace(_COMMA_NUMBER, "$1.$2")
    for dtype in (pl.Int64, pl.Float64):
        numbers = text.cast(dtype, strict=False)
        if numbers.null_count() == text.null_count():
            return numbers
    words = text.str.to_lowercase()
    return words == "true" if words.drop_nulls().is_in(["true", "false"]).all() else text


@dataclass(frozen=True)
class Table:
    """A data frame and the name of its file or data set.

    A shipped data set has a default target and task, columns that it does not use, and possibly
    test rows, which are True in ``held_out``.
    """

    frame: pl.DataFrame
    source: str
    target: str | None = None
    task: str | None = None
    drop: tuple[str, ...] = ()
    held_out: Array | None = None


_THEIRS = {
    "breast_cancer": DatasetSpec(
        (),
        "diagnosis",
        "classification",
        "benign and malignant breast tumours, 30 measurements (scikit-learn's)",
    ),
    "wine": DatasetSpec(
        (),
        "cultivar",
        "classification",
        "three cultivars of wine, 13 chemical measurements (scikit-learn's)",
    ),
}
SHIPPED = SPECS | _THEIRS
"""Data sets that can be named in place of a file."""


def read_table(source: str | os.PathLike[str]) -> Table:
    """Read a file or, if there is none of that name, a shipped data set.

    ``.parquet`` and ``.pq`` are Parquet, ``.tsv`` and ``.tab`` are separated by tabs; in any other
    text the first line shows the separator.
    """
    path = Path(source)
    if path.is_file():
        table = Table(_read_file(path), str(source))
    elif str(source) in SHIPPED:
        table = _read_shipped(str(source))
    elif path.is_dir():
        raise TableError(str(path), "is a folder, not a table.")
    else:
        names = ", ".join(SHIPPED)
        problem = f"there is no such file, and no such data set (the data sets are {names})."
        raise TableError(str(path), problem)
    if not table.frame.width or not table.frame.height:
        raise TableError(table.source, "has no rows below the header.")
    return table


def _read_file(path: Path) -> pl.DataFrame:
    if path.suffix.lower() in {".parquet", ".pq"}:
        return _read_parquet(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TableError(str(path), f"cannot be read: {error.strerror}.") from error
    if data.startswith(b"PAR1"):
        return _read_parquet(path)
    separator = "\t" if path.suffix.lower() in {".tsv", ".tab"} else None
    return read_text(data, str(path), separator)


def _read_parquet(path: Path) -> pl.DataFrame:
    try:
        with _silent_stderr():
            return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise TableError(str(path), f"is not a readable Parquet file ({reason}).") from error


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Hide what the Parquet reader prints about a broken file.

    It comes from threads outside Python and does not pass through `sys.stderr`.
    """
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _read_shipped(name: str) -> Table:
    about = SHIPPED[name]
    if name in _THEIRS:
        found = getattr(sklearn_datasets, f"load_{name}")()
        columns = dict(zip(map(str, found.feature_names), found.data.T, strict=True))
        labels = [str(found.target_names[code]) for code in found.target]
        return Table(pl.DataFrame(columns | {about.target: labels}), name, about.target, about.task)
    parts = [read_text((DATA / file).read_bytes(), name) for file in about.files]
    heights = [part.height for part in parts]
    held_out = np.repeat([False, True], heights) if len(parts) == 2 else None
    return Table(pl.concat(parts), name, about.target, about.task, about.unused, held_out)
