"""What goes out: errors of one line, strict JSON, and files replaced in one step."""

import difflib
import json
import math
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from cavity.estimators.columns import CONTROL
from cavity.storage import check_regular, clipped, remove_litter, replacing

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_FORMULA = r"(?s)^(?:[=+\-@\t\r].|[\t\r]$)"
"""A sign alone is no formula, and a common label."""
_WITHOUT_TEXT = (pl.Binary, pl.Duration, pl.Object)
_LONGEST_NAME, _LONGEST_PROBLEM = 60, 320
"""Letters of a column's name, and of what is wrong with it, in a message."""
FRAME_SUFFIXES = (*_SEPARATORS, ".parquet", ".pq")
"""Suffixes of the tables that can be written."""


class TableError(ValueError):
    """A problem with the data or a file; the message is one line that says where and why.

    >>> print(TableError("a.csv", "'x' is not a number.", column="age", row=3))
    a.csv: column 'age', row 3: 'x' is not a number.
    """

    def __init__(
        self, source: str, problem: str, *, column: str | None = None, row: int | None = None
    ) -> None:
        place = f": column '{clipped(column, _LONGEST_NAME)}'" if column is not None else ""
        # The first row below the header is row 1.
        place += f", row {row}" if row is not None else ""
        # A problem quotes names and values of the table; at its end is what to do.
        problem = clipped(" ".join(problem.split()), _LONGEST_PROBLEM)
        super().__init__(" ".join(f"{source}{place}: {problem}".split()))


class NoTargetError(TableError):
    """No column to predict was given."""


def near_miss(name: str, known: Collection[str]) -> str:
    """Return "; did you mean '...'?" if one of the known names is much like this one, else ""."""
    folded = {other.casefold().strip(): other for other in known}
    close = difflib.get_close_matches(name.casefold().strip(), folded, n=1, cutoff=0.7)
    return f"; did you mean '{folded[close[0]]}'?" if close else ""


def to_json(value: Any) -> str:
    """Return strict JSON, in which a number that is not finite is null."""
    text = json.dumps(plain(value), indent=2, allow_nan=False, ensure_ascii=False)
    # The others that a terminal would obey; JSON escapes the first thirty-two by itself.
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def plain(value: Any) -> Any:
    """Return dicts, lists, strings and numbers, with None for a number that is not finite."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def json_lines(frames: Iterable[pl.DataFrame]) -> Iterator[str]:
    """Yield the text of a JSON list of all rows, part after part."""
    begin = "[\n"
    for frame in frames:
        # Without the brackets of the part's own list.
        yield begin + to_json(frame.to_dicts())[2:-2]
        begin = ",\n"
    yield "\n]\n"


def csv_lines(frames: Iterable[pl.DataFrame], separator: str = ",") -> Iterator[str]:
    """Yield the text of a CSV table, part after part.

    No text in it is a formula to a spreadsheet, nor is a name: an apostrophe comes first.
    """
    for k, frame in enumerate(frames):
        if not k:
            # As a row, because two names may be equal once one of them has an apostrophe.
            names = pl.DataFrame([pl.Series(str(i), [n]) for i, n in enumerate(frame.columns)])
            yield _escaped(names).write_csv(include_header=False, separator=separator)
        yield _escaped(frame).write_csv(include_header=False, separator=separator)


def _escaped(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(map(_cells, frame))


def _cells(column: pl.Series) -> pl.Series:
    """Return a column as CSV has it."""
    if column.dtype.is_nested() or column.dtype in _WITHOUT_TEXT:
        kind = str(column.dtype).partition("(")[0].lower()
        problem = f"holds values of type {kind}, which CSV cannot hold; write Parquet instead."
        raise TableError("the output", problem, column=column.name)
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    return _apart(column) if column.dtype == pl.String else column


def _apart(text: pl.Series) -> pl.Series:
    is_number = text.cast(pl.Float64, strict=False).is_not_null()
    formula = text.str.contains(_FORMULA).fill_null(False) & ~is_number
    return text.zip_with(~formula, "'" + text)


def check_writable(path: Path) -> None:
    """Raise an error if the path cannot be written, before any work is done."""
    folder = Path(os.path.realpath(path)).parent
    if path.is_dir():
        raise TableError(str(path), "is a folder; give the name of a file.")
    if not folder.is_dir():
        raise TableError(str(path), f"cannot be written: there is no folder {folder}.")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise TableError(str(path), "cannot be written: permission denied.")
    check_regular(path)
    remove_litter(path)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn a failure to write into an error of one line that names the file."""
    try:
        yield
    except (OSError, pl.exceptions.ComputeError) as error:
        problem = f"cannot be written: {getattr(error, 'strerror', None) or error}."
        raise TableError(os.fspath(path), problem) from error


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text; if that fails, an older file stays as it was."""
    with writing(path), replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


def write_frames(path: Path, frames: Iterable[pl.DataFrame]) -> int:
    """Write one table in the format of its suffix, part after part; return its number of rows.

    There is at least one part. If writing fails, an older file stays as it was.
    """
    height = 0

    def counted() -> Iterator[pl.DataFrame]:
        nonlocal height
        for frame in frames:
            height += frame.height
            yield frame

    with writing(path), replacing(path) as beside:
        separator = _SEPARATORS.get(path.suffix.lower())
        if separator is None:
            write_parquet(beside, counted())
        else:
            with beside.open("w", encoding="utf-8", newline="") as file:
                file.writelines(csv_lines(counted(), separator))
    return height


def write_parquet(path: Path, frames: Iterable[pl.DataFrame]) -> None:
    """Write a table part after part to a Parquet file; there is at least one part."""
    rest = iter(frames)
    first = next(rest)
    parts = chain([first], rest)
    register_io_source(lambda *_: parts, schema=first.schema).sink_parquet(path)
