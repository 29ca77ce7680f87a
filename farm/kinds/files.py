"""Model files: what comes back predicts the same, and damage is refused in one line."""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.estimators import load, save
from cavity.storage import StorageError
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
    for of, (model, y) in models.items():
        fitted, _ = ledger.run(of, lambda model=model, y=y: model.fit(X, y))
        if fitted is not None:
            _there_and_back(ledger, spec, of, fitted)


def _answer(model: Any, X: Any) -> Any:
    return getattr(model, "predict_proba" if hasattr(model, "classes_") else "predict")(X)


def _there_and_back(ledger: Ledger, spec: Spec, of: str, model: Any) -> None:
    new = inputs_of(spec, _NEW, 7)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        ledger.run(of, lambda: save(model, path), may_refuse=False)
        again, _ = ledger.run(of, lambda: load(path), may_refuse=False)
        if again is None:
            return
        ledger.counts["files"] += 1
        found, truth = _answer(again, new), _answer(model, new)
        size = 1.0 + float(np.max(np.abs(truth)))
        ledger.near("comes back", of, found, truth, 1e-9 * size, 1e-9)
        _damage(ledger, spec, of, path, new, found)
        ledger.require(os.listdir(folder) == ["model"], "litter", of, os.listdir(folder))


def _damage(ledger: Ledger, spec: Spec, of: str, path: Path, new: Any, truth: Any) -> None:
    """Flip a bit or cut the end off: that is refused in one line, or does no harm."""
    rng, whole = rng_of(spec, 11), path.read_bytes()
    for turn in range(_DAMAGED):
        changed = bytearray(whole)
        if turn % 3:
            changed[int(rng.integers(len(whole)))] ^= 1 << int(rng.integers(8))
        else:
            del changed[int(rng.integers(len(whole))) :]
        path.write_bytes(bytes(changed))
        ledger.counts["damaged files"] += 1
        found, _ = ledger.run(of, lambda: _opened(path))
        if found is not None:
            ledger.near("damage in silence", of, _answer(found, new), truth, 1e-12, 1e-12)


def _opened(path: Path) -> Any:
    try:
        return load(path)
    except StorageError as error:
        if "\n" in str(error):
            raise RuntimeError("a refusal of several lines") from error
        # The path is the reader's own; what counts is what follows it.
        raise StorageError(str(error).removeprefix(str(path))) from error
