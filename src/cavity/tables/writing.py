"""Output files: checked before the work begins, then replaced in one step."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from cavity.storage import replacing
from cavity.tables.errors import TableError

_WRITERS: dict[str, Callable[[pl.DataFrame, Path], None]] = {
    ".csv": lambda frame, path: frame.write_csv(path),
    ".tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    ".parquet": lambda frame, path: frame.write_parquet(path),
    ".pq": lambda frame, path: frame.write_parquet(path),
}
FRAME_SUFFIXES = tuple(_WRITERS)
"""Suffixes of the tables that can be written."""


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
