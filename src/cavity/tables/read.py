"""Tables from files and from the shipped data sets."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn import datasets as sklearn_datasets

from cavity import datasets
from cavity.arrays import Array
from cavity.tables.errors import TableError
from cavity.tables.text import read_text


@dataclass(frozen=True)
class Table:
    """A data frame and what is known about it.

    Attributes
    ----------
    frame : polars.DataFrame
    source : str
        The file or data set.
    target, task : str or None
        What a shipped data set predicts by default.
    drop : tuple of str
        Columns that a shipped data set does not use.
    held_out : array of bool of shape (n_rows,) or None
        The test rows of a data set that comes with a split.
    """

    frame: pl.DataFrame
    source: str
    target: str | None = None
    task: str | None = None
    drop: tuple[str, ...] = ()
    held_out: Array | None = None


@dataclass(frozen=True)
class _Shipped:
    target: str
    task: str
    drop: tuple[str, ...] = ()


SHIPPED = {
    "pima": _Shipped("type", "classification"),
    "crabs": _Shipped("sex", "classification", ("index",)),
    "sonar": _Shipped("Class", "classification"),
    "boston": _Shipped("medv", "regression"),
    "abalone": _Shipped("rings", "regression"),
    "breast_cancer": _Shipped("diagnosis", "classification"),
    "wine": _Shipped("cultivar", "classification"),
}
"""Data sets that can be named in place of a file; the last two are scikit-learn's."""


def read_table(source: str | os.PathLike[str]) -> Table:
    """Read a CSV, TSV or Parquet file, or a shipped data set.

    Parameters
    ----------
    source : path, or name of a shipped data set
        If there is a file of that name it is read. ``.parquet`` and ``.pq`` are Parquet, ``.tsv``
        and ``.tab`` are separated by tabs; in any other text the first line shows the separator.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        If there is no such table or it cannot be read.

    Examples
    --------
    >>> from cavity.tables.read import read_table
    >>> table = read_table("pima")
    >>> table.frame.shape, table.target
    ((532, 8), 'type')
    """
    path = Path(source)
    if path.is_file():
        table = Table(_read_file(path), str(source))
    elif str(source) in SHIPPED:
        table = _read_shipped(str(source))
    else:
        raise _not_found(path)
    if not table.frame.width or not table.frame.height:
        raise TableError(table.source, "has no rows below the header.")
    return table


def _not_found(path: Path) -> TableError:
    if path.is_dir():
        return TableError(str(path), "is a folder, not a table.")
    names = ", ".join(SHIPPED)
    return TableError(
        str(path), f"there is no such file, and no such data set (the data sets are {names})."
    )


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
    held_out = None
    if name in datasets.list_datasets():
        found = getattr(datasets, f"load_{name}")(**({"subset": "all"} if name == "pima" else {}))
        names = (found.filename,) if isinstance(found.filename, str) else found.filename
        folder = files("cavity.datasets") / "data"
        frame = pl.concat(read_text((folder / n).read_bytes(), name) for n in names)
        if "test" in found:
            held_out = np.isin(np.arange(frame.height), found.test)
    else:
        frame = _from_scikit_learn(getattr(sklearn_datasets, f"load_{name}")(), about.target)
    return Table(frame, name, about.target, about.task, about.drop, held_out)


def _from_scikit_learn(found: Any, target: str) -> pl.DataFrame:
    frame = pl.DataFrame(dict(zip(map(str, found.feature_names), found.data.T, strict=True)))
    labels = [str(found.target_names[code]) for code in found.target]
    return frame.with_columns(pl.Series(target, labels))
