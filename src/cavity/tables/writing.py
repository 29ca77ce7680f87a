"""Output files: checked before the work begins, written whole or not at all."""

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from cavity.tables.errors import TableError

__all__ = ["FRAME_SUFFIXES", "check_writable", "write_frame", "write_text", "writing"]

_WRITERS: dict[str, Callable[[pl.DataFrame, Path], None]] = {
    ".csv": lambda frame, path: frame.write_csv(path),
    ".tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    ".parquet": lambda frame, path: frame.write_parquet(path),
    ".pq": lambda frame, path: frame.write_parquet(path),
}
FRAME_SUFFIXES = tuple(_WRITERS)
"""How the name of a table to write may end."""


def check_writable(path: Path) -> None:
    """Refuse a path that cannot be written, before anything is computed for it."""
    folder = path.resolve().parent
    if path.is_dir():
        raise TableError(str(path), "is a folder; give the name of a file to write.")
    if not folder.is_dir():
        raise TableError(str(path), f"cannot be written: there is no folder {folder}.")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise TableError(str(path), "cannot be written: permission denied.")


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """Yield a path beside the destination, and move it there once it is whole."""
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield beside
        os.replace(beside, target)
    except OSError as error:
        raise TableError(str(path), f"cannot be written: {error.strerror or error}.") from error
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text whole or not at all."""
    with writing(path) as beside:
        beside.write_text(text, encoding="utf-8")


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Write a table in the format that the name ends in, whole or not at all."""
    with writing(path) as beside:
        _WRITERS[path.suffix.lower()](frame, beside)
