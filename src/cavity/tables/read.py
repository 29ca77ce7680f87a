"""Tables from files and from the shipped data sets; anything irregular is an error."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import polars as pl
from sklearn import datasets as sklearn_datasets

from cavity.datasets import DATA, SPECS, DatasetSpec
from cavity.tables.large import scan_parquet, scan_text
from cavity.tables.notation import Ways, noted
from cavity.tables.output import TableError, near_miss
from cavity.tables.plain import encoding_of, is_packed, plain_text
from cavity.tables.table import SILENCE, StoredTable, Table, Watcher, fits_in_memory
from cavity.tables.text import read_text

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
STANDARD_INPUT = "-"
"""What is given in place of a file to read the table from standard input."""


class Reading(NamedTuple):
    """How a table is read: where progress goes, a text's encoding, and the columns with a meaning.

    The values of all others, if there are any, stay the text that they are.
    """

    progress: Watcher = SILENCE
    encoding: str | None = None
    used: Ways | None = None


def read_table(
    source: str | os.PathLike[str],
    progress: Watcher = SILENCE,
    encoding: str | None = None,
    used: Ways | None = None,
) -> Table | StoredTable:
    """Read a file, standard input ("-") or, if there is no file of that name, a shipped data set.

    ``.parquet`` and ``.pq`` are Parquet, ``.tsv`` and ``.tab`` are separated by tabs; in any other
    text the first line shows the separator. Text may be packed by gzip; its encoding is UTF-8 if
    none is given and there is no byte-order mark. A large file is only looked through: its rows
    are read in batches when they are needed. If only some columns are ``used``, which maps their
    names to the notations that they may have, the values of all others in a text stay as they are
    written.
    """
    path, how = Path(source), Reading(progress, encoding, used)
    if str(source) == STANDARD_INPUT:
        table = _read_text(sys.stdin.buffer, "standard input", None, how)
    elif path.is_file():
        table = _read_file(path, str(source), how)
    elif str(source) in SHIPPED:
        table = _read_shipped(str(source))
    elif path.is_dir():
        raise TableError(str(path), "is a folder, not a table.")
    else:
        names, near = ", ".join(SHIPPED), near_miss(str(source), _choices(path)) or "."
        problem = f"there is no such file or data set{near} The data sets are {names}."
        raise TableError(str(path), problem)
    if not table.schema or not table.height:
        raise TableError(table.source, "has no rows below the header.")
    return noted(table, used)


def _choices(path: Path) -> list[str]:
    """Return the names that might have been meant: of data sets, and of files beside this one."""
    try:
        beside = [str(path.parent / other.name) for other in path.parent.iterdir()]
    except OSError:
        beside = []
    return [*SHIPPED, *beside]


def _read_file(path: Path, source: str, how: Reading) -> Table | StoredTable:
    try:
        with path.open("rb") as file:
            start = file.read(4)
            if path.suffix.lower() in {".parquet", ".pq"} or start == b"PAR1":
                return _read_parquet(path, source, how.progress)
            name = path.name.lower().removesuffix(".gz")
            separator = "\t" if name.endswith((".tsv", ".tab")) else None
            unchanged = not (how.encoding or encoding_of(start) or is_packed(start))
            if unchanged and not fits_in_memory(path.stat().st_size):
                return scan_text(path, source, separator, how.progress, how.used)
            file.seek(0)
            return _read_text(file, source, separator, how)
    except OSError as error:
        raise TableError(str(path), f"cannot be read: {error.strerror}.") from error


def _read_text(
    file: IO[bytes], source: str, separator: str | None, how: Reading
) -> Table | StoredTable:
    """Return the text table in an open file, which is read once from beginning to end."""
    text = plain_text(file, source, how.encoding)
    if isinstance(text, bytes):
        return Table(read_text(text, source, separator, how.used), source)
    try:
        path = text.path / "table.txt"
        return scan_text(path, source, separator, how.progress, how.used, text)
    except TableError:
        text.close()
        raise


def _read_parquet(path: Path, source: str, progress: Watcher) -> Table | StoredTable:
    try:
        with _silent_stderr():
            schema = pl.read_parquet_schema(path)
            height = pl.scan_parquet(path).select(pl.len()).collect().item()
            if not fits_in_memory(8 * height * len(schema)):
                return scan_parquet(path, source, progress, height=height)
            return Table(pl.read_parquet(path), source)
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
    found = Table(pl.concat(parts), name, about.target, about.task, about.unused, held_out)
    return replace(found, order=about.order, exposure=about.exposure)
