"""Which targets of a fitted regressor's table are outliers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from cavity.arrays import Array, to_numpy
from cavity.estimators.answers import target_quantiles
from cavity.estimators.fitted import FittedModel
from cavity.likelihoods import StudentT
from cavity.model_selection.outliers import outliers
from cavity.model_selection.reasons import can_be_taken_apart, shares_of_targets, strongest
from cavity.model_selection.suspects import (
    Reason,
    Suspect,
    Suspects,
    check_positions,
    chosen_places,
    running_mean,
)


def suspects_of_targets(
    model: Any,
    fitted: FittedModel,
    precision: float | None,
    k: int | None,
    level: float,
    n_reasons: int,
) -> Suspects:
    """Return the suspects of a regressor with one target; see `find_suspects`."""
    if len(fitted.fits) > 1:
        raise ValueError("Suspects need one target; this model has several.")
    check_positions(fitted.rows.position)
    found = outliers(_errors(model, fitted))
    order = np.lexsort((-model.outlier_score_, -found.wrong))
    places = chosen_places(found.wrong[order], found.wrong[order] > 0.5, precision, k)
    chosen, y = order[places], _targets(fitted)
    precisions = running_mean(found.wrong[order])[places]
    columns = [
        chosen,
        *(part[chosen] for part in _scores(model, y)),
        found.wrong[chosen],
        precisions,
    ]
    reasons = _reasons(fitted, y, chosen, n_reasons)
    ends = map(tuple, _intervals(model, fitted, level)[chosen].tolist())
    lines = zip(*(values.tolist() for values in columns), reasons, ends, strict=True)
    rows = tuple(Suspect(*line) for line in lines)
    return Suspects(rows, found.count, found.interval(level), level, len(y), "Outliers")


def _scores(model: Any, y: Array) -> tuple[Array, ...]:
    """Return targets, their predictions, densities, doubts and squared errors."""
    mean = model.loo_mean_
    return y, mean, np.exp(model.loo_log_prob_), model.outlier_score_, (y - mean) ** 2


def _targets(fitted: FittedModel) -> Array:
    """Return the targets of the table in the user's units."""
    own = to_numpy(fitted.fits[0].targets.y)[fitted.rows.position]
    return np.asarray(own * fitted.scale + fitted.origin)


def _errors(model: Any, fitted: FittedModel) -> Array:
    """Return how far the targets are off, in standard deviations of what is not an outlier."""
    likelihood, [q] = fitted.likelihood, fitted.loo_latents()
    if isinstance(likelihood, StudentT):
        own = to_numpy(fitted.fits[0].targets.y)[fitted.rows.position]
        return np.asarray((own - q.mean) / np.sqrt(q.variance + likelihood.scale**2))
    return np.asarray(model.outlier_score_)


def _intervals(model: Any, fitted: FittedModel, level: float) -> Array:
    """Return the ends of central intervals of the targets, given all other rows."""
    tail = 0.5 * (1.0 - level)
    if fitted.is_linear:
        reach = -ndtri(tail) * model.loo_std_
        return np.stack([model.loo_mean_ - reach, model.loo_mean_ + reach], axis=1)
    return target_quantiles(fitted, fitted.loo_latents(), [tail, 1.0 - tail])


def _reasons(
    fitted: FittedModel, y: Array, chosen: Array, count: int
) -> Sequence[tuple[Reason, ...]]:
    """Return the rows from which most of each prediction comes, if they are known."""
    if not count or not len(chosen) or not can_be_taken_apart(fitted):
        return [()] * len(chosen)
    found, index = [], fitted.rows.index
    for some, shares in strongest(shares_of_targets(fitted, fitted.rows.position[chosen]), count):
        about = zip(index[some].tolist(), y[index[some]].tolist(), shares.tolist(), strict=True)
        found.append(tuple(Reason(*line) for line in about))
    return found
