"""Doors by which strange things come in, what Hypothesis puts before them, and what must follow.

Behind every door there is either an answer or one refusal of one line; nothing else.
"""

import contextlib
import copy
import io
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from hypothesis import strategies as st

from cavity.cli import main
from cavity.rows import ParquetRows
from cavity.storage import StorageError
from cavity.storage.codecs import (
    classes_from_json,
    kernel_from_json,
    labels_from_json,
    likelihood_from_json,
)
from cavity.tables.prepare import prepare
from cavity.tables.read import read_table
from farm.models import (
    JSON,
    Kind,
    bytes_of,
    changed_files,
    kinds,
    labelled,
    new_folder,
    open_bytes,
    open_changed,
    refused,
)

__all__ = ["DOORS", "Door"]


class Door(NamedTuple):
    """What is drawn, and the check of what follows."""

    drawn: Callable[[], st.SearchStrategy[Any]]
    check: Callable[[Any], None]


@st.composite
def _damaged_bytes(draw: Any, whole: bytes) -> bytes:
    """Draw bytes with a few places changed, cut off or doubled."""
    found = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(found) - 1)))
        how = draw(st.sampled_from(["flip", "cut", "insert", "zero"]))
        if how == "flip" and found:
            found[at] ^= 1 << draw(st.integers(0, 7))
        elif how == "cut":
            del found[at : at + draw(st.integers(1, 200))]
        elif how == "insert":
            found[at:at] = draw(st.binary(max_size=20))
        else:
            found[at : at + 8] = bytes(min(8, len(found) - at))
    return bytes(found)


@st.composite
def _damaged_models(draw: Any) -> tuple[Kind, bytes]:
    """Draw a model file of some kind, damaged."""
    kind = draw(st.sampled_from(kinds()))
    return kind, draw(_damaged_bytes(bytes_of(kind)))


def _anything() -> st.SearchStrategy[tuple[Kind, bytes]]:
    return st.tuples(st.sampled_from(kinds()), st.binary(max_size=300))


@cache
def _parquet_bytes() -> bytes:
    X, y = labelled()
    buffer = io.BytesIO()
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).write_parquet(buffer)
    return buffer.getvalue()


def _read_parquet(content: bytes) -> None:
    """Read a Parquet file as the rows of an estimator.

    Commands read Parquet by Polars, which ends the whole process over some damaged files.
    """
    with new_folder() as folder:
        path = folder / "t.parquet"
        path.write_bytes(content)
        try:
            rows = ParquetRows(path, "y")
            assert rows.n_rows >= 0
            rows.reduce(lambda rows, kept, shared: (None, len(rows.weight)), None, "read")
        except (ValueError, OSError) as error:
            refused(str(error).replace(str(folder), ""))


def _prepared(path: Path) -> None:
    try:
        table = read_table(path)
        data = prepare(table, target=None if "y" not in table.schema else "y")
        assert np.all(np.isfinite(data.X))
        table.close() if hasattr(table, "close") else None
    except ValueError as error:
        refused(str(error).removeprefix(str(path)))


_CELLS = st.one_of(
    st.floats(width=32).map(str),
    st.integers(-10, 10).map(str),
    st.sampled_from(
        ["", "NA", "nan", "inf", "-", "=1+1", '"', "a,b", "1e400", "yes", "no", "\x00"]
    ),
    st.text(max_size=6),
)


@st.composite
def _tables(draw: Any) -> bytes:
    """Draw a text that looks like a table, more or less."""
    separator = draw(st.sampled_from([",", ";", "\t", "|"]))
    names = draw(st.lists(st.sampled_from(["y", "x", "x y", "", "id", "a"]) | _CELLS, max_size=4))
    rows = draw(st.lists(st.lists(_CELLS, min_size=1, max_size=5), max_size=12))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    text = end.join(separator.join(row) for row in [["y", *names], *rows])
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]))
    return text.encode(encoding, errors="replace")


def _read_text(content: bytes) -> None:
    with new_folder() as folder:
        path = folder / "t.csv"
        path.write_bytes(content)
        _prepared(path)


def _decode(found: Any) -> None:
    """Offer JSON to the decoders of kernels, likelihoods and labels."""
    for decode in (kernel_from_json, likelihood_from_json, labels_from_json, classes_from_json):
        try:
            decode(copy.deepcopy(found))
        except StorageError as error:
            refused(str(error))


_WORDS = st.one_of(
    st.sampled_from(["fit", "predict", "curve", "compare", "datasets", "suggest", "report"]),
    st.sampled_from(["--target", "--kernel", "--rows", "--seed", "-o", "--json", "--quiet", "--"]),
    st.sampled_from(["t.csv", "model", "nothing.csv", "y", "rbf", "10", "-1", "1e9", "/dev/null"]),
    st.sampled_from([".", "", "-", "out.csv", "\x1b[2J", "a\nb", "\udc80", "--help"]),
    st.text(max_size=5),
)


def _commands(words: list[str]) -> None:
    """Run a command: it ends with 0, 1 or 2, and on failure writes one line and no file."""
    out, err = io.StringIO(), io.StringIO()
    with new_folder() as folder, contextlib.chdir(folder):
        (folder / "t.csv").write_text("y,x\n" + "\n".join(f"{k % 2},{k}" for k in range(12)))
        before = set(os.listdir(folder))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
        new = set(os.listdir(folder)) - before
    assert code in (0, 1, 2), code
    if code:
        assert not new, (words, new)
        # Without a word the command says what it can do.
        assert not words or len(err.getvalue().splitlines()) == 1, err.getvalue()


DOORS = {
    "model files, changed": Door(changed_files, open_changed),
    "model files, damaged": Door(_damaged_models, open_bytes),
    "model files, anything": Door(_anything, open_bytes),
    "Parquet": Door(lambda: _damaged_bytes(_parquet_bytes()), _read_parquet),
    "CSV": Door(_tables, _read_text),
    "JSON": Door(lambda: JSON, _decode),
    "commands": Door(lambda: st.lists(_WORDS, max_size=5), _commands),
}
