"""Leave-one-out predictions of several classes that count the tuning.

As for one latent function: without row i the maximum of the evidence moves by −C ∇l_i to first
order, with l_i the log probability of its class and C the covariance of θ. The row's own class
values move with it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.evidence.integrated import STEP, HyperPosterior
from cavity.evidence.response import FARTHEST, MOST, Response, is_believable, turned
from cavity.inference import Fit
from cavity.priors import ClassLabels
from cavity.sites import ClassMarginals, Rows


class _Shape(NamedTuple):
    """Class values as numbers that may move: means of differences, log and relative factors."""

    mean: Array
    log_scale: Array
    """Logarithms of the diagonal of a Cholesky factor of the differences' covariance."""
    relative: Array
    """Its rows, divided by their diagonal elements."""


def respond_classes(
    posterior: HyperPosterior, log_proba: Callable[[ClassMarginals], Array]
) -> Response:
    """Move each row's class values to where they would be had it not taken part in the tuning.

    Parameters
    ----------
    posterior : HyperPosterior
        Of one problem with several classes.
    log_proba : callable
        From class values to log class probabilities.
    """
    [fit] = posterior.evaluation.fits
    (labels, weight), here = _labels_of(fit), fit.cavities
    others = [there.cavities[0] for there in posterior.neighbours]
    index, k = np.arange(len(labels.codes)), len(others)

    def own(q: ClassMarginals) -> Array:
        return log_proba(q)[index, labels.codes]

    loss = own(here)
    slopes = np.reshape([(own(q) - loss) / STEP for q in others], (k, len(index))).T
    share, C = np.minimum(weight, 1.0), posterior.covariance()
    leverage = share**2 * np.einsum("ik,kl,il->i", slopes, C, slopes)
    # No more than a share of what is known of θ is lost with one row.
    held = np.minimum(leverage / share, MOST)
    step = -(slopes @ C) * (share / (1.0 - held))[:, None]
    begin, ends = _shape_of(labels, here), [_shape_of(labels, q) for q in others]
    moved = _moved(begin, ends, step)
    information, vectors = posterior.whitened
    changes = np.reshape([(q.mean - here.mean) / STEP for q in others], (k, here.mean.size)).T
    along = turned(changes @ posterior.factor @ vectors, here.mean.ravel())
    along = along.reshape(*here.mean.shape, -1)
    scatter = [np.einsum("ick,idk->ikcd", along, along)]
    believable = is_believable(posterior, leverage, -float(np.sum(loss)))
    found = [_back(labels, moved)]
    return Response(found, leverage, believable, scatter, np.maximum(information, 0.0))


def _labels_of(fit: Fit) -> tuple[ClassLabels, Array]:
    """Return the classes of all rows, wherever they are, and how often each counts."""
    parts = list(fit.problem.blocks.collect(_own_labels, fit.posterior.prior, ""))
    codes, copies, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
    return ClassLabels(codes, fit.posterior.prior.n_classes, copies), weight


def _own_labels(rows: Rows, sites: Any, prior: Any) -> tuple[Array, Array, Array]:
    labels = prior.labels_of(rows)
    return labels.codes, labels.copies, rows.weight.reshape(len(labels.codes), -1)[:, 0]


def _shape_of(labels: Any, q: ClassMarginals) -> _Shape:
    A = labels.contrasts
    D = A @ q.covariance @ A.swapaxes(1, 2)
    size = np.einsum("ikk->ik", D)
    eps = np.finfo(float).eps
    floor = 16.0 * eps * np.maximum(size, np.finfo(float).tiny)
    L = np.linalg.cholesky(D + floor[:, :, None] * np.eye(A.shape[1]))
    diagonal = np.einsum("ikk->ik", L)
    return _Shape(labels.of_classes(q.mean), np.log(diagonal), L / diagonal[:, :, None])


def _moved(begin: _Shape, ends: list[_Shape], step: Array) -> _Shape:
    """Return class values at other hyperparameters, by their slopes and within limits."""
    moves = []
    for j, part in enumerate(begin):
        changes = [(end[j] - part) / STEP for end in ends]
        each = zip(changes, step.T, strict=True)
        nothing = np.zeros_like(part)
        moves.append(sum((np.einsum("i...,i->i...", c, s) for c, s in each), nothing))
    sd = np.exp(begin.log_scale) * np.sqrt(np.sum(begin.relative**2, axis=2))
    reach = 10.0 * FARTHEST * sd
    mean = begin.mean + np.clip(moves[0], -reach, reach)
    log_scale = begin.log_scale + np.clip(moves[1], -0.5 * FARTHEST, 0.5 * FARTHEST)
    return _Shape(mean, log_scale, begin.relative + np.clip(moves[2], -FARTHEST, FARTHEST))


def _back(labels: Any, shape: _Shape) -> ClassMarginals:
    """Return the class values, compared with their mean."""
    back = labels.from_differences
    L = shape.relative * np.exp(shape.log_scale)[:, :, None]
    half = back @ L
    return ClassMarginals(np.einsum("ick,ik->ic", back, shape.mean), half @ half.swapaxes(1, 2))
