"""What a regressor says about its targets: from latent functions to the user's units."""

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils import column_or_1d

from cavity.arrays import Array
from cavity.estimators.fitted import FittedModel
from cavity.estimators.validation import require_numbers
from cavity.likelihoods import Gaussian, Likelihood, quantiles, surprise
from cavity.sites import Marginals

UNBOUNDED = {"counts", "positive"}
"""Supports of targets whose mean is the exponential of f, or may be: it may be beyond floats."""
_OTHERWISE = "inputs nearer to the training rows, or a hyperprior that keeps the amplitude small"


def shaped(columns: Sequence[Array]) -> Array:
    """Return one column for each target as an array; a single one by itself."""
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


def unscaled(model: FittedModel, columns: Sequence[Array]) -> Array:
    """Return targets in the user's units."""
    return np.asarray(shaped(columns) * model.scale + model.origin)


def target_means(model: FittedModel, X: Any, offset: Any = None) -> Array:
    """Return E[y] at new inputs."""
    if model.likelihood.quadratic:
        mean = unscaled(model, model.means(X, offset))
        require_numbers(mean)
        return mean
    [q] = model.latents(X, None, offset)
    return unscaled(model, [warned_moments(model.likelihood, q, deviation=False)[0]])


def target_moments(
    model: FittedModel, latents: Sequence[Marginals], noise: Any = 0.0
) -> tuple[Array, Array]:
    """Return means and standard deviations of targets, given their latent values.

    Of a Gaussian target the deviation is that of the latent function, with as much noise as given.
    """
    if model.likelihood.quadratic:
        found = [(q.mean, np.sqrt(q.variance + noise)) for q in latents]
    else:
        found = [warned_moments(model.likelihood, q) for q in latents]
    with np.errstate(over="ignore"):
        means, deviations = zip(*found, strict=True)
        mean, std = unscaled(model, means), shaped(deviations) * model.scale
    if model.likelihood.quadratic:
        # Those of others can be infinite, and a warning says so.
        require_numbers(mean, std)
    return mean, std


def warned_moments(
    likelihood: Likelihood, q: Marginals, *, deviation: bool = True
) -> tuple[Array, Array]:
    """Return means and standard deviations of targets; warn of those too large for a float."""
    known = likelihood.support in UNBOUNDED
    with np.errstate(over="ignore", invalid="ignore"):
        if known:
            mean, std = (np.exp(part) for part in likelihood.log_response(q))
        else:
            mean, variance = likelihood.response(q)
            std = np.sqrt(variance)
    warn_of_infinite("mean", mean, lambda: q, "predict_quantiles, ")
    # Of real numbers with outliers it may be infinite by right.
    if known and deviation:
        rest = np.where(np.isfinite(mean), std, 0.0)
        warn_of_infinite("standard deviation", rest, lambda: q, "predict_quantiles, ")
    return mean, std


def warn_of_infinite(
    what: str, values: Array, latent: Callable[[], Marginals], instead: str = ""
) -> None:
    """Warn of rows, on the first axis, in which something of the target is too large for a float.

    The latent values there are asked for only then.
    """
    infinite = ~np.isfinite(np.reshape(values, (len(values), -1)))
    where = np.flatnonzero(infinite.any(axis=1))
    if len(where):
        first, q = where[0], latent()
        warnings.warn(
            f"The {what} of the target is beyond the largest float in {len(where)} of "
            f"{len(values)} rows, first in row {first}, where the log of the target has mean "
            f"{q.mean[first]:.3g} and variance {q.variance[first]:.3g}: there it is returned as "
            f"infinite. Use {instead}{_OTHERWISE}.",
            UserWarning,
            stacklevel=_users_level(),
        )


def _users_level() -> int:
    """Return by how many frames a caller of this function is below the user's own line."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals["__name__"].startswith("cavity."):
        frame, level = frame.f_back, level + 1
    return level


def new_likelihood(model: FittedModel) -> Likelihood:
    """Return the likelihood of new targets, in the model's units."""
    if not model.likelihood.quadratic:
        return model.likelihood
    noise = np.unique(model.noise)
    if len(noise) > 1:
        raise ValueError(
            "alpha differs from row to row, so the noise of a new target is not known: add a "
            "WhiteKernel to the kernel, and a single alpha."
        )
    return Gaussian(float(noise[0]))


def user_likelihood(model: FittedModel) -> Likelihood:
    """Return the likelihood of targets in the user's units, with its tuned parameters."""
    likelihood, origin, scale = model.likelihood, np.ravel(model.origin), np.ravel(model.scale)
    if likelihood.quadratic:
        # Targets that are scaled apart have a noise each, on the last axis.
        units = scale**2 if np.ptp(scale) else scale[0] ** 2
        noise = np.multiply.outer(np.asarray(model.noise), units)
        return Gaussian(float(noise[()]) if noise.ndim == 0 else noise)
    return likelihood.in_units(-float(origin[0] / scale[0]), 1.0 / float(scale[0]))


def target_quantiles(model: FittedModel, latents: Sequence[Marginals], levels: Any) -> Array:
    """Return quantiles of targets, noise included, a column for each level."""
    found = warned_quantiles(new_likelihood(model), latents[0], levels)
    return np.asarray(found * model.scale + model.origin)


def warned_quantiles(
    likelihood: Likelihood, q: Marginals, levels: Any, names: Sequence[str] = ()
) -> Array:
    """Return quantiles, a column for each level; warn of those too large for a float.

    ``names`` say what the quantiles from each level on are to the user.
    """
    found = np.asarray(quantiles(likelihood, q, levels).T)
    if np.any(infinite := np.isinf(found).any(axis=0)):
        p = np.atleast_1d(np.asarray(levels, dtype=float))
        names = names or [f"quantile {each:.4g}, or a higher one," for each in p]
        first = int(np.argmin(np.where(infinite, p, 1.0)))
        warn_of_infinite(names[first], found, lambda: q)
    return found


def loo_moments(model: FittedModel, *, tuned_without: bool) -> tuple[Array, Array]:
    """Return mean and standard deviation of each row's target, noise included, without the row."""
    latents = model.loo_latents(tuned_without=tuned_without)
    return target_moments(model, latents, model.noise)


def loo_log_prob(model: FittedModel) -> Array:
    """Return the log density (or probability) of each row's target given all the others."""
    [process], position = model.processes, _positions(model)
    cavities, units = process.cavities(), np.broadcast_to(model.scale, len(process.fits))
    direct = process.response.direct if process.responds else np.zeros(len(cavities[0].mean))
    found = [
        (fit.problem.likelihood.tilted(fit.targets.y, c).log_z + direct)[position] - np.log(unit)
        for fit, c, unit in zip(process.fits, cavities, units, strict=True)
    ]
    return shaped(found)


def new_log_prob(model: FittedModel, X: Any, y: Array, offset: Any = None) -> Array:
    """Return the log density (or probability) of new targets."""
    [q] = model.latents(X, None, offset)
    log_prob = model.likelihood.tilted((y - model.origin) / model.scale, q).log_z
    return np.asarray(log_prob) - np.log(model.scale)


def outlier_scores(model: FittedModel) -> Array:
    """Return how surprising each row's target is, given all the others."""
    [process], position = model.processes, _positions(model)
    each = zip(process.fits, process.cavities(), strict=True)
    return shaped([surprise(fit.problem.likelihood, fit.targets.y, c)[position] for fit, c in each])


def _positions(model: FittedModel) -> Array:
    """Return where each row of the table is among the training rows."""
    if np.any(model.rows.position < 0):
        raise ValueError(
            "Rows of weight zero have no leave-one-out density: their targets are not kept."
        )
    return model.rows.position


def drawn_targets(model: FittedModel, X: Any, count: int, rng: Any) -> Array:
    """Return targets drawn at new inputs, given functions from the joint posterior."""
    f = model.processes[0].draws(X, count, rng)[0] + model.level
    drawn = model.likelihood.sample(f, np.random.default_rng(rng.randint(2**31 - 1))).T
    warn_of_infinite("largest draw", drawn, lambda: model.latents(X)[0])
    return np.asarray(drawn * model.scale + model.origin)


def explained(likelihood: Likelihood, y: Any, mean: Array, weight: Array | None) -> float:
    """Return D², the share of the deviance that predictions explain.

    It is that of the variance, R², if the likelihood is Gaussian or its deviance has no name.
    """
    y = column_or_1d(y) if np.ndim(mean) == 1 else y
    if not likelihood.quadratic:
        y = np.asarray(y, dtype=float)
        level = np.full(len(y), np.average(y, weights=weight))
        pair = [likelihood.deviance(y, each) for each in (mean, level)]
        if all(each is not None for each in pair):
            own, null = (float(np.average(np.asarray(each), weights=weight)) for each in pair)
            return 1.0 - own / null if null else float(own == 0.0)
    return float(r2_score(y, mean, sample_weight=weight))
