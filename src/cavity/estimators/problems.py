"""From an estimator's parameters and a table to the evidences that it maximises."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from cavity import inference as methods
from cavity.arrays import Array
from cavity.estimators.automatic import TARGET_AMPLITUDE
from cavity.estimators.coding import BinaryTask
from cavity.estimators.validation import (
    RowMap,
    check_offers,
    is_auto,
    kernel_rule,
    training_inputs,
)
from cavity.evidence import Evidence, Hyperprior
from cavity.inference import Method
from cavity.kernels import Rule
from cavity.likelihoods import Gaussian, Likelihood, Shifted, Trend, likelihood

_NO_NOISE = 1e-10
"""A regressor's alpha, unless the user gives another."""
_SMALLEST_NOISE = 1e-20
"""Zero noise would mean sites of infinite precision."""


def classifier_rule(classifier: Any) -> Rule:
    """Return the rule of a classifier's kernel; the default kernel is fixed."""
    return kernel_rule(classifier.kernel, ConstantKernel(1.0, "fixed") * RBF(1.0, "fixed"))


def binary_evidences(
    rule: Rule,
    classifier: Any,
    X: Any,
    rows: RowMap,
    tasks: list[BinaryTask],
    before: Sequence[Array] = (),
    offset: Array | None = None,
) -> list[Evidence]:
    """Return the evidence of each binary problem, at the hyperparameters found before, if any."""
    model = likelihood(classifier.likelihood)
    method, prior, found = method_of(classifier, model), density(classifier), []
    for own, labels in tasks:
        index, weight = rows.index[own], rows.weight[own]
        inputs = training_inputs(classifier, X, index)
        fitted, added = model.fitted_to(labels, weight), None if offset is None else offset[index]
        shifted = with_added(classifier, fitted, inputs, added)
        evidence = Evidence.of(rule, inputs, [labels], shifted, method, weight)
        found.append(evidence.under(prior))
    return beginning(found, before)


def beginning(evidences: list[Evidence], before: Sequence[Array]) -> list[Evidence]:
    """Return the evidences at the hyperparameters found before, if there are as many."""
    if [len(theta) for theta in before] != [len(evidence.theta) for evidence in evidences]:
        return evidences
    return [evidence.with_theta(theta) for evidence, theta in zip(evidences, before, strict=True)]


def method_of(classifier: Any, model: Likelihood) -> Method:
    """Return a classifier's inference method, which must suit its likelihood."""
    options = {} if classifier.tol is None else {"tol": classifier.tol}
    method = methods.method(classifier.inference, max_iter=classifier.max_iter_predict, **options)
    check_offers(model, method)
    return method


def with_added(
    estimator: Any, model: Likelihood, X: Any, offset: Array | None, unit: float = 1.0
) -> Likelihood:
    """Return the likelihood of rows with these offsets, and with a trend if the estimator has one.

    ``unit`` is a typical size of the latent values.
    """
    trend = None if estimator.mean is None else Trend.of(X, unit)
    return Shifted.rows(model, X, 0.0 if offset is None else offset, trend)


def density(estimator: Any) -> Hyperprior | None:
    """Return the density of hyperparameters, if the user has given one."""
    prior = estimator.hyperprior
    return prior if isinstance(prior, Hyperprior) else None


def regressor_rule(regressor: Any) -> Rule:
    """Return the rule of a regressor's kernel; one that is to be chosen has noise."""
    if is_auto(regressor.kernel):
        return kernel_rule(None, WhiteKernel())
    return kernel_rule(regressor.kernel, ConstantKernel() * RBF())


def target_evidence(
    rule: Rule, regressor: Any, X: Any, rows: RowMap, targets: Array, model: Likelihood
) -> Evidence:
    """Return the evidence of all targets of a regressor, which share the kernel."""
    inputs, columns = training_inputs(regressor, X, rows.index), targets.reshape(len(targets), -1)
    method = target_method(regressor, model)
    evidence = Evidence.of(rule, inputs, list(columns.T), model, method, rows.weight)
    return evidence.under(density(regressor))


def target_likelihood(regressor: Any, alpha: float = _NO_NOISE) -> Likelihood:
    """Return the likelihood of a regressor's targets, which must be for numbers.

    ``alpha`` is what the regressor's parameter of this name is unless the user gives another.
    """
    model = likelihood(regressor.likelihood)
    if model.support in ("signs", "codes"):
        raise ValueError(
            f"{model!r} is for {model.expects}: a regressor needs a likelihood of numbers, such as "
            "'gaussian', 'poisson' or 'student_t'; classes need GaussianProcessClassifier."
        )
    if regressor.likelihood != "gaussian" and not np.array_equal(regressor.alpha, alpha):
        raise ValueError(
            "alpha is the noise of likelihood='gaussian'; other likelihoods, and objects, have "
            f"parameters of their own: leave alpha at {alpha:g}."
        )
    return model


def with_limits(estimator: Any, y: Array) -> Any:
    """Let a copy of a regressor take from all targets what its likelihood takes from targets.

    A part of them may not show, say, where they are cut off.
    """
    if hasattr(estimator, "alpha"):
        base = likelihood(estimator.likelihood)
        if not base.quadratic:
            whole = in_units(estimator, base, y, np.ones(len(y)), 0.0, 1.0)
            estimator.set_params(likelihood=whole)
    return estimator


class TargetUnits(NamedTuple):
    """A regressor's targets in the model's units, and how these relate to the user's."""

    targets: Array
    """(y − origin)/scale."""
    likelihood: Likelihood
    """Of these targets, without what is added to single rows."""
    noise: Any
    """The variance of a Gaussian likelihood, of each row of the table."""
    offset: Array | None
    """What is added to the latent value of each training row."""
    amplitude: float
    """Typical variance of a latent value."""
    origin: Any = 0.0
    scale: Any = 1.0
    level: float = 0.0
    """What is added to every latent value."""


def target_units(
    regressor: Any, base: Likelihood, y: Array, offset: Array | None, rows: RowMap
) -> TargetUnits:
    """Return targets as the model sees them: scaled, or with their mean level added to f."""
    own, weight = y[rows.index], rows.weight
    added = None if offset is None else offset[rows.index]
    normalize = regressor.normalize_y or is_auto(regressor.kernel)
    if base.support != "reals":
        level = base.level(own, weight, 0.0 if added is None else added) if normalize else 0.0
        shift = np.full(own.shape, level) + (0.0 if added is None else added)
        model = base.fitted_to(own, weight)
        return TargetUnits(own, model, 0.0, shift, TARGET_AMPLITUDE, level=level)
    origin, scale = scaling(own if added is None else own - added, weight, normalize)
    own, added = (own - origin) / scale, None if added is None else added / scale
    amplitude = float(np.mean(np.average(own**2, axis=0, weights=weight))) or 1.0
    noise: Any = 0.0
    model = in_units(regressor, base, own, weight, origin, scale)
    if base.quadratic:
        noise = noise_variances(given_noise(regressor, scale), len(y))
        model = Gaussian(noise[rows.index])
    return TargetUnits(own, model, noise, added, amplitude, origin, scale)


def in_units(
    regressor: Any, base: Likelihood, own: Array, weight: Array, origin: Any, scale: Any
) -> Likelihood:
    """Return the likelihood of targets (y − origin)/scale, given these.

    One that the user has made is in the user's units; one that is named begins, and has its
    bounds, in units of the targets' spread.
    """
    if base.quadratic:
        return base
    if isinstance(regressor.likelihood, str):
        spread = float(np.ravel(scaling(own, weight, normalize=True)[1])[0])
        return base.in_units(0.0, 1.0 / spread).fitted_to(own, weight)
    return base.in_units(float(origin), float(scale)).fitted_to(own, weight)


def target_method(regressor: Any, model: Likelihood) -> Method:
    """Return a regressor's inference method: by default what its likelihood needs."""
    how = regressor.inference
    if how == "auto":
        mixed = "ep" if model.concave else "mixture"
        how = "exact" if model.quadratic else mixed
    method = methods.method(how)
    check_offers(model, method)
    return method


def given_noise(regressor: Any, scale: Any = 1.0) -> Any:
    """Return the variance of a regressor's Gaussian noise, in the units of the scaled targets.

    Those are alpha's own; a likelihood of the user's has its noise in the units of the targets.
    """
    if isinstance(regressor.likelihood, str):
        return regressor.alpha
    if np.size(scale) > 1:
        raise ValueError(
            f"{regressor.likelihood!r} has the units of one target, but each of {np.size(scale)} "
            "is scaled by itself: leave normalize_y at False, or give the noise as alpha."
        )
    return regressor.likelihood.noise_variance / float(np.ravel(scale)[0]) ** 2


def noise_variances(alpha: Any, n: int) -> Array:
    """Return the noise variance of each row of a table."""
    noise = np.asarray(alpha, dtype=np.float64)
    if noise.size not in (1, n) or noise.ndim > 1:
        raise ValueError(
            "alpha must be a scalar or an array with same number of entries as y. "
            f"({noise.shape[0]} != {n})"
        )
    if not np.all(noise >= 0.0):
        raise ValueError("alpha must be at least zero everywhere.")
    return np.maximum(np.broadcast_to(noise, (n,)), _SMALLEST_NOISE)


def scaling(y: Array, weight: Array, normalize: bool) -> tuple[Array, Array]:
    """Return what to subtract and what to divide by; a constant target keeps scale 1."""
    if not normalize:
        return np.zeros(y.shape[1:]), np.ones(y.shape[1:])
    mean = np.average(y, axis=0, weights=weight)
    scale = np.sqrt(np.average((y - mean) ** 2, axis=0, weights=weight))
    return mean, nonzero_scale(mean, scale)


def nonzero_scale(mean: Array, scale: Array) -> Array:
    """Return what to divide targets by: that of a constant one is one."""
    constant = scale < 10.0 * np.finfo(scale.dtype).eps * np.abs(mean)
    return np.where(constant | (scale == 0.0), 1.0, scale)
