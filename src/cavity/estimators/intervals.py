"""Intervals and sets that hold what they promise, from the leave-one-out of one fit.

Jackknife+ (Barber, Candès, Ramdas and Tibshirani, 2021): how far each row is from its prediction by
all other rows says how far a new row may be. A new row is as likely as any to be among the worst,
whatever the model, so that its interval holds it with probability at least 1 − 2α, in practice
with about 1 − α. The prediction without row i is that of the posterior without its site.
"""

import warnings
from collections.abc import Iterator
from math import ceil
from typing import Any

import numpy as np
from scipy.special import ndtr

from cavity.arrays import Array, threads_for
from cavity.estimators.answers import new_likelihood, unscaled, warned_quantiles
from cavity.estimators.fitted import FittedModel
from cavity.estimators.process import FittedProcess, part_of
from cavity.likelihoods import Likelihood, surprise
from cavity.sites import Marginals

_BLOCK = 2**20
"""Most predictions, of new rows without training rows, that are held at a time."""
_ROUNDING = 1e-9
"""Relative error of a sum of weights."""
_FURTHEST = 37.0
"""Standard deviations at which a float still has a probability below."""
_ENDS = "lower or upper end of the interval", "upper end of the interval"

Rows = tuple[Any, Array | None, Array | None]
"""New inputs, their prior variances if precomputed, and their offsets."""


def target_intervals(model: FittedModel, new: Rows, level: float) -> tuple[Array, Array]:
    """Return the ends of each new target's interval, in the user's units.

    A row's distance is its `surprise`: of a Gaussian target in standard deviations, so that
    intervals are wider where the model is less sure.
    """
    [process], needed = model.processes, _needed(model, level)
    each = zip(process.fits, process.cavities(), strict=True)
    far = [surprise(fit.problem.likelihood, fit.targets.y, c) for fit, c in each]
    if not (model.likelihood.quadratic and _leaves_out(model)):
        return _by_quantiles(model, new, [_smallest(z, model.rows.weight, needed) for z in far])
    found = [_ends(model, part, far, needed) for part in _parts(model, new)]
    low, high = np.concatenate(found, axis=2)
    return unscaled(model, low), unscaled(model, high)


def class_sets(model: FittedModel, new: Rows, level: float, *, allow_empty: bool) -> Array:
    """Return whether each class is in a new row's set, (rows, classes).

    A row's distance is the log loss of its label. The most probable class is in every set unless it
    may be empty.
    """
    weight, needed, codes = model.rows.weight, _needed(model, level), model.codes
    trained = model.coding.scores([process.loo_log_proba() for process in model.processes])
    own = trained[np.arange(len(codes)), codes]
    if _leaves_out(model):
        inside = np.concatenate([_members(model, part, own, needed) for part in _parts(model, new)])
    else:
        inside = model.scores(*new) >= -_smallest(-own, weight, needed)
    if not allow_empty:
        inside[np.arange(len(inside)), np.argmax(model.scores(*new), axis=1)] = True
    return inside


def _needed(model: FittedModel, level: float) -> float:
    """Return how many rows must be nearer than a new one that is left out of its set."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1; got {level!r}.")
    if not len(model.rows.index):
        raise AttributeError(
            "Intervals and sets with a guarantee need the training rows, which a model file does "
            "not hold: call this on the fitted model before it is saved."
        )
    total = float(np.sum(model.rows.weight))
    needed = level * (total + 1.0) * (1.0 - _ROUNDING)
    if needed > total:
        raise ValueError(
            f"level={level:g} needs at least {ceil(level / (1.0 - level) - _ROUNDING)} training "
            f"rows; there are {total:g}: lower the level."
        )
    return needed


def _leaves_out(model: FittedModel) -> bool:
    """Whether predictions without each training row are to be had.

    With inducing points there are so many rows that one changes nothing to be seen, and of several
    joint classes they would take an integral for each pair of rows: the fit itself predicts.
    """
    several = model.coding is not None and model.coding.several
    return not several and all(process.coverage is None for process in model.processes)


def _parts(model: FittedModel, new: Rows) -> Iterator[Rows]:
    """Split new rows, so that a prediction for each without each training row fits into memory."""
    X, variance, offset = new
    size = max(1, _BLOCK // len(model.rows.index))
    for block in (slice(i, i + size) for i in range(0, len(X), size)):
        yield X[block], part_of(variance, block), part_of(offset, block)


def _without_each(model: FittedModel, process: FittedProcess, new: Rows) -> list[Marginals]:
    X, variance, offset = new
    shift = model.shift_of(offset)
    with threads_for(len(process.X_train_)):
        found = process.without_each(X, variance)
    return [q._replace(mean=q.mean + shift) for q in found]


def _ends(model: FittedModel, new: Rows, far: list[Array], needed: float) -> Array:
    """Return the ends of the intervals in the model's units, (2, targets, rows)."""
    noise, weight, ends = new_likelihood(model).noise_variance, model.rows.weight, []
    for q, z in zip(_without_each(model, model.processes[0], new), far, strict=True):
        reach = z[:, None] * np.sqrt(q.variance + noise)
        ends.append([side * _smallest(reach + side * q.mean, weight, needed) for side in (-1, 1)])
    return np.swapaxes(ends, 0, 1)


def _by_quantiles(model: FittedModel, new: Rows, reach: list[Array]) -> tuple[Array, Array]:
    """Return the quantiles of the target that are as surprising as this."""
    X, variance, offset = new
    ends = []
    for q, z in zip(model.latents(X, variance, offset), reach, strict=True):
        ends.append(_central(new_likelihood(model), q, float(z)))
    low, high = zip(*ends, strict=True)
    return unscaled(model, low), unscaled(model, high)


def _central(likelihood: Likelihood, q: Marginals, z: float) -> tuple[Array, Array]:
    """Return quantiles at the levels of z standard deviations of a Gaussian, in the model's units.

    The upper one is infinite where its level is one in floating point.
    """
    if likelihood.quadratic:
        reach = z * np.sqrt(q.variance + likelihood.noise_variance)
        return q.mean - reach, q.mean + reach
    lower, upper = ndtr(-min(z, _FURTHEST)), ndtr(z)
    if upper < 1.0:
        low, high = warned_quantiles(likelihood, q, [lower, upper], _ENDS).T
        return low, high
    warnings.warn(
        f"Targets are up to {z:.3g} standard deviations from their predictions, so that intervals "
        "of this level have no upper end: it is returned as infinite. Use a likelihood that "
        "allows for such targets, or a lower level.",
        UserWarning,
        stacklevel=5,
    )
    [low] = warned_quantiles(likelihood, q, [lower], _ENDS[:1]).T
    return low, np.full_like(low, np.inf)


def _members(model: FittedModel, new: Rows, own: Array, needed: float) -> Array:
    """Return whether fewer rows than needed are nearer to their predictions than each class."""
    answers = []
    for process in model.processes:
        [q] = _without_each(model, process, new)
        flat = Marginals(q.mean.ravel(), q.variance.ravel())
        answers.append(process.latents.log_proba(process.likelihood.bare, flat))
    there = model.coding.scores(answers).reshape(len(own), -1, model.coding.n_classes)
    nearer = np.einsum("i,ixc->xc", model.rows.weight, own[:, None, None] > there)
    return np.asarray(nearer < needed)


def _smallest(values: Array, weight: Array, needed: float) -> Array:
    """Return the smallest entry of each column with at least this weight there and below."""
    columns = values.reshape(len(values), -1)
    order = np.argsort(columns, axis=0)
    first = np.argmax(np.cumsum(weight[order], axis=0) >= needed, axis=0)
    place = np.take_along_axis(order, first[None, :], axis=0)
    return np.asarray(np.take_along_axis(columns, place, axis=0)[0].reshape(values.shape[1:]))
