"""Doors by which strange things come in, what Hypothesis puts before them, and what must follow.

Behind every door there is either an answer or one refusal of one line; nothing else.
"""

import contextlib
import copy
import io
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessClassifier, OnlineGaussianProcessClassifier, storage
from cavity.cli import main
from cavity.estimators import load, save
from cavity.rows import ParquetRows
from cavity.storage import StorageError
from cavity.storage.codecs import kernel_from_json, labels_from_json, likelihood_from_json
from cavity.tables.prepare import prepare
from cavity.tables.read import read_table

__all__ = ["DOORS", "Door"]

_LONGEST = 600
"""Letters of a refusal: of one that quotes names from the outside, several may be quoted."""

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["kernel", "RBF", "parameters", "<U262144", "fixed", "array", "tuple"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
_ARRAYS = st.one_of(
    st.lists(st.floats(), max_size=6).map(np.array),
    st.lists(st.integers(-3, 3), max_size=6).map(lambda x: np.array(x, dtype=np.int64)),
    st.sampled_from(["zeros", "nan", "short", "turned", "text", "huge", "one"]),
)


class Door(NamedTuple):
    """What is drawn, and the check of what follows."""

    drawn: Callable[[], st.SearchStrategy[Any]]
    check: Callable[[Any], None]


def _refused(text: str) -> None:
    """Require a refusal to be one short line."""
    assert 0 < len(text) <= _LONGEST, text
    assert "\n" not in text, text


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield Path(name)


def _data() -> tuple[Any, Any]:
    X = np.random.default_rng(0).normal(size=(8, 2))
    return X, np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]


class _Kind(NamedTuple):
    """A kind of model file: its name, how it is opened, and its contents."""

    name: str
    opened: Callable[[Path], Any]
    header: dict[str, Any]
    arrays: dict[str, Any]


@cache
def _kinds() -> tuple[_Kind, ...]:
    batch = GaussianProcessClassifier(RBF(1.0), optimizer=None).fit(*_data())
    points = GaussianProcessClassifier(RBF(1.0), optimizer=None, n_inducing=3).fit(*_data())
    stream = OnlineGaussianProcessClassifier(RBF(1.0), budget=4).fit(*_data())
    found = []
    with _folder() as folder:
        path = folder / "model"
        for write, name, opened in (
            (lambda: save(batch, path), "fitted estimator", load),
            (lambda: save(points, path), "fitted estimator", load),
            (lambda: stream.save(path), type(stream).__name__, type(stream).load),
        ):
            write()
            found.append(_Kind(name, opened, *storage.read(path, name)))
    return tuple(found)


def _paths(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value inside a header."""
    yield here
    inside = list(value.items()) if isinstance(value, dict) else []
    inside += list(enumerate(value)) if isinstance(value, list) else []
    for key, inner in inside:
        yield from _paths(inner, (*here, key))


@st.composite
def _changed_files(draw: Any) -> tuple[_Kind, dict[str, Any], dict[str, Any]]:
    """Draw a model file with one entry of its header, or one array, replaced by another."""
    kind = draw(st.sampled_from(_kinds()))
    header, arrays = copy.deepcopy(kind.header), dict(kind.arrays)
    if draw(st.booleans()):
        *way, last = draw(st.sampled_from([path for path in _paths(header) if path]))
        place: Any = header
        for key in way:
            place = place[key]
        place[last] = draw(_JSON)
    else:
        name = draw(st.sampled_from(sorted(arrays)))
        arrays[name] = _another(arrays[name], draw(_ARRAYS))
    return kind, header, arrays


def _another(array: Any, how: Any) -> Any:
    if not isinstance(how, str):
        return how
    made: dict[str, Callable[[], Any]] = {
        "zeros": lambda: np.zeros_like(array),
        "nan": lambda: np.full(array.shape, np.nan),
        "short": lambda: array.ravel()[:-1],
        "turned": lambda: np.ascontiguousarray(array.T[..., None]),
        "text": lambda: array.astype(str),
        "huge": lambda: np.full(array.shape, 1e300),
        "one": lambda: np.ones(()),
    }
    return made[how]()


def _open_changed(drawn: tuple[_Kind, dict[str, Any], dict[str, Any]]) -> None:
    kind, header, arrays = drawn
    with _folder() as folder:
        path = folder / "model"
        try:
            storage.write(path, kind.name, header, arrays)
        except StorageError:
            return
        _open(path, kind)


def _open(path: Path, kind: _Kind) -> None:
    """Open a model file: it predicts probabilities, or is refused in one line."""
    try:
        model = kind.opened(path)
    except StorageError as error:
        _refused(str(error).removeprefix(str(path)))
        return
    try:
        with np.errstate(all="ignore"):
            proba = model.predict_proba(np.zeros((2, model.n_features_in_)))
    except ValueError as error:
        _refused(str(error))
        return
    assert proba.shape[0] == 2
    assert np.all(np.isfinite(proba)), header_of(path)


def header_of(path: Path) -> str:
    """Return the beginning of a file, for whoever has to find out."""
    return repr(path.read_bytes()[:2000])


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


@cache
def _model_bytes() -> bytes:
    kind = _kinds()[0]
    with _folder() as folder:
        storage.write(folder / "model", kind.name, kind.header, kind.arrays)
        return (folder / "model").read_bytes()


def _open_bytes(content: bytes) -> None:
    with _folder() as folder:
        (folder / "model").write_bytes(content)
        _open(folder / "model", _kinds()[0])


@cache
def _parquet_bytes() -> bytes:
    X, y = _data()
    buffer = io.BytesIO()
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).write_parquet(buffer)
    return buffer.getvalue()


def _read_parquet(content: bytes) -> None:
    """Read a Parquet file as the rows of an estimator.

    Commands read Parquet by Polars, which ends the whole process over some damaged files.
    """
    with _folder() as folder:
        path = folder / "t.parquet"
        path.write_bytes(content)
        try:
            rows = ParquetRows(path, "y")
            assert rows.n_rows >= 0
            rows.reduce(lambda rows, kept, shared: (None, len(rows.weight)), None, "read")
        except (ValueError, OSError) as error:
            _refused(str(error).replace(str(folder), ""))


def _prepared(path: Path) -> None:
    try:
        table = read_table(path)
        data = prepare(table, target=None if "y" not in table.schema else "y")
        assert np.all(np.isfinite(data.X))
        table.close() if hasattr(table, "close") else None
    except ValueError as error:
        _refused(str(error).removeprefix(str(path)))


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
    with _folder() as folder:
        path = folder / "t.csv"
        path.write_bytes(content)
        _prepared(path)


def _decode(found: Any) -> None:
    """Offer JSON to the decoders of kernels, likelihoods and labels."""
    for decode in (kernel_from_json, likelihood_from_json, labels_from_json):
        try:
            decode(copy.deepcopy(found))
        except StorageError as error:
            _refused(str(error))


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
    with _folder() as folder, contextlib.chdir(folder):
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
    "model files, changed": Door(_changed_files, _open_changed),
    "model files, damaged": Door(lambda: _damaged_bytes(_model_bytes()), _open_bytes),
    "model files, anything": Door(lambda: st.binary(max_size=300), _open_bytes),
    "Parquet": Door(lambda: _damaged_bytes(_parquet_bytes()), _read_parquet),
    "CSV": Door(_tables, _read_text),
    "JSON": Door(lambda: _JSON, _decode),
    "commands": Door(lambda: st.lists(_WORDS, max_size=5), _commands),
}
