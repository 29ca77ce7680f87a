"""How much the prediction of a single row depends on the training set that it comes from."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.resampling import Scores, mixtures
from cavity.resampling.labels import even_draws

_DRAWS = 256
"""Training sets: averages over them are known to one in a hundred."""


def instability_of(scores: Scores, averages: Sequence[Any]) -> Array:
    """Return the mean absolute deviation of each example's prediction over training sets.

    The prediction is the probability of the example's own class, or the expected target; it
    deviates from its mean over training sets.
    """
    found, share = zip(*_predictions(scores, averages), strict=True)
    values = np.stack(found)
    weight = np.stack(share)[:, None] / values.shape[1]
    centre = np.sum(weight * values, axis=(0, 1))
    return np.asarray(np.sum(weight * np.abs(values - centre), axis=(0, 1)))


def _predictions(scores: Scores, averages: Sequence[Any]) -> list[tuple[Array, Array]]:
    """Return predictions of shape (draws, n), and their shares, for each part of a mixture."""
    if averages[0].R.ndim > 1:
        # One model of all classes: its field has a direction less than there are classes.
        x = even_draws(averages[0].R.shape[1] - 1, _DRAWS)
        return [(_prediction(scores, [averages[0].fields(x)]), np.ones(len(averages[0].R)))]
    found = []
    for share, parts in mixtures(averages):
        x = even_draws(len(parts), _DRAWS)
        latent = [c.fields(x_c) for c, x_c in zip(parts, x.T, strict=True)]
        found.append((_prediction(scores, latent), share))
    return found


def _prediction(scores: Scores, latent: Sequence[Any]) -> Array:
    if scores.task == "regression":
        return scores.prediction(latent)
    return np.exp(-scores.losses(latent).log_loss)
