"""Interrupts at any moment of a task: afterwards the object is the one before or the one after.

The interrupt comes at the k-th call of a Python function, so that every moment can be repeated.
"""

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    OnlineGaussianProcessClassifier,
    learning_curve,
)
from cavity.estimators import load, save

__all__ = ["TASKS", "Task", "interrupt", "moments"]


def interrupt(call: Callable[[], Any], k: int) -> tuple[bool, int]:
    """Interrupt a call at its k-th function; return whether it says so, and how many there were."""
    count = 0

    def watch(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        if event != "call":
            return
        count += 1
        if count == k:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(watch)
    try:
        call()
    except BaseException as error:
        # What was interrupted may say so in words of its own.
        if 0 < k <= count:
            return isinstance(error, KeyboardInterrupt), count
        raise
    finally:
        sys.setprofile(None)
    return False, count


class Task(NamedTuple):
    """An object, what is done to it, and what it says."""

    make: Callable[[Path], Any]
    """Makes the object anew, perhaps with files in a folder of its own."""
    act: Callable[[Any], Any]
    state: Callable[[Any], Any]


def _data(seed: int, d: int = 2) -> tuple[Any, Any]:
    X = np.random.default_rng(seed).normal(size=(25, d))
    return X, (X[:, 0] > 0).astype(int)


def _fitted(model: Any) -> Callable[[Path], Any]:
    return lambda _: model().fit(*_data(0))


def _answers(model: Any) -> Any:
    """Return what a fitted estimator is, as numbers."""
    X = _data(5, model.n_features_in_)[0]
    ask = "predict_proba" if hasattr(model, "classes_") else "predict"
    return model.n_features_in_, getattr(model, ask)(X), sorted(vars(model))


def _stream_answers(model: Any) -> Any:
    return model.n_seen_, model.prequential_log_loss_, model.predict_proba(_data(5)[0])


def _classifier() -> Any:
    return GaussianProcessClassifier(RBF(1.0), optimizer=None)


def _tuned() -> Any:
    return GaussianProcessClassifier(RBF(1.0))


def _regressor() -> Any:
    return GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None)


def _online() -> Any:
    return OnlineGaussianProcessClassifier(RBF(1.0), budget=8)


class Saved(NamedTuple):
    """A model, and a file that has another."""

    model: Any
    path: Path


def _saved(folder: Path) -> Saved:
    path = Path(tempfile.mkdtemp(dir=folder)) / "model"
    save(_classifier().fit(*_data(0)), path)
    return Saved(_classifier().fit(*_data(1)), path)


def _file_answers(saved: Saved) -> Any:
    names = sorted(path.name for path in saved.path.parent.iterdir())
    return names, load(saved.path).predict_proba(_data(5)[0])


TASKS = {
    "fit": Task(_fitted(_classifier), lambda m: m.fit(*_data(1, 3)), _answers),
    "tune": Task(_fitted(_tuned), lambda m: m.fit(*_data(1, 3)), _answers),
    "regress": Task(_fitted(_regressor), lambda m: m.fit(*_data(1, 3)), _answers),
    "stream": Task(_fitted(_online), lambda m: m.partial_fit(*_data(1)), _stream_answers),
    "restart": Task(_fitted(_online), lambda m: m.fit(*_data(1)), _stream_answers),
    "curve": Task(
        _fitted(_classifier),
        lambda m: learning_curve(m, *_data(0), train_sizes=[5, 25]).test_error,
        _answers,
    ),
    "save": Task(_saved, lambda s: save(s.model, s.path), _file_answers),
}


def moments(task: Task, count: int, seed: int = 0) -> dict[str, Any]:
    """Interrupt a task at random moments; count what it was afterwards."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore", ConvergenceWarning)
        place = Path(folder)
        before = task.state(task.make(place))
        after, calls, _ = _tried(task, place, 0)
        found: dict[str, Any] = {"moments": 0, "before": 0, "after": 0, "between": []}
        rng = np.random.default_rng(seed)
        for k in sorted(set(rng.integers(1, calls + 1, size=count).tolist())):
            state, _, _ = _tried(task, place, k)
            found["moments"] += 1
            if _same(state, before):
                found["before"] += 1
            elif _same(state, after):
                found["after"] += 1
            else:
                found["between"].append(k)
    return found


def _tried(task: Task, place: Path, k: int) -> tuple[Any, int, bool]:
    """Return the state after an interrupt at the k-th call, the calls, and whether it said so."""
    thing = task.make(place)
    told, calls = interrupt(lambda: task.act(thing), k)
    return task.state(thing), calls, told


def _same(one: Any, other: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
