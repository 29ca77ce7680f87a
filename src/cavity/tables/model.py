"""Fitted models that take tables, and their files."""

import math
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import kernels

from cavity import GaussianProcessClassifier, GaussianProcessRegressor, __version__, storage
from cavity.arrays import Array
from cavity.estimators.classifier import start_from
from cavity.estimators.fitted import fitted_model
from cavity.estimators.stored import as_numbers, restored
from cavity.inference import METHODS
from cavity.likelihoods import REGISTRY
from cavity.storage.codecs import kernel_from_json
from cavity.tables.encoding import Encoder, Number, numbers_of
from cavity.tables.fitting import (
    WORDS,
    Settings,
    fit_model,
    likelihood_of,
    offset_of,
    parse_kernel,
    unfitted,
)
from cavity.tables.offsets import Offset
from cavity.tables.output import TableError, writing
from cavity.tables.prepare import Prepared
from cavity.tables.table import StoredTable, Table
from cavity.tables.task import TASKS, WITH_CLASSES

__all__ = [
    "WORDS",
    "Model",
    "Settings",
    "fit_model",
    "load_model",
    "parse_kernel",
    "save_model",
    "unfitted",
]

_KIND = "table model"
_BLOCK = 20_000
_MOST_REFITTED = 3_000
"""Rows of an older file that are fitted again: as many as are exact by default."""
_ENDS = (0.025, 0.975)
_TWO_SIDED_95 = float(ndtri(_ENDS[1]))


@dataclass(frozen=True)
class Model:
    """A fitted estimator that takes tables."""

    estimator: Any
    encoder: Encoder
    task: str
    target: str
    classes: tuple[Any, ...]
    offset: Offset | None = None

    def check(self, table: Table | StoredTable) -> None:
        """Raise an error if the table does not have the columns that the model needs.

        So it is known before the first prediction that there will be no error later.
        """
        self.encoder.check(table.schema, table.source)
        if self.offset is not None:
            self.offset.of_column(table)
        for column in self.encoder.columns:
            dtype = table.schema[column.name]
            if isinstance(column, Number) and not (dtype.is_numeric() or dtype == pl.Boolean):
                first = 0
                for frame in table.batches([column.name], f"checking column {column.name}"):
                    numbers_of(frame[column.name], table.source, first)
                    first += frame.height

    def answers(
        self,
        table: Table | StoredTable,
        advance: Callable[[int], None] = lambda n: None,
        unseen: Counter[str] | None = None,
    ) -> Iterator[pl.DataFrame]:
        """Yield a row of predictions for each row of the table, in parts.

        The columns are ``prediction`` and a ``probability_of_...`` for each class; in regression
        ``prediction``, ``std``, and ``lower`` and ``upper``, the ends of the 95 % interval of a
        new observation (of counts and of quantities with outliers, its quantiles). After each part
        ``advance`` is called with its number of rows. ``unseen``
        counts, for each column, the rows with a category that was not in the training rows.
        """
        answer = self._classes if self.classes else self._quantities
        names = [column.name for column in self.encoder.columns]
        names += [self.offset.column] if self.offset else []
        first = 0
        for frame in table.batches(names, ""):
            if unseen is not None:
                unseen.update(self.encoder.unseen(frame))
            for start in range(0, frame.height, _BLOCK):
                part = frame[start : start + _BLOCK]
                X = self.encoder.transform(part, table.source)
                yield answer(X, self._added(part, table.source, first + start))
                advance(part.height)
            first += frame.height

    def _added(self, frame: pl.DataFrame, source: str, first: int) -> dict[str, Array]:
        """Return what is added to the latent function in these rows, as an option."""
        return offset_of(self.offset.of_frame(frame, source, first) if self.offset else None)

    def inputs(self, table: Table | StoredTable, unseen: Counter[str] | None = None) -> Array:
        """Return what the estimator takes of all rows; ``unseen`` is as in `answers`."""
        found = []
        for frame in table.batches([column.name for column in self.encoder.columns], ""):
            if unseen is not None:
                unseen.update(self.encoder.unseen(frame))
            found.append(self.encoder.transform(frame, table.source))
        return np.concatenate(found)

    def predict(self, table: Table | StoredTable) -> pl.DataFrame:
        """Return the predictions for all rows at once."""
        self.check(table)
        return pl.concat(self.answers(table))

    def _classes(self, X: Array, added: dict[str, Array]) -> pl.DataFrame:
        proba = self.estimator.predict_proba(X, **added)
        codes = np.argmax(proba, axis=1)
        names = [f"probability_of_{name}" for name in self.classes]
        predicted = pl.Series("prediction", [self.classes[code] for code in codes])
        return pl.DataFrame([predicted, *map(pl.Series, names, proba.T)])

    def _quantities(self, X: Array, added: dict[str, Array]) -> pl.DataFrame:
        mean, std = self.estimator.predict(X, return_std=True, **added)
        half = _TWO_SIDED_95 * std
        ends = {"lower": mean - half, "upper": mean + half}
        if self.task != "regression":
            found = self.estimator.predict_quantiles(X, _ENDS, **added)
            ends = dict(zip(ends, found.T, strict=True))
            # A Student t of two degrees of freedom or fewer has no variance.
            std = pl.Series(std).replace(math.inf, None)
        return pl.DataFrame({"prediction": mean, "std": std, **ends})


def save_model(
    path: str | os.PathLike[str], data: Prepared, estimator: Any, settings: Settings
) -> None:
    """Write a fitted model; if that fails, an older file at the same path stays as it was."""
    header = {
        "cavity": __version__,
        "task": data.task,
        "target": data.target,
        "classes": list(data.classes),
        "encoder": asdict(data.encoder),
        "settings": asdict(settings),
        "notes": data.notes,
        "offset": None if data.offset_from is None else asdict(data.offset_from),
        "inference": fitted_model(estimator).fits[0].method.name,
    }
    if data.classes:
        header["multi_class"] = estimator.multi_class
    fit, arrays = as_numbers(estimator)
    with writing(path):
        storage.write(path, _KIND, header | fit, arrays)


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
        message = f"{os.fspath(path)}: a damaged model file of cavity ({storage.short(error)})"
        raise storage.StorageError(message) from error


def _restored(header: dict[str, Any], arrays: dict[str, Array]) -> Model:
    encoder, classes = Encoder.from_json(header["encoder"]), tuple(header["classes"])
    task, offset = header["task"], header.get("offset")
    if task not in TASKS:
        raise ValueError("its task is unknown")
    estimator: Any
    if "fit" not in header:
        # Written by a version that did not store the posterior.
        estimator = _fitted_again(header, arrays, len(encoder.feature_names))
    elif task in WITH_CLASSES:
        codes = np.arange(len(classes))
        estimator = restored(_classifier(None, header), header, arrays, codes)
    else:
        how = str(header.get("inference", "exact"))
        empty = GaussianProcessRegressor(normalize_y=True, optimizer=None, inference=how)
        estimator = restored(empty, header, arrays)
    if estimator.n_features_in_ != len(encoder.feature_names):
        raise ValueError("its functions do not take the inputs that its columns make")
    added = None if offset is None else Offset(str(offset["column"]), bool(offset["is_exposure"]))
    return Model(estimator, encoder, task, str(header["target"]), classes, added)


def _fitted_again(header: dict[str, Any], arrays: dict[str, Array], n_features: int) -> Any:
    kernel, X, y = kernel_from_json(header["kernel"]), arrays["X"], arrays["y"]
    if len(X) > _MOST_REFITTED:
        raise ValueError(
            f"an earlier version wrote its {len(X):,} rows without a posterior, and more than "
            f"{_MOST_REFITTED:,} would take long to fit again: run cavity fit"
        )
    if X.ndim != 2 or X.shape != (len(y), n_features):
        raise ValueError(f"inputs of shape {X.shape} do not match the columns")
    estimator: Any = GaussianProcessRegressor(kernel, normalize_y=True, optimizer=None)
    if header["task"] == "classification":
        if sorted(np.unique(y)) != list(range(len(header["classes"]))):
            raise ValueError("the labels do not match the classes")
        parts = kernel.kernels if isinstance(kernel, kernels.CompoundKernel) else [kernel]
        estimator = start_from(_classifier(parts[0], header), parts)
    with warnings.catch_warnings():
        # It was reported when the model was fitted.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X, y)


def _classifier(kernel: Any, header: dict[str, Any]) -> Any:
    settings = header["settings"]
    given = Settings(inference=settings["inference"], likelihood=settings["likelihood"])
    name = likelihood_of(header["task"], given)
    if given.inference not in METHODS or name not in REGISTRY:
        raise ValueError("its inference or likelihood is unknown")
    # Files of earlier versions have a model of each class.
    split = str(header.get("multi_class", "one_vs_rest"))
    options: dict[str, Any] = {"likelihood": name, "multi_class": split}
    options |= {"inference": given.inference, "warm_start": True}
    return GaussianProcessClassifier(kernel, optimizer=None, **options)
