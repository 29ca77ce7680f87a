"""How predictions change with the inputs: from latent functions to what an estimator answers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.estimators.coding import binary_log_proba
from cavity.estimators.fitted import FittedModel
from cavity.estimators.process import FittedProcess, block_slices
from cavity.estimators.validation import is_precomputed, validate_inputs
from cavity.evidence import Evaluation
from cavity.likelihoods import Likelihood
from cavity.priors import mean_gradient, variance_gradient
from cavity.sites import Gradients, Marginals

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


def class_gradients(model: FittedModel, X: Array, of: str) -> Any:
    """Return the gradients of what a classifier's ``predict_gradient`` is asked for."""
    if of not in ("probability", "log_probability", "latent"):
        raise ValueError(f"of must be 'probability', 'log_probability' or 'latent'; got {of!r}.")
    if of != "latent":
        log = of == "log_probability"
        return np.concatenate([_of_classes(model, X[b], log) for b in _blocks(model, X)])
    found = [gradients for _, gradients in latent_gradients(model, X)]
    several = (np.stack(parts, axis=1) for parts in zip(*found, strict=True))
    return tuple(found[0]) if len(found) == 1 else tuple(several)


def latent_gradients(model: FittedModel, X: Array) -> list[Latent]:
    """Return each latent function at new inputs, with its gradients."""
    parts = []
    for block in _blocks(model, X):
        found = [latent for process in model.processes for latent in _latents(process, X[block])]
        parts.append([(*q, *gradients) for q, gradients in found])
    joined = [map(np.concatenate, zip(*each, strict=True)) for each in zip(*parts, strict=True)]
    return [
        (Marginals(m, v), Gradients(mean, variance)) for m, v, mean, variance in map(tuple, joined)
    ]


def target_gradients(model: FittedModel, X: Array) -> Array:
    """Return the gradient of a regressor's mean, (inputs, columns) or (…, targets)."""
    [process] = model.processes
    parts = []
    for block in _blocks(model, X):
        members = (process.evaluation, *process.others)
        each = [[mean_gradient(fit.posterior, X[block]) for fit in e.fits] for e in members]
        parts.append(np.mean(each, axis=0))
    return _scaled(model, list(np.concatenate(parts, axis=1)))


def target_and_std_gradients(model: FittedModel, X: Array) -> tuple[Array, Array]:
    """Return the gradients of a regressor's mean and of its standard deviation."""
    found = latent_gradients(model, X)
    std = [chained(0.0 * q.mean, 0.5 / np.sqrt(q.variance), of) for q, of in found]
    return _scaled(model, [of.mean for _, of in found]), _scaled(model, std)


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


def _of_classes(model: FittedModel, X: Array, log: bool) -> Array:
    answers, slopes = [], []
    for process in model.processes:
        [latent] = _latents(process, X)
        likelihood = process.evaluation.likelihood
        answers.append(binary_log_proba(likelihood, latent[0]))
        low, high = (log_z_gradient(likelihood, y, latent) for y in (-1.0, 1.0))
        slopes.append((low, high))
    scores = model.coding.scores(answers)
    gradients: Array = model.coding.score_gradients(scores, slopes)
    return gradients if log else np.exp(scores)[:, :, None] * gradients


def _latents(process: FittedProcess, X: Array) -> list[Latent]:
    """Return a process's latent functions for a block of inputs."""
    each = [_at(evaluation, X) for evaluation in (process.evaluation, *process.others)]
    return [_mixed(process, members) for members in zip(*each, strict=True)]


def _at(evaluation: Evaluation, X: Array) -> list[Latent]:
    prior = evaluation.prior
    cross, own = prior.cross(X), prior.rule.diag(X)
    found = []
    for posterior in (fit.posterior for fit in evaluation.fits):
        of = Gradients(mean_gradient(posterior, X), variance_gradient(posterior, X, cross))
        found.append((posterior.predict(cross, own), of))
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
    return block_slices(len(X), max(len(process.X_train_) for process in model.processes))


def _scaled(model: FittedModel, columns: Sequence[Array]) -> Array:
    found = columns[0] if len(columns) == 1 else np.stack(columns, axis=2)
    return np.asarray(found * model.scale)
