"""Leave-one-out predictions that count the tuning.

Without row i the log evidence loses l_i(θ) = log p(y_i | other rows, θ), and its maximum moves by
Δ_i = −C ∇l_i to first order, with C the covariance of θ. The row's own cavity moves with it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.evidence.integrated import HyperPosterior
from cavity.inference import Fit
from cavity.sites import Marginals

MOST = 0.8
"""A row holds at most this share of what is known of θ along its own directions."""
FARTHEST = 2.0
"""Largest change of a log variance, and of a mean in tens of standard deviations."""
_STEP, _TINY = 1e-3, 1e-300
_CONVEX = -0.2
"""Below this curvature, in units of the prior's, the tuning has not ended at a maximum."""
_TOO_MUCH, _TYPICAL_LOSS = 0.25, 0.2
"""Share of the leave-one-out log loss, or of a typical one, that the correction may add."""


class Response(NamedTuple):
    """Cavities at the hyperparameters that tuning without each row would find."""

    cavities: list[Any]
    """Of each target."""
    leverage: Array
    """∇l_iᵀ C ∇l_i: how much log probability each row gains by taking part in the tuning."""
    believable: bool
    """Whether the first order can be trusted."""
    scatter: list[Array]
    """Squared change of each target's cavity means along each direction of θ, in units of the
    prior, of shape (n, k); of class values the products (n, k, C, C)."""
    information: Array
    """What the rows tell about these directions, in units of the prior, of shape (k,)."""
    direct: Any = 0.0
    """How each row's log p(y_i) changes because the likelihood's parameters move."""


def respond(posterior: HyperPosterior) -> Response:
    """Move each cavity to where it would be had its row not taken part in the tuning.

    A row acts on θ through its cavity's mean and log variance, with slopes U in θ, and through the
    likelihood's own parameters: with a the slopes of log p(y_i) in the two and g its slope in
    these, ∇l_i = Uᵀa + g. Without the row, the precision of θ loses UᵀWU, with W the curvature of
    log p(y_i). With S = U C Uᵀ, mean and log variance move by −(I − S W)⁻¹ (S a + U C g).
    """
    fits, C = posterior.evaluation.fits, posterior.covariance()
    U = np.stack([part for J in posterior.slopes for part in J], axis=1)
    a, W = _slopes_of_all(fits)
    g = _own_slopes(posterior)
    S, UCg = np.einsum("nik,kl,njl->nij", U, C, U), np.einsum("nik,kl,nl->ni", U, C, g)
    leverage = np.einsum("ni,nij,nj->n", a, S, a) + 2.0 * np.einsum("ni,ni->n", a, UCg)
    leverage += np.einsum("nk,kl,nl->n", g, C, g)
    # No more than a share of what is known of θ is lost with one row.
    held = np.einsum("nij,nji->n", W, S)
    W = W * np.minimum(1.0, MOST / np.maximum(held, _TINY))[:, None, None]
    pull = np.einsum("nij,nj->ni", S, a) + UCg
    move = -np.linalg.solve(np.eye(W.shape[1]) - S @ W, pull[:, :, None])[:, :, 0]
    # What the likelihood's parameters, moved as θ is, change in log p(y_i) by themselves.
    direct = np.einsum("ni,nij,nj->n", UCg, W, move) - np.einsum("nk,kl,nl->n", g, C, g)
    direct -= np.einsum("ni,ni->n", a, UCg)
    cavities = [_moved(fit, move[:, 2 * k : 2 * k + 2]) for k, fit in enumerate(fits)]
    information, vectors = posterior.whitened
    along = posterior.factor @ vectors
    scatter = [
        turned(J.mean @ along, fit.cavities.mean) ** 2
        for fit, J in zip(fits, posterior.slopes, strict=True)
    ]
    loss = -sum(float(np.sum(fit.loo_log_prob())) for fit in fits)
    believable = is_believable(posterior, leverage, loss)
    known = np.maximum(information, 0.0)
    return Response(cavities, leverage, believable, scatter, known, direct)


def _own_slopes(posterior: HyperPosterior) -> Array:
    """Return the slopes of each row's log p(y_i) in the likelihood's parameters alone, (n, k)."""
    fits, theta = posterior.evaluation.fits, posterior.theta
    likelihood, rows, c = fits[0].problem.likelihood, fits[0].targets, fits[0].cavities
    found = np.zeros((len(c.mean), len(theta)))
    count = len(likelihood.bare.names)
    if count:
        first = len(theta) - len(likelihood.names)
        by_row = likelihood.in_theta(lambda other: other.tilted(rows.y, c).log_z)[:count]
        found[:, first : first + count] = np.stack(by_row, axis=1)
    return np.asarray(np.minimum(rows.weight, 1.0)[:, None] * found @ posterior.directions)


def _moved(fit: Fit, move: Array) -> Marginals:
    """Return cavities whose means and log variances have moved, within limits."""
    c = fit.cavities
    reach = 10.0 * FARTHEST * np.sqrt(c.variance)
    grow = np.clip(move[:, 1], -FARTHEST, FARTHEST)
    return Marginals(c.mean + np.clip(move[:, 0], -reach, reach), c.variance * np.exp(grow))


def turned(changes: Array, mean: Array) -> Array:
    """Return changes of predictions without the part that makes all of them larger or smaller.

    That part leaves every decision as it is, and a change of the amplitude is nothing else.
    """
    size = float(mean @ mean)
    return changes - np.outer(mean, mean @ changes) / size if size > 0.0 else changes


def _slopes_of_all(fits: Sequence[Fit]) -> tuple[Array, Array]:
    """Return slopes and curvatures in the means and log variances of all targets' cavities."""
    slopes, curvatures = zip(*map(_slopes, fits), strict=True)
    a = np.concatenate(slopes, axis=1)
    W = np.zeros((len(a), a.shape[1], a.shape[1]))
    for k, own in enumerate(curvatures):
        W[:, 2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = own
    return a, W


def _slopes(fit: Fit) -> tuple[Array, Array]:
    """Return slopes of log p(y_i) in its cavity's mean and log variance, (n, 2), and curvatures.

    The curvature is aaᵀ, on average the right one (Fisher). Where log p is quadratic, that would
    let outliers count for far too much, and the curvature is the second derivative itself.
    """
    rows, c, likelihood = fit.targets, fit.cavities, fit.problem.likelihood
    share = np.minimum(rows.weight, 1.0)[:, None]

    def slopes(log_scale: float) -> tuple[Array, Array]:
        v = c.variance * np.exp(log_scale)
        _, d1, d2 = likelihood.tilted(rows.y, Marginals(c.mean, v))
        return np.stack([d1, 0.5 * v * (d2 + d1**2)], axis=1), d2

    a, d2 = slopes(0.0)
    W = a[:, :, None] * a[:, None, :]
    if likelihood.quadratic:
        bend = (slopes(-_STEP)[0] - slopes(_STEP)[0])[:, 1] / (2.0 * _STEP)
        W = np.maximum(np.stack([-d2, bend], axis=1), 0.0)[:, :, None] * np.eye(2)
    return share * a, share[:, :, None] * W


def is_believable(posterior: HyperPosterior, leverage: Array, loss: float) -> bool:
    """Whether tuning ended near a quadratic maximum that no row decides by itself."""
    values, _ = posterior.whitened
    at_maximum = not len(values) or float(values[0]) > _CONVEX
    return at_maximum and float(np.sum(leverage)) <= _TOO_MUCH * max(
        abs(loss), _TYPICAL_LOSS * len(leverage)
    )
