"""Predictions of the training rows by models that have not seen them, and of held-out rows."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from sklearn.gaussian_process.kernels import ConstantKernel

from cavity import cross_val_tuned
from cavity.arrays import Array
from cavity.model_selection.leave_one_out import loo_class_losses
from cavity.model_selection.predictive import (
    Predictive,
    cross_val_predictive,
    left_out_predictive,
    new_predictive,
)
from cavity.resampling.scores import Losses, target_scores
from cavity.tables.fitting import fitted_as, unfitted_as
from cavity.tables.prepare import Prepared

_MANY = 20_000
"""Rows from which on ten further fits would take too long."""
_FOLDS = 10


class LeftOut(NamedTuple):
    """Predictions of rows by models that have not seen them.

    There are class probabilities, or mean and std; if the noise is not Gaussian, ``predictive`` has
    more, and std is its spread.
    """

    how: str
    """In words, how they were made."""
    proba: Array | None = None
    mean: Array = None
    std: Array = None
    predictive: Predictive | None = None

    @classmethod
    def of(cls, how: str, predictive: Predictive) -> "LeftOut":
        """Return those of targets with other than Gaussian noise."""
        return cls(how, None, predictive.mean, predictive.spread, predictive)

    def losses(self, y: Array) -> Losses:
        """Return error and log loss of each row."""
        if self.proba is not None:
            return loo_class_losses(self.proba, y)
        if self.predictive is not None:
            return self.predictive.losses(y)
        return target_scores(self.mean, self.std**2, y)

    def deviations(self, y: Array) -> Array:
        """Return by how many standard deviations each target is off."""
        if self.predictive is not None:
            return self.predictive.z
        return np.asarray((y - self.mean) / self.std)

    def inside(self, y: Array, level: float) -> Array:
        """Return how much of each target lies in the central interval of this probability."""
        if self.predictive is not None:
            return self.predictive.inside(level)
        return np.abs(self.deviations(y)) <= ndtri(0.5 + level / 2)


def has_gaussian_noise(data: Prepared) -> bool:
    """Whether the target is a quantity with Gaussian noise."""
    return data.task == "regression"


def left_out_of(data: Prepared, fitted: Any) -> LeftOut:
    """Return leave-one-out predictions or, where these cannot be trusted, those of ten folds.

    Leave-one-out accounts for the tuning to first order, which is enough if there are many rows;
    every fold is tuned again.
    """
    n = len(data.y)
    believable = n < 2 * _FOLDS or n > _MANY or fitted.loo_is_believable_
    how = "leave-one-out" if believable else f"{_FOLDS}-fold cross-validation"
    if not data.classes and not has_gaussian_noise(data):
        if believable:
            return LeftOut.of(how, left_out_predictive(fitted, data.y))
        found = cross_val_predictive(fitted, data.X, data.y, data.offset, _FOLDS)
        return LeftOut.of(how, found)
    if not believable:
        parts = cross_val_tuned(fitted, data.X, data.y, cv=_FOLDS, offset=data.offset)
        return LeftOut(how, parts) if data.classes else LeftOut(how, None, *parts)
    if data.classes:
        return LeftOut(how, fitted.loo_proba_)
    return LeftOut(how, None, fitted.loo_mean_, fitted.loo_std_)


def held_out_of(data: Prepared, fitted: Any) -> LeftOut | None:
    """Return predictions of the held-out rows, if there are any."""
    how, added = "held-out rows", data.offset_test
    if not len(data.y_test):
        return None
    if data.classes:
        return LeftOut(how, fitted.predict_proba(data.X_test))
    if has_gaussian_noise(data):
        return LeftOut(how, None, *fitted.predict(data.X_test, return_std=True, offset=added))
    return LeftOut.of(how, new_predictive(fitted, data.X_test, data.y_test, added))


def without_inputs(data: Prepared, fitted: Any) -> tuple[LeftOut, LeftOut | None] | None:
    """Return left-out and held-out predictions of the same model without inputs.

    Only where the noise is not Gaussian; else there are formulas.
    """
    if data.classes or has_gaussian_noise(data):
        return None
    constant = unfitted_as(fitted).set_params(kernel=ConstantKernel(1.0, "fixed"))
    model, _ = fitted_as(data, constant)
    return left_out_of(data, model), held_out_of(data, model)
