"""How predictions change with the inputs: from latent functions to what an estimator answers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.arrays.differences import bend, row_gradients, slope
from cavity.estimators.answers import UNBOUNDED, warn_of_infinite
from cavity.estimators.coding import label_log_proba
from cavity.estimators.fitted import FittedModel
from cavity.estimators.process import FittedProcess, block_slices, part_of
from cavity.estimators.validation import is_precomputed, validate_inputs
from cavity.evidence import Evaluation
from cavity.likelihoods import Likelihood
from cavity.priors import mean_gradient, variance_gradient
from cavity.sites import Gradients, Marginals

_STEP, _LARGER = 5e-3, 0.02
"""Steps of differences in the mean of f, in units in which targets bend: first derivatives keep
ten digits, second ones nine."""

Latent = tuple[Marginals, Gradients]
"""A latent function at some inputs, and how its mean and variance change with them."""


def checked_vectors(estimator: Any, X: Any) -> Array:
    """Return new inputs in which predictions have gradients, as float64."""
    if is_precomputed(estimator.kernel):
        raise ValueError(
            "With kernel='precomputed' predictions have no gradients in the inputs, which are not "
            "known: use a kernel object."
        )
    X = validate_inputs(estimator, X, reset=False)
    if not (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"):
        raise ValueError(
            "Gradients in the inputs need inputs that are vectors, an array of numbers of shape "
            "(n_samples, n_features); this kernel takes other objects, which cannot be moved."
        )
    return np.asarray(X, dtype=np.float64)


def class_gradients(model: FittedModel, X: Array, of: str, offset: Any = None) -> Any:
    """Return the gradients of what a classifier's ``predict_gradient`` is asked for."""
    if of not in ("probability", "log_probability", "latent"):
        raise ValueError(f"of must be 'probability', 'log_probability' or 'latent'; got {of!r}.")
    if model.coding.several:
        return _of_joint_classes(model, X, of)
    if of != "latent":
        log = of == "log_probability"
        parts = ((X[b], model.shift_of(part_of(offset, b))) for b in _blocks(model, X))
        return np.concatenate([_of_classes(model, *part, log) for part in parts])
    found = [gradients for _, gradients in latent_gradients(model, X, offset)]
    several = (np.stack(parts, axis=1) for parts in zip(*found, strict=True))
    return tuple(found[0]) if len(found) == 1 else tuple(several)


def latent_gradients(model: FittedModel, X: Array, offset: Any = None) -> list[Latent]:
    """Return each latent function at new inputs, with its gradients."""
    parts = []
    for block in _blocks(model, X):
        here = X[block], model.shift_of(part_of(offset, block))
        found = [latent for process in model.processes for latent in _latents(process, *here)]
        parts.append([(*q, *gradients) for q, gradients in found])
    joined = [map(np.concatenate, zip(*each, strict=True)) for each in zip(*parts, strict=True)]
    return [
        (Marginals(m, v), Gradients(mean, variance)) for m, v, mean, variance in map(tuple, joined)
    ]


def target_gradients(model: FittedModel, X: Array, offset: Any = None) -> Array:
    """Return the gradient of a regressor's mean, (inputs, columns) or (…, targets)."""
    if not model.likelihood.quadratic:
        return _of_targets(model, X, offset)["mean"]
    [process] = model.processes
    parts = []
    for block in _blocks(model, X):
        members = (process.evaluation, *process.others)
        each = [
            [mean_gradient(fit.posterior, X[block]) + e.likelihood.drift_slopes for fit in e.fits]
            for e in members
        ]
        parts.append(np.mean(each, axis=0))
    return _scaled(model, list(np.concatenate(parts, axis=1)))


def target_and_std_gradients(
    model: FittedModel, X: Array, offset: Any = None
) -> tuple[Array, Array]:
    """Return the gradients of a regressor's mean and of its standard deviation."""
    if not model.likelihood.quadratic:
        in_mean, in_std = _of_targets(model, X, offset, "standard deviation").values()
        return in_mean, in_std
    found = latent_gradients(model, X, offset)
    std = [chained(0.0 * q.mean, 0.5 / np.sqrt(q.variance), of) for q, of in found]
    return _scaled(model, [of.mean for _, of in found]), _scaled(model, std)


def _of_targets(model: FittedModel, X: Array, offset: Any, *more: str) -> dict[str, Array]:
    """Return the gradients of the mean, and of more; warn of those too large for a float."""
    [latent] = latent_gradients(model, X, offset)
    of = _of_logs if model.likelihood.support in UNBOUNDED else _of_response
    both = dict(zip(("mean", "standard deviation"), of(model.likelihood, *latent), strict=True))
    warned = np.zeros(len(X), dtype=bool)
    for name in ("mean", *more):
        rest = np.where(warned[:, None], 0.0, both[name])
        warn_of_infinite(f"gradient of the {name}", rest, lambda: latent[0])
        warned |= np.isinf(rest).any(axis=1)
    return {name: _scaled(model, [both[name]]) for name in ("mean", *more)}


def _of_logs(model: Likelihood, q: Marginals, of: Gradients) -> tuple[Array, Array]:
    """Return the same as `_of_response` from the logs of the moments, which never overflow.

    With ρ and λ those of mean and standard deviation, and derivatives in the mean of f, the heat
    equation gives the slopes in its variance: ½ (ρ″ + ρ′²) and ½ (λ″ + 2 λ′² + ρ′² e^{2(ρ − λ)}).
    """

    def logs(h: float) -> Array:
        return np.stack(model.log_response(Marginals(q.mean + h, q.variance)))

    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        now, first, second = logs(0.0), slope(logs, _STEP), bend(logs, _LARGER)
        pull = second + first**2
        pull[1] += first[1] ** 2 + (first[0] * np.exp(now[0] - now[1])) ** 2
        each = (chained(a, 0.5 * b, of) for a, b in zip(first, pull, strict=True))
        found = [_times_exp(part, log) for part, log in zip(each, now, strict=True)]
    return found[0], found[1]


def _times_exp(values: Array, log: Array) -> Array:
    """Return each row times the exponential, which alone may be beyond floats; 0 for e^−∞."""
    log = log[:, None]
    with np.errstate(over="ignore", divide="ignore"):
        product = np.sign(values) * np.exp(log + np.log(np.abs(values)))
    return np.where(np.isneginf(log), 0.0, product)


def _of_response(model: Likelihood, q: Marginals, of: Gradients) -> tuple[Array, Array]:
    """Return the gradients of the mean of y and of its standard deviation.

    E y and E (y − c)² follow the heat equation: their slope in the variance of f is half their
    second derivative in its mean. With c = E y the latter adds (∂E y)² to that of the variance.
    """
    unit = _unit_of(model, q)

    def moments(h: float) -> Array:
        return np.stack(model.response(Marginals(q.mean + h * unit, q.variance)))

    std = np.sqrt(model.response(q).variance)
    first, second = slope(moments, _STEP) / unit, bend(moments, _LARGER) / unit**2
    in_mean = chained(first[0], 0.5 * second[0], of)
    in_variance = chained(first[1], 0.5 * second[1] + first[0] ** 2, of)
    return in_mean, in_variance / (2.0 * std)[:, None]


def _unit_of(model: Likelihood, q: Marginals) -> Array:
    """Return over what distance in f targets bend: noise and spread, or one where f is a log."""
    if model.support != "reals":
        return np.ones_like(q.mean)
    return np.sqrt(q.variance + model.noise_variance)


def chained(in_mean: Array, in_variance: Array, of: Gradients) -> Array:
    """Return the gradient of an answer, given its derivatives in a latent function's moments.

    This is all that another likelihood, or another answer, needs.
    """
    return in_mean[:, None] * of.mean + in_variance[:, None] * of.variance


def log_z_gradient(model: Likelihood, y: float, latent: Latent) -> Array:
    """Return the gradient of log E p(y|f), by ∂/∂m = d1 and ∂/∂v = ½ (d1² + d2)."""
    q, of = latent
    _, d1, d2 = model.tilted(np.full_like(q.mean, y), q)
    return chained(d1, 0.5 * (d1**2 + d2), of)


def _of_joint_classes(model: FittedModel, X: Array, of: str) -> Any:
    """Return the same of classes with a function each, by differences of fourth order."""

    def answers(X: Array) -> Array:
        if of == "latent":
            mean, covariance = model.latents(X)[0]
            return np.hstack([mean, np.einsum("icc->ic", covariance)])
        return model.scores(X) if of == "log_probability" else np.exp(model.scores(X))

    found = np.moveaxis(row_gradients(answers, X, like=model.processes[0].X_train_), 2, 1)
    return tuple(np.split(found, 2, axis=1)) if of == "latent" else np.asarray(found)


def _of_classes(model: FittedModel, X: Array, shift: Any, log: bool) -> Array:
    answers, slopes = [], []
    for process in model.processes:
        [latent] = _latents(process, X, shift)
        likelihood = process.likelihood.bare
        answers.append(label_log_proba(likelihood, latent[0], model.coding.labels))
        slopes.append([log_z_gradient(likelihood, y, latent) for y in model.coding.labels])
    scores = model.coding.scores(answers)
    gradients: Array = model.coding.score_gradients(scores, slopes)
    return gradients if log else np.exp(scores)[:, :, None] * gradients


def _latents(process: FittedProcess, X: Array, shift: Any = 0.0) -> list[Latent]:
    """Return a process's latent functions for a block of inputs, with what is added to them."""
    each = [_at(evaluation, X, shift) for evaluation in (process.evaluation, *process.others)]
    return [_mixed(process, members) for members in zip(*each, strict=True)]


def _at(evaluation: Evaluation, X: Array, shift: Any) -> list[Latent]:
    prior = evaluation.prior
    cross, own = prior.cross(X), prior.rule.diag(X)
    found, likelihood = [], evaluation.likelihood
    for posterior in (fit.posterior for fit in evaluation.fits):
        q, mean = posterior.predict(cross, own), mean_gradient(posterior, X)
        of = Gradients(mean + likelihood.drift_slopes, variance_gradient(posterior, X, cross))
        found.append((q._replace(mean=q.mean + likelihood.drift(X) + shift), of))
    return found


def _mixed(process: FittedProcess, members: Sequence[Latent]) -> Latent:
    """Return the average over hyperparameters; the variance has that of the means in it."""
    if len(members) == 1:
        return members[0]
    [q] = process.mixed([[q] for q, _ in members])
    mean = np.mean([of.mean for _, of in members], axis=0)
    apart = [2.0 * (p.mean - q.mean)[:, None] * of.mean for p, of in members]
    variance = np.mean([of.variance for _, of in members], axis=0) + np.mean(apart, axis=0)
    return q, Gradients(mean, variance)


def _blocks(model: FittedModel, X: Array) -> Any:
    return block_slices(len(X), max(process.row_numbers for process in model.processes))


def _scaled(model: FittedModel, columns: Sequence[Array]) -> Array:
    found = columns[0] if len(columns) == 1 else np.stack(columns, axis=2)
    return np.asarray(found * model.scale)
