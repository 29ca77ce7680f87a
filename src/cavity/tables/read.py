"""Tables from files and from the shipped data sets."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn import datasets as sklearn_datasets

from cavity.arrays import Array
from cavity.datasets._load import DATA, SPECS, DatasetSpec
from cavity.tables.errors import TableError
from cavity.tables.text import read_text


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
        frame = _from_scikit_learn(getattr(sklearn_datasets, f"load_{name}")(), about.target)
        return Table(frame, name, about.target, about.task)
    parts = [read_text((DATA / file).read_bytes(), name) for file in about.files]
    heights = [part.height for part in parts]
    held_out = np.repeat([False, True], heights) if len(parts) == 2 else None
    return Table(pl.concat(parts), name, about.target, about.task, about.unused, held_out)


def _from_scikit_learn(found: Any, target: str) -> pl.DataFrame:
    frame = pl.DataFrame(dict(zip(map(str, found.feature_names), found.data.T, strict=True)))
    labels = [str(found.target_names[code]) for code in found.target]
    return frame.with_columns(pl.Series(target, labels))
