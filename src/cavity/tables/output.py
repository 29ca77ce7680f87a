"""What goes out: errors of one line, strict JSON, and files replaced in one step."""

import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cavity.storage import replacing

_WRITERS: dict[str, Callable[[pl.DataFrame, Path], None]] = {
    ".csv": lambda frame, path: frame.write_csv(path),
    ".tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    ".parquet": lambda frame, path: frame.write_parquet(path),
    ".pq": lambda frame, path: frame.write_parquet(path),
}
FRAME_SUFFIXES = tuple(_WRITERS)
"""Suffixes of the tables that can be written."""


class TableError(ValueError):
    """A problem with the data or a file; the message is one line that says where and why.

    >>> print(TableError("a.csv", "'x' is not a number.", column="age", row=3))
    a.csv: column 'age', row 3: 'x' is not a number.
    """

    def __init__(
        self, source: str, problem: str, *, column: str | None = None, row: int | None = None
    ) -> None:
        place = f": column '{column}'" if column is not None else ""
        # The first row below the header is row 1.
        place += f", row {row}" if row is not None else ""
        super().__init__(" ".join(f"{source}{place}: {problem}".split()))


class NoTargetError(TableError):
    """No column to predict was given."""


def to_json(value: Any) -> str:
    """Return strict JSON, in which a number that is not finite is null."""
    return json.dumps(plain(value), indent=2, allow_nan=False, ensure_ascii=False)


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


def check_writable(path: Path) -> None:
    """Raise an error if the path cannot be written, before any work is done."""
    folder = path.resolve().parent
    if path.is_dir():
        raise TableError(str(path), "is a folder; give the name of a file.")
    if not folder.is_dir():
        raise TableError(str(path), f"cannot be written: there is no folder {folder}.")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise TableError(str(path), "cannot be written: permission denied.")


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn a failure to write into an error of one line that names the file."""
    try:
        yield
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}."
        raise TableError(os.fspath(path), problem) from error


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text; if that fails, an older file stays as it was."""
    with writing(path), replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Write a table in the format of its suffix; if that fails, an older file stays as it was."""
    with writing(path), replacing(path) as beside:
        _WRITERS[path.suffix.lower()](frame, beside)
