"""Model files of every kind, what is changed in them, and what must follow when they are opened."""

import contextlib
import copy
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

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    OnlineGaussianProcessClassifier,
    OnlineGaussianProcessRegressor,
    storage,
)
from cavity.estimators import load, save
from cavity.storage import StorageError
from cavity.tables.model import Settings, fit_model, load_model, save_model
from cavity.tables.prepare import prepare
from cavity.tables.table import Table

__all__ = [
    "JSON",
    "Kind",
    "bytes_of",
    "changed_files",
    "kinds",
    "labelled",
    "new_folder",
    "open_bytes",
    "open_changed",
    "refused",
]

_LONGEST = 600
"""Letters of a refusal: of one that quotes names from the outside, several may be quoted."""

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([10**400, -(10**400), 10**9, float("inf"), "x" * 5000, "\x1b[2J"])
    | st.sampled_from(["kernel", "RBF", "parameters", "<U262144", "fixed", "array", "tuple"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
_SHAPES = st.sampled_from(["short", "turned", "text", "one"])
_VALUES = st.sampled_from(["zeros", "nan", "huge", "negative", "tiny", "doubled"])
_ARRAYS = st.one_of(
    st.lists(st.floats(), max_size=6).map(np.array),
    st.lists(st.integers(-3, 3), max_size=6).map(lambda x: np.array(x, dtype=np.int64)),
    _SHAPES,
    # Of the same shape, they get past the checks of shapes; so they come more often.
    _VALUES,
    _VALUES,
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6),
)


def refused(text: str) -> None:
    """Require a refusal to be one short line."""
    assert 0 < len(text) <= _LONGEST, text
    assert "\n" not in text, text


@contextlib.contextmanager
def new_folder() -> Iterator[Path]:
    """Yield an empty folder, where every warning that is not for the user is an error."""
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Columns of arrays have no names, whatever a file says.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        # A mean of e to the f can be infinite, and this says so.
        warnings.filterwarnings("ignore", message="The mean of the target is beyond")
        yield Path(name)


def labelled(classes: int = 2) -> tuple[Any, Any]:
    """Return a small table with labels."""
    X = np.random.default_rng(0).normal(size=(8, 2))
    ranks = np.argsort(np.argsort(X[:, 0])) * classes // len(X)
    return X, np.array(["maybe", "no", "yes"])[-classes:][ranks]


class Kind(NamedTuple):
    """A kind of model file: how it is opened, what its model answers, and its contents."""

    name: str
    opened: Callable[[Path], Any]
    answer: Callable[[Any], Any]
    header: dict[str, Any]
    arrays: dict[str, Any]


def _asked(model: Any) -> Any:
    """Return probabilities, or means and standard deviations, of two rows."""
    X = np.array([[0.0, 0.0], [1.0, -1.0]])
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    found = np.stack(model.predict(X, return_std=True), axis=1)
    # Of the exponential of a latent value both can be infinite, and a warning says so.
    gaussian = getattr(model, "likelihood", "gaussian") == "gaussian"
    return found if gaussian else np.where(np.isposinf(found), 0.0, found)


def _table(rows: int = 12) -> Table:
    X = np.random.default_rng(1).normal(size=rows)
    made = {
        "a": X,
        "b": ["u", "v", "w"] * (rows // 3),
        "d": pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 1, rows), eager=True),
    }
    made |= {"t": np.where(X > 0.0, "yes", "no"), "q": X**2}
    return Table(pl.DataFrame(made), "made")


def _asked_table(model: Any) -> Any:
    """Return the numbers of a table's answers."""
    found = model.predict(_table(3))
    assert found["prediction"].null_count() == 0, found
    return found.select(pl.col(pl.Float64)).to_numpy()


def _writers(path: Path) -> Iterator[tuple[Callable[[], Any], str, Callable[[Path], Any], Any]]:
    """Yield how a file of each kind is written, its name, how it is opened and what it is asked."""
    (X, two), (_, three) = labelled(), labelled(3)
    options: dict[str, Any] = {"optimizer": None}
    several = [{"multi_class": "multinomial"}, {"multi_class": "one_vs_rest"}]
    several += [{"multi_class": "multinomial", "likelihood": "logit", "inference": "laplace"}]
    several += [{"likelihood": "ordinal"}, {"multi_class": "multinomial", "n_inducing": 3}]
    batch: list[Any] = [
        GaussianProcessClassifier(RBF(1.0), **options, **more).fit(X, y)
        for more, y in [({}, two), ({"n_inducing": 3}, two), *((more, three) for more in several)]
    ]
    batch += [
        GaussianProcessRegressor(RBF(1.0), alpha=0.1, **options, **more).fit(X, np.exp(X[:, 1]))
        for more in ({"normalize_y": True}, {"n_inducing": 3}, {"mean": "linear"})
    ]
    batch += [
        GaussianProcessRegressor(RBF(1.0), likelihood="gamma", **options).fit(X, X[:, 0] ** 2)
    ]
    for model in batch:
        yield (lambda m=model: save(m, path)), "fitted estimator", load, _asked
    streams: list[Any] = [
        OnlineGaussianProcessClassifier(RBF(1.0), budget=4).fit(X, two),
        OnlineGaussianProcessClassifier(RBF(1.0), warmup=50).partial_fit(
            X, three, np.unique(three)
        ),
        OnlineGaussianProcessRegressor(RBF(1.0), budget=4).fit(X, X[:, 0]),
        OnlineGaussianProcessRegressor(RBF(1.0), warmup=50).partial_fit(X, X[:, 0]),
    ]
    for stream in streams:
        yield (lambda m=stream: m.save(path)), type(stream).__name__, type(stream).load, _asked
    for target in ("t", "b", "q"):
        data, settings = prepare(_table(), target), Settings("rbf")
        fitted, _ = fit_model(data, settings)
        made = (path, data, fitted, settings)
        yield (lambda made=made: save_model(*made)), "table model", load_model, _asked_table


@cache
def kinds() -> tuple[Kind, ...]:
    """Return a file of each kind."""
    found = []
    with new_folder() as folder:
        path = folder / "model"
        for write, name, opened, answer in _writers(path):
            write()
            found.append(Kind(name, opened, answer, *storage.read(path, name)))
    return tuple(found)


@cache
def bytes_of_kind(number: int) -> bytes:
    """Return the bytes of the file of this kind."""
    kind = kinds()[number]
    with new_folder() as folder:
        storage.write(folder / "model", kind.name, kind.header, kind.arrays)
        return (folder / "model").read_bytes()


def bytes_of(kind: Kind) -> bytes:
    """Return the bytes of a file of this kind."""
    return bytes_of_kind(next(k for k, other in enumerate(kinds()) if other is kind))


def _paths(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value inside a header."""
    yield here
    inside = list(value.items()) if isinstance(value, dict) else []
    inside += list(enumerate(value)) if isinstance(value, list) else []
    for key, inner in inside:
        yield from _paths(inner, (*here, key))


@st.composite
def changed_files(draw: Any) -> tuple[Kind, dict[str, Any], dict[str, Any]]:
    """Draw a model file with one entry of its header, or one array, replaced by another."""
    kind = draw(st.sampled_from(kinds()))
    header, arrays = copy.deepcopy(kind.header), dict(kind.arrays)
    if draw(st.booleans()):
        *way, last = draw(st.sampled_from([path for path in _paths(header) if path]))
        place: Any = header
        for key in way:
            place = place[key]
        place[last] = draw(JSON)
    else:
        name = draw(st.sampled_from(sorted(arrays)))
        arrays[name] = _another(arrays[name], draw(_ARRAYS))
    return kind, header, arrays


def _another(array: Any, how: Any) -> Any:
    if isinstance(how, list):
        return np.resize(np.array(how, dtype=float), array.shape)
    if not isinstance(how, str):
        return how
    made: dict[str, Callable[[], Any]] = {
        "zeros": lambda: np.zeros_like(array),
        "nan": lambda: np.full(array.shape, np.nan),
        "short": lambda: array.ravel()[:-1],
        "turned": lambda: np.ascontiguousarray(array.T[..., None]),
        "text": lambda: array.astype(str),
        "huge": lambda: np.full(array.shape, 1e300),
        "negative": lambda: -np.abs(array) - 1.0,
        "tiny": lambda: np.full(array.shape, 1e-300),
        "doubled": lambda: 2.0 * array,
        "one": lambda: np.ones(()),
    }
    return made[how]()


def open_changed(drawn: tuple[Kind, dict[str, Any], dict[str, Any]]) -> None:
    """Write a changed file and open it."""
    kind, header, arrays = drawn
    with new_folder() as folder:
        path = folder / "model"
        try:
            storage.write(path, kind.name, header, arrays)
        except StorageError:
            return
        _open(path, kind)


def open_bytes(drawn: tuple[Kind, bytes]) -> None:
    """Open these bytes as a file of this kind."""
    kind, content = drawn
    with new_folder() as folder:
        (folder / "model").write_bytes(content)
        _open(folder / "model", kind)


def _open(path: Path, kind: Kind) -> None:
    """Open a model file: it answers with finite numbers, or is refused in one line."""
    try:
        model = kind.opened(path)
    except StorageError as error:
        refused(str(error).removeprefix(str(path)))
        return
    try:
        with np.errstate(all="ignore"):
            found = kind.answer(model)
    except ValueError as error:
        refused(str(error))
        return
    assert np.all(np.isfinite(found)), (found, path.read_bytes()[:2000])
