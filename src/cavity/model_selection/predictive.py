"""What a regressor says about targets that it has not seen, with any likelihood."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from cavity.arrays import Array
from cavity.estimators.answers import loo_log_prob, new_log_prob, target_moments
from cavity.estimators.fitted import fitted_model
from cavity.likelihoods import cumulative, quantiles, surprise
from cavity.model_selection.cross_validation import folds_asked
from cavity.resampling.scores import Losses
from cavity.sites import Marginals

_ONE_SIGMA = (float(ndtr(-1.0)), float(ndtr(1.0)))


class Predictive(NamedTuple):
    """Predictions of targets, and how well these fit them: a value for each row.

    ``spread`` is the standard deviation or, if the likelihood has heavy tails, half the width of
    the central 68 % interval. ``z`` is `cavity.likelihoods.surprise` with a sign.
    """

    mean: Array
    spread: Array
    log_prob: Array
    below: Array
    """P(Y < y)."""
    upto: Array
    """P(Y ≤ y): the same, unless single values have a probability."""
    z: Array

    def losses(self, y: Array) -> Losses:
        """Return squared errors and negative log densities."""
        return Losses((self.mean - y) ** 2, -self.log_prob)

    def inside(self, level: float) -> Array:
        """Return how much of each target lies in the central interval of this probability.

        A count whose probability lies partly inside is in the interval with that part of it, so
        that the average is the level if the predictions are right (Czado et al. 2009).
        """
        low, high = 0.5 - 0.5 * level, 0.5 + 0.5 * level
        width = self.upto - self.below
        part = np.minimum(self.upto, high) - np.maximum(self.below, low)
        whole = ((self.below >= low) & (self.upto <= high)).astype(float)
        safe = np.where(width > 0.0, width, 1.0)
        return np.where(width > 0.0, np.clip(part / safe, 0.0, 1.0), whole)


def left_out_predictive(estimator: Any, y: Array) -> Predictive:
    """Return leave-one-out predictions of the targets that a regressor was fitted to."""
    model = fitted_model(estimator)
    [q] = model.loo_latents(tuned_without=True)
    return _predictive(model, q, y, loo_log_prob(model))


def new_predictive(estimator: Any, X: Array, y: Array, offset: Any = None) -> Predictive:
    """Return a fitted regressor's predictions of new targets."""
    model = fitted_model(estimator)
    [q] = model.latents(X, None, offset)
    return _predictive(model, q, y, new_log_prob(model, X, y, offset))


def cross_val_predictive(
    estimator: Any, X: Array, y: Array, offset: Any = None, cv: int = 10
) -> Predictive:
    """Return predictions of each target by a model tuned and fitted without the row's fold."""
    return Predictive(*folds_asked(estimator, X, y, _asked, cv=cv, offset=offset).T)


def _asked(model: Any, X: Array, y: Array, offset: dict[str, Any], every: Array) -> Array:
    return np.column_stack(new_predictive(model, X, y, **offset))


def _predictive(model: Any, q: Marginals, y: Array, log_prob: Array) -> Predictive:
    likelihood, own = model.likelihood, (y - model.origin) / model.scale
    mean, spread = target_moments(model, [q])
    if not likelihood.concave:
        low, high = quantiles(likelihood, q, _ONE_SIGMA)
        spread = 0.5 * (high - low) * model.scale
    upto = cumulative(likelihood, own, q)
    atom = np.where(likelihood.has_mass(own), np.exp(log_prob), 0.0)
    below = np.maximum(upto - atom, 0.0)
    middle = 0.5 * (below + upto)
    z = np.where(middle < 0.5, -1.0, 1.0) * surprise(likelihood, own, q)
    return Predictive(mean, spread, log_prob, below, upto, z)
