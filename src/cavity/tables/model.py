"""Fitted models: from a kernel as text to an estimator, and to a file and back."""

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import kernels
from sklearn.gaussian_process.kernels import Kernel

from cavity import GaussianProcessClassifier, GaussianProcessRegressor, __version__, storage
from cavity.arrays import Array
from cavity.estimators.classifier import start_from
from cavity.estimators.stored import as_numbers, restored
from cavity.inference import METHODS
from cavity.likelihoods import REGISTRY
from cavity.storage.codecs import kernel_from_json
from cavity.tables.encoding import Category, Encoder, Number, numbers_of, ways_of
from cavity.tables.marks import ClassMarks, Marks, TargetMarks
from cavity.tables.notation import Notation, as_written, refuse_other_notation, with_written
from cavity.tables.output import TableError, near_miss, writing
from cavity.tables.prepare import Prepared
from cavity.tables.table import StoredTable, Table

_KIND = "table model"
_BLOCK = 20_000
_MOST_REFITTED = 3_000
"""Rows of an older file that are fitted again: as many as are exact by default."""

WORDS: dict[str, Callable[[int], Kernel]] = {
    "rbf": lambda d: kernels.RBF(1.0),
    "ard": lambda d: kernels.RBF(np.ones(d)),
    "matern12": lambda d: kernels.Matern(1.0, nu=0.5),
    "matern32": lambda d: kernels.Matern(1.0, nu=1.5),
    "matern52": lambda d: kernels.Matern(1.0, nu=2.5),
    "ard-matern12": lambda d: kernels.Matern(np.ones(d), nu=0.5),
    "ard-matern32": lambda d: kernels.Matern(np.ones(d), nu=1.5),
    "ard-matern52": lambda d: kernels.Matern(np.ones(d), nu=2.5),
    "rq": lambda d: kernels.RationalQuadratic(),
    "linear": lambda d: kernels.DotProduct(),
    "quadratic": lambda d: kernels.DotProduct() ** 2,
    "periodic": lambda d: kernels.ExpSineSquared(),
    "white": lambda d: kernels.WhiteKernel(),
}
"""For each word, the kernel on d inputs."""


def parse_kernel(text: str, n_features: int, *, noise: bool = False) -> Any:
    """Return the scikit-learn kernel that a text describes.

    Its words are joined by ``+`` and ``*``, of which ``*`` binds tighter; "auto" stays as it is:
    the estimators choose the kernel. Each term except "white" gets its own amplitude. With
    ``noise``, which regression needs, "white" is added unless the text has it.

    >>> parse_kernel("rbf + linear", 3)
    1**2 * RBF(length_scale=1) + 1**2 * DotProduct(sigma_0=1)
    >>> parse_kernel("ard", 2, noise=True)
    1**2 * RBF(length_scale=[1, 1]) + WhiteKernel(noise_level=1)
    """
    if text.strip().lower() == "auto":
        return "auto"
    terms = [[word.strip().lower() for word in term.split("*")] for term in text.split("+")]
    unknown = [word for term in terms for word in term if word not in WORDS]
    if unknown:
        raise ValueError(
            f"'{unknown[0]}' in kernel '{text}' is not a kernel: use auto, or a combination by "
            f"+ and * of {', '.join(WORDS)}."
        )
    if noise and ["white"] not in terms:
        terms.append(["white"])
    return reduce(add, (_term(term, n_features) for term in terms))


def _term(words: list[str], n_features: int) -> Kernel:
    if words == ["white"]:
        return kernels.WhiteKernel()
    return reduce(mul, (WORDS[word](n_features) for word in words), kernels.ConstantKernel(1.0))


@dataclass(frozen=True)
class Settings:
    """How to model the data.

    The kernel is what `parse_kernel` takes. Inference and likelihood are for classification;
    regression has Gaussian noise and is exact. ``restarts`` are additional starts of the tuning.
    ``inducing`` is the number of inducing points, or None for the estimators' own rule: none for
    small tables.
    """

    kernel: str = "auto"
    inference: str = "ep"
    likelihood: str = "probit"
    restarts: int = 0
    seed: int = 0
    inducing: int | None = None


def unfitted(data: Prepared, settings: Settings) -> Any:
    """Return the estimator for these data, not yet fitted."""
    is_regression = data.task == "regression"
    kernel = parse_kernel(settings.kernel, data.n_features, noise=is_regression)
    if is_regression:
        estimator: Any = GaussianProcessRegressor(kernel, normalize_y=True)
    else:
        estimator = GaussianProcessClassifier(kernel)
        estimator.set_params(inference=settings.inference, likelihood=settings.likelihood)
    return estimator.set_params(
        n_restarts_optimizer=settings.restarts,
        random_state=settings.seed,
        n_inducing=settings.inducing or "auto",
    )


def fit_model(data: Prepared, settings: Settings) -> tuple[Any, list[str]]:
    """Fit; return the estimator and its warnings."""
    estimator = unfitted(data, settings)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", ConvergenceWarning)
        estimator.fit(data.X, data.y)
    return estimator, [str(warning.message) for warning in caught]


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

    def used(self) -> dict[str, Sequence[Notation]]:
        """Return the columns of a table that have a meaning to the model.

        To each belong the notations that its values may have.
        """
        found = {column.name: ways_of(column) for column in self.encoder.columns}
        return found | {self.target: self.notation.alike() if self.notation else ()}

    def check(self, table: Table | StoredTable, scored: bool = False) -> None:
        """Raise an error if the table does not have what the model needs, and the target if scored.

        So it is known before the first prediction that there will be no error later.
        """
        self.encoder.check(table.schema, table.source)
        notations = {
            c.name: c.notation for c in self.encoder.columns if not isinstance(c, Category)
        }
        numbers = [column.name for column in self.encoder.columns if isinstance(column, Number)]
        if scored:
            self._check_target(table)
            numbers += [self.target] if self.task == "regression" else []
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
        if self.task == "classification":
            return ClassMarks(source, self.classes)
        return TargetMarks(source, self.target, level)

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
        carried = with_written(table, carry)
        names = dict.fromkeys([*columns, *carried, *([self.target] if marks else [])])
        first = 0
        for frame in table.batches(list(names), ""):
            if unseen is not None:
                unseen.update(self.encoder.unseen(frame))
            for start in range(0, frame.height, _BLOCK):
                part = frame[start : start + _BLOCK]
                found = self._estimates(self.encoder.transform(part, table.source, first + start))
                if marks is not None:
                    marks.add(part[self.target], found)
                yield pl.DataFrame([*as_written(part, carry), *self._columns(found, level)])
                advance(part.height)
            first += frame.height

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

    def _estimates(self, X: Array) -> Any:
        """Return log class probabilities, or means and standard deviations."""
        if self.task == "classification":
            return self.estimator.predict_log_proba(X)
        return self.estimator.predict(X, return_std=True)

    def answer_names(self) -> list[str]:
        """Return the names of the columns of an answer."""
        if self.task == "regression":
            return ["prediction", "std", "lower", "upper"]
        return ["prediction", *(f"probability_of_{name}" for name in self.classes)]

    def _columns(self, found: Any, level: float) -> list[pl.Series]:
        if self.task == "classification":
            codes = np.argmax(found, axis=1)
            parts = [[self.classes[code] for code in codes], *np.exp(found).T]
        else:
            mean, std = found
            half = float(ndtri(0.5 + 0.5 * level)) * std
            parts = [mean, std, mean - half, mean + half]
        return list(map(pl.Series, self.answer_names(), parts))


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
    }
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
    if header["task"] not in ("classification", "regression"):
        raise ValueError("its task is unknown")
    estimator: Any
    if "fit" not in header:
        # Written by a version that did not store the posterior.
        estimator = _fitted_again(header, arrays, len(encoder.feature_names))
    elif header["task"] == "classification":
        codes = np.arange(len(classes))
        estimator = restored(_classifier(None, header["settings"]), header, arrays, codes)
    else:
        empty = GaussianProcessRegressor(normalize_y=True, optimizer=None, inference="exact")
        estimator = restored(empty, header, arrays)
    if estimator.n_features_in_ != len(encoder.feature_names):
        raise ValueError("its functions do not take the inputs that its columns make")
    notation = Notation.from_json(header.get("notation"))
    return Model(estimator, encoder, header["task"], str(header["target"]), classes, notation)


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
        estimator = start_from(_classifier(parts[0], header["settings"]), parts)
    with warnings.catch_warnings():
        # It was reported when the model was fitted.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X, y)


def _classifier(kernel: Any, settings: dict[str, Any]) -> Any:
    names = {name: settings[name] for name in ("inference", "likelihood")}
    if names["inference"] not in METHODS or names["likelihood"] not in REGISTRY:
        raise ValueError("its inference or likelihood is unknown")
    return GaussianProcessClassifier(kernel, optimizer=None, warm_start=True, **names)
