"""Predictions as a function of a table, some of whose columns are replaced."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import Kernel

from cavity.arrays import Array
from cavity.estimators.fitted import FittedModel, fitted_model
from cavity.estimators.validation import is_precomputed, is_table
from cavity.model_selection.pools import inputs_of, take_apart
from cavity.rows import draw_rows
from cavity.sites import Marginals

_DRAWN = 2000
"""Rows drawn from a table in blocks: more than any measure uses."""


@dataclass(frozen=True)
class Surface:
    """What fitted models predict for the rows of a table, and draws of it from their posterior.

    Several models, such as one for each of several kernels, count the same.
    """

    models: Sequence[FittedModel]
    inputs: Callable[[Any], Array]
    """From a table to the inputs of the kernel."""

    @property
    def has_classes(self) -> bool:
        """Whether predictions are class probabilities."""
        return self.models[0].coding is not None

    @property
    def is_linear(self) -> bool:
        """Whether averages of predictions are Gaussian, with known mean and variance."""
        return self.models[0].is_linear

    def predictions(self, table: Any) -> Array:
        """Return a column of class probabilities for each class, or of each target."""
        X = self.inputs(table)
        return np.asarray(np.mean([model.predictions(X) for model in self.models], axis=0))

    def draws(self, table: Any, count: int, rng: Any) -> Array:
        """Draw these for all rows jointly, of shape (count, rows, columns)."""
        X, parts = self.inputs(table), np.array_split(np.arange(count), len(self.models))
        each = zip(self.models, parts, strict=True)
        return np.concatenate([model.draws(X, len(part), rng) for model, part in each])

    def averages(self, tables: Iterable[Any]) -> Marginals:
        """Return mean and variance of a regressor's function, averaged over each table."""
        sets = [self.inputs(table) for table in tables]
        means, variances = zip(*(model.averages(sets) for model in self.models), strict=True)
        return Marginals(np.mean(means, axis=0), np.mean(variances, axis=0) + np.var(means, axis=0))


def surface_of(estimator: Any) -> Surface:
    """Return the predictions of a fitted estimator or pipeline."""
    model, before = take_apart(estimator, "Questions about inputs need")
    fitted, kernel = fitted_model(model), model.kernel
    if fitted is None:
        raise NotFittedError(f"This {type(model).__name__} is not fitted yet: call fit first.")
    if is_precomputed(kernel):
        raise ValueError(
            "With kernel='precomputed' there are covariances and no inputs to change: fit with a "
            "kernel object to learn which inputs matter."
        )
    if isinstance(kernel, Kernel) and not kernel.requires_vector_input:
        raise ValueError(
            f"{kernel} compares objects, which have no columns to change one by one: only a "
            "kernel on vectors can tell which inputs matter."
        )
    if fitted.coding is not None and not fitted.coding.has_proba:
        raise ValueError(
            "One-vs-one classification has no probabilities, on which the effect of an input is "
            "measured: use multi_class='one_vs_rest'."
        )
    return Surface([fitted], partial(inputs_of, model, before))


def checked_table(X: Any) -> Any:
    """Return a data frame as it is, and anything else as an array with two axes.

    Of a table in blocks these are some rows, drawn at random.
    """
    X = draw_rows(X, _DRAWN, 0) if is_table(X) else X
    table = X if hasattr(X, "iloc") else np.array(X)
    if table.ndim != 2 or len(table) < 2:
        raise ValueError(f"X must have two axes and at least two rows; its shape is {table.shape}.")
    # A column of whole numbers may be set to a value between them.
    return table.astype(float) if table is not X and table.dtype.kind in "iub" else table


def names_of(table: Any) -> list[str]:
    """Return the name of each column; x0, x1, ... for an array."""
    if hasattr(table, "iloc"):
        return [str(name) for name in table.columns]
    return [f"x{j}" for j in range(table.shape[1])]


def column_of(table: Any, place: int) -> Any:
    """Return the values of one column, of the column's own type."""
    return table.iloc[:, place].array if hasattr(table, "iloc") else table[:, place]


def replaced(table: Any, rows: Array, columns: Sequence[int], values: Sequence[Any]) -> Any:
    """Return some rows of a table, with new values in some columns."""
    if hasattr(table, "iloc"):
        found = table.iloc[rows].copy()
        for place, column in zip(columns, values, strict=True):
            found.isetitem(place, column)
        return found
    found = table[rows]
    for place, column in zip(columns, values, strict=True):
        found[:, place] = column
    return found
