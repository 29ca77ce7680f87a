"""Leave-one-out predictions that count the tuning.

Without row i the log evidence loses l_i(θ) = log p(y_i | other rows, θ), and its maximum moves by
Δ_i = −C ∇l_i to first order, with C the covariance of θ. The row's own cavity moves with it.
"""

from typing import NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.evidence.integrated import HyperPosterior
from cavity.sites import Marginals

_MOST = 0.8
"""A row holds at most this share of what is known of θ along its own direction."""
_FARTHEST = 2.0
"""Largest change of a log variance, and of a mean in standard deviations times ten."""
_CONVEX = -0.2
"""Below this curvature, in units of the prior's, the tuning has not ended at a maximum."""
_TOO_MUCH = 0.25
"""Share of the leave-one-out log loss that the correction may add."""


class Response(NamedTuple):
    """Cavities at the hyperparameters that tuning without each row would find."""

    cavities: list[Marginals]
    """Of each target."""
    leverage: Array
    """∇l_iᵀ C ∇l_i: how much log probability each row gains by taking part in the tuning."""
    believable: bool
    """Whether the first order can be trusted."""
    scatter: list[Array]
    """Squared change of each target's cavity means along each direction of θ, in units of the
    prior, of shape (n, k)."""
    information: Array
    """What the rows tell about these directions, in units of the prior, of shape (k,)."""


def respond(posterior: HyperPosterior) -> Response:
    """Move each cavity to where it would be had its row not taken part in the tuning.

    Without the row, θ is also less certain: its curvature loses about ∇l_i ∇l_iᵀ, which lengthens
    the move by 1/(1 − leverage).
    """
    fits, slopes = posterior.evaluation.fits, posterior.slopes
    gradients = [_gradient(fit, J) for fit, J in zip(fits, slopes, strict=True)]
    g, C = np.sum(gradients, axis=0), posterior.covariance()
    leverage = np.einsum("ij,jk,ik->i", g, C, g)
    move = -(g @ C) / (1.0 - np.minimum(leverage, _MOST))[:, None]
    information, vectors = posterior.whitened
    along = posterior.factor @ vectors
    cavities, scatter = [], []
    for fit, J in zip(fits, slopes, strict=True):
        c = fit.cavities
        reach = 10.0 * np.sqrt(c.variance) * _FARTHEST
        step = np.clip(np.sum(J.mean * move, axis=1), -reach, reach)
        grow = np.clip(np.sum(J.variance * move, axis=1), -_FARTHEST, _FARTHEST)
        cavities.append(Marginals(c.mean + step, c.variance * np.exp(grow)))
        scatter.append(_turned(J.mean @ along, c.mean) ** 2)
    believable = _believable(posterior, leverage)
    return Response(cavities, leverage, believable, scatter, np.maximum(information, 0.0))


def _turned(changes: Array, mean: Array) -> Array:
    """Return changes of predictions without the part that makes all of them larger or smaller.

    That part leaves every decision as it is, and a change of the amplitude is nothing else.
    """
    size = float(mean @ mean)
    return changes - np.outer(mean, mean @ changes) / size if size > 0.0 else changes


def _gradient(fit: object, J: Marginals) -> Array:
    """Return ∇l_i of each row in the posterior's coordinates."""
    rows, c = fit.problem.rows, fit.cavities  # type: ignore[attr-defined]
    moments = fit.problem.likelihood.tilted(rows.y, c)  # type: ignore[attr-defined]
    # d log Z/d log v = ½ v (d2 + d1²)
    in_log_v = 0.5 * c.variance * (moments.d2 + moments.d1**2)
    share = np.minimum(rows.weight, 1.0)
    slope = moments.d1[:, None] * J.mean + in_log_v[:, None] * J.variance
    return share[:, None] * slope


def _believable(posterior: HyperPosterior, leverage: Array) -> bool:
    """Whether tuning ended near a quadratic maximum that no row decides by itself."""
    values, _ = posterior.whitened
    loss = -sum(float(np.sum(fit.loo_log_prob())) for fit in posterior.evaluation.fits)
    at_maximum = not len(values) or float(values[0]) > _CONVEX
    return at_maximum and float(np.sum(leverage)) <= _TOO_MUCH * max(abs(loss), 1.0)
