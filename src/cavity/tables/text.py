"""Text tables: how they are checked, split and typed; anything irregular is an error."""

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import IO, Any

import numpy as np
import polars as pl

from cavity.tables.output import TableError

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "?")
"""Fields of a text file that count as missing."""
_DECIMAL_COMMA = re.compile(rb"(?:^|;)-?\d+,\d+(?:;|\r?\n)", re.M)
_BEGINNING = 100_000
_COMMA_NUMBER = r"^(-?\d+),(\d+)$"
_MARKS = {b"PK": "a zip archive", b"PAR1": "Parquet"}
UTF8_MARK = b"\xef\xbb\xbf"


def read_text(
    data: bytes, source: str, separator: str | None = None, used: Collection[str] | None = None
) -> pl.DataFrame:
    """Return the table in the bytes of a CSV or TSV file.

    By default the separator is whichever of comma, semicolon and tab is most frequent in the
    first line, and all columns are used; one that is not stays as it is written.
    """
    data = _checked_text(data, source)
    separator = separator or separator_of(data)
    names = header(data, source, separator)
    if b'"' in data:
        refuse_ragged_quoted(io.BytesIO(data), source, separator, len(names))
    else:
        refuse_ragged(data, source, separator, len(names))
    try:
        # Types are chosen below, from all values of a column instead of the first few.
        frame = pl.read_csv(data, separator=separator, infer_schema=False, new_columns=names)
    except pl.exceptions.PolarsError as error:
        reason = str(error).partition("\n")[0]
        raise TableError(source, f"cannot be read as a table: {reason}") from error
    comma = has_decimal_commas(data, separator)
    return frame.with_columns(
        _typed(column, comma) for column in frame if used is None or column.name in used
    )


def _checked_text(data: bytes, source: str) -> bytes:
    """Return the bytes if they are UTF-8 text, without a byte-order mark."""
    refuse_marks(data, source)
    refuse_binary(data, source)
    refuse_other_letters(data, source)
    data = data.removeprefix(UTF8_MARK)
    if not data.strip():
        raise TableError(source, "is empty.")
    # Blank lines at the end are not rows.
    return data.rstrip(b"\r\n") + b"\n"


def refuse_marks(data: bytes, source: str) -> None:
    """Raise an error if the first bytes are those of another kind of file."""
    for mark, name in _MARKS.items():
        if data.startswith(mark):
            problem = f"is {name}, not a text table: unpack it, or give it as a file of its own."
            raise TableError(source, problem)


def refuse_binary(data: bytes, source: str) -> None:
    """Raise an error if these bytes are no text."""
    if b"\0" in data:
        raise TableError(source, "is binary, not a text table.")


def refuse_other_letters(data: bytes, source: str, lines: int = 0, before: int = 0) -> None:
    """Raise an error if these bytes, after so many lines and bytes, are not UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = lines + data.count(b"\n", 0, error.start) + 1
        byte = f"0x{data[error.start]:02x} at position {before + error.start}"
        problem = (
            f"line {line} is not UTF-8 (byte {byte}): name the encoding, such as "
            f"--encoding {_likely(data)}, or save the file as UTF-8."
        )
        raise TableError(source, problem) from error


def _likely(data: bytes) -> str:
    """Return a frequent encoding in which these bytes are text."""
    try:
        data.decode("cp1252")
        return "cp1252"
    except UnicodeDecodeError:
        return "latin-1"


def separator_of(data: bytes) -> str:
    """Return whichever of comma, semicolon and tab is most frequent in the first line."""
    return max(",;\t", key=data.split(b"\n", 1)[0].decode().count)


def has_decimal_commas(data: bytes, separator: str) -> bool:
    """Return whether there are decimal commas near the beginning of a text."""
    return separator == ";" and bool(_DECIMAL_COMMA.search(data[:_BEGINNING]))


def _rows(file: IO[bytes], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row's last line number and its fields."""
    text = io.TextIOWrapper(file, "utf-8", newline="")
    try:
        reader = csv.reader(text, delimiter=separator)
        for fields in reader:
            yield reader.line_num, fields
    finally:
        text.detach()


def header(data: bytes, source: str, separator: str) -> list[str]:
    """Return the names of the columns."""
    try:
        _, fields = next(_rows(io.BytesIO(data), separator))
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


def refuse_ragged(data: bytes, source: str, separator: str, width: int, lines: int = 0) -> None:
    """Raise an error if a row has too few fields (which would read as missing) or too many.

    The rows have no quotes, and come after so many lines. Counting separators between line ends
    is fifty times faster than splitting the lines.
    """
    letters = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    before = np.searchsorted(np.flatnonzero(letters == ord(separator)), ends)
    fields = np.diff(before, prepend=0) + 1
    length = np.diff(ends, prepend=-1)
    blank = (length == 1) | ((length == 2) & (letters[ends - 1] == ord("\r")))
    wrong = np.flatnonzero((fields != width) & ~blank)
    if len(wrong):
        _refuse_line(source, lines + int(wrong[0]) + 1, int(fields[wrong[0]]), width)


def refuse_ragged_quoted(
    file: IO[bytes], source: str, separator: str, width: int, lines: int = 0
) -> None:
    """Raise the same error for the rest of a file, in which fields may be quoted."""
    try:
        for line, fields in _rows(file, separator):
            if fields and len(fields) != width:
                _refuse_line(source, lines + line, len(fields), width)
    except csv.Error as error:
        raise TableError(source, f"a quoted field cannot be read: {error}.") from error


def _refuse_line(source: str, line: int, count: int, width: int) -> None:
    problem = f"line {line} has {count} fields where the header has {width}: correct that line."
    raise TableError(source, problem)


def cleaned(column: pl.Series, decimal_comma: bool) -> pl.Series:
    """Return text without spaces around it, null where it is missing."""
    text = column.str.strip_chars()
    text = text.set(text.is_in(list(MISSING)), None)
    return text.str.replace(_COMMA_NUMBER, "$1.$2") if decimal_comma else text


def _typed(column: pl.Series, decimal_comma: bool) -> pl.Series:
    """Return integers, floats or booleans if every known value is one, else text."""
    text = cleaned(column, decimal_comma)
    if text.null_count() == len(text):
        return text
    return as_type(text, next(dtype for dtype in TYPES if all_are(text, dtype)))


TYPES: tuple[Any, ...] = (pl.Int64, pl.Float64, pl.Boolean, pl.String)
"""The first of these types that all known values have is that of their column."""


def all_are(text: pl.Series, dtype: Any) -> bool:
    """Return whether every known value is of this type."""
    if dtype == pl.Boolean:
        return bool(text.drop_nulls().str.to_lowercase().is_in(["true", "false"]).all())
    return text.cast(dtype, strict=False).null_count() == text.null_count()


def as_type(text: pl.Series, dtype: Any) -> pl.Series:
    """Return the values in this type."""
    return text.str.to_lowercase() == "true" if dtype == pl.Boolean else text.cast(dtype)
