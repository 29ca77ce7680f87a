"""Fitted models that take tables, and their files."""

import math
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import kernels

from cavity import GaussianProcessClassifier, GaussianProcessRegressor, __version__, storage
from cavity.arrays import Array
from cavity.estimators.answers import new_log_prob
from cavity.estimators.classifier import start_from
from cavity.estimators.fitted import fitted_model
from cavity.estimators.stored import as_numbers, restored
from cavity.inference import METHODS
from cavity.likelihoods import REGISTRY
from cavity.storage.codecs import kernel_from_json
from cavity.tables.encoding import Category, Encoder, Number, numbers_of, ways_of
from cavity.tables.fitting import (
    WORDS,
    Settings,
    fit_model,
    likelihood_of,
    offset_of,
    parse_kernel,
    unfitted,
)
from cavity.tables.marks import ClassMarks, Marks, ShapedMarks, ShapedTargets, TargetMarks
from cavity.tables.notation import Notation, as_written, refuse_other_notation, with_written
from cavity.tables.offsets import Offset
from cavity.tables.output import TableError, near_miss, writing
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
"""Rows of an older file that are fitted again: as many as are exact by default, and with a function
for each of several classes, fewer."""


@dataclass(frozen=True)
class Model:
    """A fitted estimator that takes tables."""

    estimator: Any
    encoder: Encoder
    task: str
    target: str
    classes: tuple[Any, ...]
    notation: Notation | None = None
    """How the target's values were written."""
    offset: Offset | None = None

    def used(self) -> dict[str, Sequence[Notation]]:
        """Return the columns of a table that have a meaning to the model.

        To each belong the notations that its values may have.
        """
        found = {column.name: ways_of(column) for column in self.encoder.columns}
        found |= {self.offset.column: ()} if self.offset else {}
        return found | {self.target: self.notation.alike() if self.notation else ()}

    def check(self, table: Table | StoredTable, scored: bool = False) -> None:
        """Raise an error if the table does not have what the model needs, and the target if scored.

        So it is known before the first prediction that there will be no error later.
        """
        self.encoder.check(table.schema, table.source)
        notations = {
            c.name: c.notation for c in self.encoder.columns if not isinstance(c, Category)
        }
        if self.offset is not None:
            self.offset.of_column(table)
        numbers = [column.name for column in self.encoder.columns if isinstance(column, Number)]
        if scored:
            self._check_target(table)
            numbers += [] if self.classes else [self.target]
            notations |= {self.target: self.notation}
        for name, notation in notations.items():
            refuse_other_notation(table, name, notation)
        for name in numbers:
            dtype = table.schema[name]
            if not (dtype.is_numeric() or dtype == pl.Boolean):
                first = 0
                for frame in table.batches([name], f"checking column {name}"):
                    numbers_of(frame[name], table.source, first)
                    first += frame.height

    def _check_target(self, table: Table | StoredTable) -> None:
        if self.target not in table.schema:
            near = near_miss(self.target, table.schema) or "."
            problem = f"there is no such column to score the predictions by{near}"
            raise TableError(table.source, problem, column=self.target)

    def marks(self, source: str, level: float = 0.95) -> Marks:
        """Return what scores the predictions of a table."""
        if self.classes:
            return ClassMarks(source, self.classes)
        kind = TargetMarks if self.task == "regression" else ShapedMarks
        return kind(source, self.target, level)

    def answers(
        self,
        table: Table | StoredTable,
        advance: Callable[[int], None] = lambda n: None,
        unseen: Counter[str] | None = None,
        *,
        level: float = 0.95,
        carry: Sequence[str] = (),
        marks: Marks | None = None,
    ) -> Iterator[pl.DataFrame]:
        """Yield a row of predictions for each row of the table, in parts.

        The columns are those to ``carry`` from the table, then ``prediction`` and a
        ``probability_of_...`` for each class; in regression ``prediction``, ``std``, and ``lower``
        and ``upper``, the ends of the interval of a new observation at this level. After each part
        ``advance`` is called with its number of rows. ``unseen`` counts, for each column, the rows
        with a category that was not in the training rows; ``marks`` scores the predictions.
        """
        columns = [column.name for column in self.encoder.columns]
        columns += [self.offset.column] if self.offset else []
        carried = with_written(table, carry)
        names = dict.fromkeys([*columns, *carried, *([self.target] if marks else [])])
        first = 0
        for frame in table.batches(list(names), ""):
            if unseen is not None:
                unseen.update(self.encoder.unseen(frame))
            for start in range(0, frame.height, _BLOCK):
                part = frame[start : start + _BLOCK]
                X = self.encoder.transform(part, table.source, first + start)
                found = self._estimates(X, self._added(part, table.source, first + start), level)
                if marks is not None:
                    marks.add(part[self.target], found)
                yield pl.DataFrame([*as_written(part, carry), *self._columns(found, level)])
                advance(part.height)
            first += frame.height

    def _added(self, frame: pl.DataFrame, source: str, first: int) -> dict[str, Array]:
        """Return what is added to the latent function in these rows, as an option."""
        return offset_of(self.offset.of_frame(frame, source, first) if self.offset else None)

    def inputs(self, table: Table | StoredTable, unseen: Counter[str] | None = None) -> Array:
        """Return what the estimator takes of all rows; ``unseen`` is as in `answers`."""
        found, first = [], 0
        for frame in table.batches([column.name for column in self.encoder.columns], ""):
            if unseen is not None:
                unseen.update(self.encoder.unseen(frame))
            found.append(self.encoder.transform(frame, table.source, first))
            first += frame.height
        return np.concatenate(found)

    def predict(self, table: Table | StoredTable) -> pl.DataFrame:
        """Return the predictions for all rows at once."""
        self.check(table)
        return pl.concat(self.answers(table))

    def _estimates(self, X: Array, added: dict[str, Array], level: float) -> Any:
        """Return log class probabilities, means and standard deviations, or `ShapedTargets`."""
        if self.classes:
            return self.estimator.predict_log_proba(X, **added)
        moments = self.estimator.predict(X, return_std=True, **added)
        if self.task == "regression":
            return moments
        ends = (0.5 - 0.5 * level, 0.5 + 0.5 * level)
        ends = self.estimator.predict_quantiles(X, ends, **added).T

        def log_prob(y: Array, known: Array) -> Array:
            there = {name: values[known] for name, values in added.items()}
            return new_log_prob(fitted_model(self.estimator), X[known], y, **there)

        return ShapedTargets(moments[0], moments[1], ends[0], ends[1], log_prob)

    def answer_names(self) -> list[str]:
        """Return the names of the columns of an answer."""
        if not self.classes:
            return ["prediction", "std", "lower", "upper"]
        return ["prediction", *(f"probability_of_{name}" for name in self.classes)]

    def _columns(self, found: Any, level: float) -> list[pl.Series]:
        if self.classes:
            codes = np.argmax(found, axis=1)
            parts = [[self.classes[code] for code in codes], *np.exp(found).T]
        elif self.task == "regression":
            mean, std = found
            half = float(ndtri(0.5 + 0.5 * level)) * std
            parts = [mean, std, mean - half, mean + half]
        else:
            # A Student t of two degrees of freedom or fewer has no variance.
            std = pl.Series(found.std).replace(math.inf, None)
            parts = [found.mean, std, found.low, found.high]
        return [
            part.rename(name) if isinstance(part, pl.Series) else pl.Series(name, part)
            for name, part in zip(self.answer_names(), parts, strict=True)
        ]


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
        "notation": data.notation,
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
    with storage.refusing(path):
        return _restored(header, arrays)


def _restored(header: dict[str, Any], arrays: dict[str, Array]) -> Model:
    encoder, task = Encoder.from_json(header["encoder"]), header["task"]
    if task not in TASKS:
        raise ValueError("its task is unknown")
    if task in WITH_CLASSES:
        storage.check_classes(header["classes"])
    if (len(header["classes"]) > 1) != (task in WITH_CLASSES):
        raise ValueError("its classes are not those of its task")
    classes = tuple(header["classes"])
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
    added, notation = _offset(header.get("offset")), Notation.from_json(header.get("notation"))
    target = storage.stored_text(header["target"])
    return Model(estimator, encoder, task, target, classes, notation, added)


def _offset(found: Any) -> Offset | None:
    if found is None:
        return None
    return Offset(storage.stored_text(found["column"]), bool(found["is_exposure"]))


def _fitted_again(header: dict[str, Any], arrays: dict[str, Array], n_features: int) -> Any:
    kernel, X, y = kernel_from_json(header["kernel"]), arrays["X"], arrays["y"]
    if header["task"] not in ("classification", "regression"):
        raise ValueError("it has no posterior, and its task is not one of earlier versions")
    # The time goes with the cube of the rows, once for each function; two classes have one.
    functions = len(header["classes"]) if len(header["classes"]) > 2 else 1
    most = int(_MOST_REFITTED / functions ** (1.0 / 3.0))
    if len(X) > most:
        raise ValueError(
            f"an earlier version wrote its {len(X):,} rows without a posterior, and more than "
            f"{most:,} would take long to fit again: run cavity fit"
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
