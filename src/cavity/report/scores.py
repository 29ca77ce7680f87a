"""Predictions of rows that the model has not seen, and their scores."""

import math
import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from sklearn.base import clone, is_regressor
from sklearn.gaussian_process.kernels import ConstantKernel

from cavity import cross_val_tuned
from cavity.arrays import Array
from cavity.model_selection.leave_one_out import inputs_help, loo_class_losses
from cavity.model_selection.predictive import (
    Predictive,
    cross_val_predictive,
    left_out_predictive,
    new_predictive,
)
from cavity.resampling.scores import Losses, class_scores, target_scores
from cavity.tables.prepare import Prepared

FOLDS = 10
MANY = 20_000
"""Rows from which on ten further fits would take too long."""
Summary = dict[str, float]


class Unseen(NamedTuple):
    """Predictions of rows by models that have not seen them, and the losses at each row."""

    how: str
    """In words, how they were made."""
    y: Array
    losses: Losses
    proba: Array | None = None
    mean: Array = None
    std: Array = None
    predictive: Predictive | None = None
    """If the noise is not Gaussian: more about the predictions, whose spread is std."""
    guess: Predictive | None = None
    """If the noise is not Gaussian: predictions without inputs."""
    deviance: Array | None = None
    """The deviance of the predictions and of this guess, where it has a name."""

    @property
    def deviations(self) -> Array:
        """By how many standard deviations each target is off."""
        if self.predictive is not None:
            return self.predictive.z
        return np.asarray((self.y - self.mean) / self.std)

    def inside(self, level: float) -> Array:
        """Return how much of each target lies in the central interval of this probability."""
        if self.predictive is not None:
            return self.predictive.inside(level)
        return np.abs(self.deviations) <= ndtri(0.5 + level / 2)


def left_out_of(data: Prepared, fitted: Any) -> Unseen:
    """Return leave-one-out predictions or, where these cannot be trusted, those of ten folds.

    Leave-one-out accounts for the tuning to first order, which is enough if there are many rows;
    every fold is tuned again.
    """
    n = len(data.y)
    believable = n < 2 * FOLDS or n > MANY or fitted.loo_is_believable_
    how = "leave-one-out" if believable else f"{FOLDS}-fold cross-validation"
    if not is_gaussian(fitted):
        by_folds = partial(cross_val_predictive, X=data.X, offset=data.offset, cv=FOLDS)
        found = (left_out_predictive if believable else by_folds)(fitted, y=data.y)
        guess = left_out_predictive(without_inputs(data, fitted), data.y)
        return of_any(fitted, how, data.y, found, guess)
    if believable:
        if data.classes:
            return left_out_classes(how, data.y, fitted.loo_proba_)
        return of_targets(how, data.y, fitted.loo_mean_, fitted.loo_std_)
    folds = cross_val_tuned(fitted, data.X, data.y, cv=FOLDS, offset=data.offset)
    if data.classes:
        return left_out_classes(how, data.y, folds)
    return of_targets(how, data.y, *folds)


def held_out_of(data: Prepared, fitted: Any) -> Unseen | None:
    """Return predictions of the held-out rows, if there are any."""
    if not len(data.y_test):
        return None
    if data.classes:
        return of_classes("held-out rows", data.y_test, fitted.predict_proba(data.X_test))
    added = data.offset_test
    if is_gaussian(fitted):
        mean, std = fitted.predict(data.X_test, return_std=True, offset=added)
        return of_targets("held-out rows", data.y_test, mean, std)
    guess = without_inputs(data, fitted)
    found = new_predictive(fitted, data.X_test, data.y_test, added)
    nothing = new_predictive(guess, data.X_test[:, :1] * 0.0, data.y_test, added)
    return of_any(fitted, "held-out rows", data.y_test, found, nothing)


def left_out_classes(how: str, y: Array, proba: Array) -> Unseen:
    """Return class probabilities of training rows that were left out."""
    return Unseen(how, y, loo_class_losses(proba, y), proba)


def of_classes(how: str, y: Array, proba: Array) -> Unseen:
    """Return class probabilities of held-out rows."""
    with np.errstate(divide="ignore"):
        return Unseen(how, y, class_scores(np.log(proba), y), proba)


def of_targets(how: str, y: Array, mean: Array, std: Array) -> Unseen:
    """Return means and standard deviations of targets."""
    return Unseen(how, y, target_scores(mean, std**2, y), None, mean, std)


def of_any(fitted: Any, how: str, y: Array, found: Predictive, guess: Predictive) -> Unseen:
    """Return predictions of targets with any noise, beside those without inputs."""
    each = [fitted.likelihood_.deviance(y, mean) for mean in (found.mean, guess.mean)]
    deviance = None if any(part is None for part in each) else np.stack(each)
    return Unseen(how, y, found.losses(y), None, found.mean, found.spread, found, guess, deviance)


def is_gaussian(fitted: Any) -> bool:
    """Whether this is a classifier, or a regressor with Gaussian noise."""
    return not is_regressor(fitted) or bool(fitted.likelihood_.quadratic)


def without_inputs(data: Prepared, fitted: Any) -> Any:
    """Return the same model without inputs, fitted to the same targets.

    Its function is a constant, for which a single inducing point is exact.
    """
    constant = clone(fitted).set_params(kernel=ConstantKernel(1.0, "fixed"), n_inducing=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return constant.fit(np.zeros((len(data.y), 1)), data.y, offset=data.offset)


def verdict_of(left_out: Unseen) -> dict[str, Any]:
    """Return whether the inputs help, with the gain in log loss and its standard error."""
    classes = left_out.proba is not None
    guess = None if left_out.guess is None else -left_out.guess.log_prob
    losses = left_out.losses.log_loss
    return inputs_help(losses, left_out.y, classes=classes, guess=guess)._asdict()


def scores_of(unseen: Unseen, train: Array, *, ordered: bool = False) -> Summary:
    """Return the scores of predictions, and of a guess without inputs from the training targets.

    ``ordered`` says whether the classes are in an order.
    """
    if unseen.proba is None:
        return _of_targets(unseen, train)
    return _of_classes(unseen, train, ordered)


def _of_classes(unseen: Unseen, train: Array, ordered: bool) -> Summary:
    """Summarise scores; the baseline predicts the class frequencies of the training rows."""
    y, losses, shares = unseen.y, unseen.losses, np.bincount(train) / len(train)
    return {
        "rows": len(y),
        **_average("error", losses.error),
        **_average("log_loss", losses.log_loss),
        "brier": float(np.asarray(losses.brier).mean()),
        "baseline_error": float(np.mean(y != np.argmax(shares))),
        "baseline_log_loss": float(-np.mean(np.log(shares[y]))),
        **(_ranks(unseen.proba, y, shares) if ordered else {}),
    }


def _ranks(proba: Array, y: Array, shares: Array) -> Summary:
    """Return by how many ranks the middle of each prediction is off, and that of the shares."""
    middle, usual = (np.argmax(np.cumsum(p, axis=-1) >= 0.5, axis=-1) for p in (proba, shares))
    return {
        **_average("ranks_off", np.abs(middle - y)),
        "baseline_ranks_off": float(np.mean(np.abs(usual - y))),
    }


def _of_targets(unseen: Unseen, train: Array) -> Summary:
    """Summarise scores; the baseline predicts the training targets' mean and deviation."""
    y, losses = unseen.y, unseen.losses
    if unseen.guess is None:
        baseline = target_scores(train.mean(), train.var(), y)
    else:
        baseline = unseen.guess.losses(y)
    rmse = math.sqrt(losses.error.mean())
    return {
        "rows": len(y),
        "rmse": rmse,
        "rmse_se": standard_error(losses.error) / (2 * rmse) if rmse > 0.0 else math.nan,
        "mae": float(np.mean(np.sqrt(losses.error))),
        # A single row has no R².
        "r2": float(1.0 - losses.error.mean() / y.var()) if y.var() > 0.0 else math.nan,
        **_explained(unseen.deviance),
        **_average("log_loss", losses.log_loss),
        "baseline_rmse": math.sqrt(baseline.error.mean()),
        "baseline_mae": float(np.mean(np.sqrt(baseline.error))),
        "baseline_log_loss": float(baseline.log_loss.mean()),
    }


def _explained(deviance: Array | None) -> Summary:
    """Return D², the share of the deviance of a guess without inputs that is explained."""
    if deviance is None:
        return {}
    own, none = deviance.mean(axis=1)
    return {"d2": float(1.0 - own / none) if none > 0.0 else math.nan}


def _average(name: str, values: Array) -> Summary:
    return {name: float(values.mean()), f"{name}_se": standard_error(values)}


def standard_error(values: Array) -> float:
    """Return the standard error of a mean, or NaN of a single value."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
