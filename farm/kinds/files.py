"""Model files: what comes back predicts the same, and damage is refused in one line."""

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.estimators import load, save
from cavity.storage import StorageError
from cavity.tables.model import Settings, fit_model, load_model, save_model
from cavity.tables.prepare import prepare
from cavity.tables.table import Table
from farm.draw import Spec, inputs_of, kernel_of, labels_of, rng_of, targets_of
from farm.ledger import Ledger

_NEW = 5
_DAMAGED = 12


def check(ledger: Ledger, spec: Spec) -> None:
    """Save and open models with and without inducing points; then damage the file."""
    X, kernel = inputs_of(spec), kernel_of(spec)
    few = int(rng_of(spec, 6).integers(1, len(X)))
    models = {
        "labels": (GaussianProcessClassifier(kernel, optimizer=None), labels_of(spec, X)),
        "classes": (GaussianProcessClassifier(kernel, optimizer=None), labels_of(spec, X, 3)),
        "numbers": (
            GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None, normalize_y=True),
            targets_of(spec, X),
        ),
        "points": (
            GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None, n_inducing=few),
            targets_of(spec, X),
        ),
    }
    new = inputs_of(spec, _NEW, 7)
    for of, (model, y) in models.items():
        fitted, _ = ledger.run(of, lambda model=model, y=y: model.fit(X, y))
        if fitted is not None:
            _there_and_back(ledger, spec, Filed(of, fitted, save, load, partial(_answer, X=new)))
    for of, y in {"table of labels": labels_of(spec, X, 3), "table": targets_of(spec, X)}.items():
        filed, _ = ledger.run(of, lambda of=of, y=y: _of_table(of, X, y, new))
        if filed is not None:
            _there_and_back(ledger, spec, filed)


class Filed(NamedTuple):
    """A fitted model, how it is written and opened, and what it answers."""

    of: str
    model: Any
    write: Callable[[Any, Path], Any]
    opened: Callable[[Path], Any]
    answer: Callable[[Any], Any]


def _answer(model: Any, X: Any) -> Any:
    return getattr(model, "predict_proba" if hasattr(model, "classes_") else "predict")(X)


def _table(X: Any, **more: Any) -> Table:
    columns = {f"x{k}": x for k, x in enumerate(X.T)}
    return Table(pl.DataFrame(columns | more), "made")


def _of_table(of: str, X: Any, y: Any, new: Any) -> Filed:
    """Return the model of a table, as the command fits it."""
    settings = Settings("rbf")
    is_class = "labels" in of
    target = [f"c{code}" for code in y] if is_class else y
    data = prepare(_table(X, t=target), "t", task="classification" if is_class else "regression")
    fitted, _ = fit_model(data, settings)

    def write(model: Any, path: Path) -> None:
        save_model(path, data, model, settings)

    # The rows of the estimator, as the encoder of the training rows makes them.
    encoded = data.encoder.transform(_table(new).frame, "made")
    return Filed(of, fitted, write, load_model, lambda m: _asked(m, new, encoded))


def _asked(model: Any, new: Any, encoded: Any) -> Any:
    if not hasattr(model, "encoder"):
        return _answer(model, encoded)
    found = model.predict(_table(new))
    return found[model.answer_names()[1:]].to_numpy() if model.classes else found["prediction"]


def _there_and_back(ledger: Ledger, spec: Spec, filed: Filed) -> None:
    of, model = filed.of, filed.model
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        ledger.run(of, lambda: filed.write(model, path), may_refuse=False)
        again, _ = ledger.run(of, lambda: filed.opened(path), may_refuse=False)
        if again is None:
            return
        ledger.counts["files"] += 1
        found, truth = filed.answer(again), filed.answer(model)
        size = 1.0 + float(np.max(np.abs(truth)))
        ledger.near("comes back", of, found, truth, 1e-9 * size, 1e-9)
        _damage(ledger, spec, filed, path, found)
        ledger.require(os.listdir(folder) == ["model"], "litter", of, os.listdir(folder))


def _damage(ledger: Ledger, spec: Spec, filed: Filed, path: Path, truth: Any) -> None:
    """Flip a bit or cut the end off: that is refused in one line, or does no harm."""
    of, rng, whole = filed.of, rng_of(spec, 11), path.read_bytes()
    for turn in range(_DAMAGED):
        changed = bytearray(whole)
        if turn % 3:
            changed[int(rng.integers(len(whole)))] ^= 1 << int(rng.integers(8))
        else:
            del changed[int(rng.integers(len(whole))) :]
        path.write_bytes(bytes(changed))
        ledger.counts["damaged files"] += 1
        found, _ = ledger.run(of, lambda: _opened(filed, path))
        if found is not None:
            ledger.near("damage in silence", of, filed.answer(found), truth, 1e-12, 1e-12)


def _opened(filed: Filed, path: Path) -> Any:
    try:
        return filed.opened(path)
    except StorageError as error:
        if "\n" in str(error):
            raise RuntimeError("a refusal of several lines") from error
        # The path is the reader's own; what counts is what follows it.
        raise StorageError(str(error).removeprefix(str(path))) from error
