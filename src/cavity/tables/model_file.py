"""Fitted models on disk: the training rows, the tuned kernel, and how to encode a new table.

A file holds numbers and names, and opening it runs no code from it. The posterior is computed
again at the stored hyperparameters.
"""

import os
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import CompoundKernel

from cavity import GaussianProcessClassifier, GaussianProcessRegressor, __version__, storage
from cavity.arrays import Array
from cavity.estimators.classifier import start_from
from cavity.inference import METHODS
from cavity.likelihoods import REGISTRY
from cavity.storage.codecs import kernel_from_json, kernel_to_json
from cavity.tables.encoding import Encoder
from cavity.tables.errors import TableError
from cavity.tables.model import Settings
from cavity.tables.prepare import Prepared
from cavity.tables.read import Table
from cavity.tables.writing import writing

_KIND = "table model"
_BLOCK = 20_000
_TWO_SIDED_95 = float(ndtri(0.975))


@dataclass(frozen=True)
class Model:
    """A fitted estimator that takes tables."""

    estimator: Any
    encoder: Encoder
    task: str
    target: str
    classes: tuple[Any, ...]

    def predict(self, table: Table, advance: Callable[[int], None] | None = None) -> pl.DataFrame:
        """Return one row of predictions for each row of the table.

        The columns are ``prediction`` and a ``probability_of_...`` for each class; in regression
        ``prediction``, ``std``, and ``lower`` and ``upper``, the ends of the 95 % interval of a
        new observation. After each block ``advance`` is called with its number of rows.
        """
        X = self.encoder.transform(table.frame, table.source)
        answer = self._classes if self.task == "classification" else self._quantities
        parts = []
        for start in range(0, len(X), _BLOCK):
            parts.append(answer(X[start : start + _BLOCK]))
            if advance is not None:
                advance(len(parts[-1]))
        return pl.concat(parts)

    def _classes(self, X: Array) -> pl.DataFrame:
        proba = self.estimator.predict_proba(X)
        codes = np.argmax(proba, axis=1)
        names = [f"probability_of_{name}" for name in self.classes]
        predicted = pl.Series("prediction", [self.classes[code] for code in codes])
        return pl.DataFrame([predicted, *map(pl.Series, names, proba.T)])

    def _quantities(self, X: Array) -> pl.DataFrame:
        mean, std = self.estimator.predict(X, return_std=True)
        half = _TWO_SIDED_95 * std
        return pl.DataFrame(
            {"prediction": mean, "std": std, "lower": mean - half, "upper": mean + half}
        )


def save_model(
    path: str | os.PathLike[str], data: Prepared, estimator: Any, settings: Settings
) -> None:
    """Write a fitted model; if that fails, an older file at the same path stays as it was."""
    header = {
        "cavity": __version__,
        "task": data.task,
        "target": data.target,
        "classes": list(data.classes),
        "encoder": data.encoder.to_json(),
        "kernel": kernel_to_json(estimator.kernel_),
        "settings": asdict(settings),
        "notes": data.notes,
    }
    with writing(path):
        storage.write(path, _KIND, header, {"X": data.X, "y": data.y})


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model that `save_model` wrote.

    A `TableError` says that the file cannot be opened, a `StorageError` that it is not a model
    file, or is damaged or inconsistent.
    """
    try:
        header, arrays = storage.read(path, _KIND)
    except OSError as error:
        raise TableError(os.fspath(path), f"cannot be opened: {error.strerror}.") from error
    try:
        return _restored(header, arrays)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        message = f"{os.fspath(path)}: a damaged model file of cavity ({error})"
        raise storage.StorageError(" ".join(message.split())) from error


def _restored(header: dict[str, Any], arrays: dict[str, Array]) -> Model:
    encoder = Encoder.from_json(header["encoder"])
    kernel = kernel_from_json(header["kernel"])
    X, y = arrays["X"], arrays["y"]
    classes = tuple(header["classes"])
    if X.ndim != 2 or X.shape != (len(y), len(encoder.feature_names)):
        raise ValueError(f"inputs of shape {X.shape} do not match the columns")
    if header["task"] == "classification":
        if sorted(np.unique(y)) != list(range(len(classes))):
            raise ValueError("the labels do not match the classes")
        estimator = _classifier(kernel, header["settings"])
    elif header["task"] == "regression":
        estimator = GaussianProcessRegressor(kernel, normalize_y=True, optimizer=None)
    else:
        raise ValueError("its task is unknown")
    with warnings.catch_warnings():
        # It was reported when the model was fitted.
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(X, y)
    return Model(estimator, encoder, header["task"], str(header["target"]), classes)


def _classifier(kernel: Any, settings: dict[str, Any]) -> Any:
    if settings["inference"] not in METHODS or settings["likelihood"] not in REGISTRY:
        raise ValueError("its inference or likelihood is unknown")
    parts = kernel.kernels if isinstance(kernel, CompoundKernel) else [kernel]
    estimator = GaussianProcessClassifier(
        parts[0],
        optimizer=None,
        warm_start=True,
        inference=settings["inference"],
        likelihood=settings["likelihood"],
    )
    return start_from(estimator, parts)
