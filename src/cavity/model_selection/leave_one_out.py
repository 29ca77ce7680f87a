"""Scores of the rows that a fit leaves out, and whether the inputs help to predict them."""

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student
from sklearn.base import is_classifier

from cavity.arrays import Array
from cavity.estimators.fitted import fitted_model
from cavity.resampling.scores import Losses, class_scores, target_scores

_ENOUGH = 2.0
"""Standard errors by which a gain must exceed zero."""


class Verdict(NamedTuple):
    """Whether the inputs help to predict rows that were left out."""

    helps: bool
    gain: float
    """Mean log loss without inputs minus that with them."""
    standard_error: float


def loo_losses(model: Any, y: Array) -> Losses:
    """Return a fitted estimator's leave-one-out error and log loss at each row.

    A classifier that predicts the same for all rows of a class has nothing but the classes' shares
    to go by. Leaving a row out shifts them against its own class, by 1/n: where they are nearly
    equal, every row would be wrong. Its errors are those of the most common class instead.

    Parameters
    ----------
    model : GaussianProcessClassifier or GaussianProcessRegressor
    y : array of shape (n,)
        The targets that it was fitted to.
    """
    if is_classifier(model):
        return loo_class_losses(model.loo_proba_, np.searchsorted(model.classes_, y))
    if fitted_model(model).is_linear:
        return target_scores(model.loo_mean_, model.loo_std_**2, y)
    return Losses((model.loo_mean_ - y) ** 2, -model.loo_log_prob_)


def loo_class_losses(proba: Array, codes: Array) -> Losses:
    """Return the scores of left-out rows' class probabilities."""
    with np.errstate(divide="ignore"):
        losses = class_scores(np.log(proba), codes)
    counts = np.bincount(codes, minlength=proba.shape[1])
    ranges = [np.ptp(proba[codes == k], axis=0) for k in np.flatnonzero(counts)]
    if np.max(ranges) > 1.0 / len(codes):
        return losses
    most = counts == counts.max()
    return losses._replace(error=1.0 - most[codes] / np.sum(most))


def inputs_help(
    log_losses: Array, y: Array, *, classes: bool, guess: Array | None = None
) -> Verdict:
    """Compare leave-one-out log losses with those of the best guess without inputs, row by row.

    Parameters
    ----------
    log_losses : array of shape (n,)
        Leave-one-out log losses of a model, which count its tuning.
    y : array of shape (n,)
        Targets.
    classes : bool
        Whether they are classes.
    guess : array of shape (n,), optional
        Leave-one-out log losses without inputs; by default those of the classes' shares, or of a
        Gaussian.

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.model_selection import inputs_help
    >>> y = np.array([0, 1] * 20)
    >>> inputs_help(np.full(40, 0.1), y, classes=True).helps
    True
    """
    if guess is None:
        guess = _of_classes(y) if classes else _of_targets(y)
    gains = guess - log_losses
    gain, error = float(np.mean(gains)), float(np.std(gains, ddof=1) / np.sqrt(len(gains)))
    # Leaving a row out changes the shares of the classes by 1/n: a constant guess gains that much.
    return Verdict(gain > max(_ENOUGH * error, 1.0 / len(gains)), gain, error)


def _of_classes(y: Array) -> Array:
    """Return log losses of the other rows' shares: (count + 1)/(n + classes), without the row."""
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    return np.log(len(y) - 1.0 + len(counts)) - np.log(counts[codes])


def _of_targets(y: Array) -> Array:
    """Return negative log densities under Student's t of the other rows' mean and deviation."""
    n = len(y)
    if n < 4 or np.ptp(y) == 0.0:
        return np.full(n, -np.inf if n < 4 else 0.0)
    rest = (np.sum(y) - y) / (n - 1.0)
    square = (np.sum(y**2) - y**2) / (n - 1.0) - rest**2
    scale = np.sqrt(np.maximum(square, np.finfo(float).tiny) * n / (n - 2.0))
    return -student.logpdf(y, n - 2.0, loc=rest, scale=scale)
