"""From an estimator's parameters and a table to the evidences that it maximises."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from cavity import inference as methods
from cavity.arrays import Array
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
from cavity.likelihoods import Gaussian, Likelihood, likelihood

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
) -> list[Evidence]:
    """Return the evidence of each binary problem, at the hyperparameters found before, if any."""
    model = likelihood(classifier.likelihood)
    method, prior, found = method_of(classifier, model), density(classifier), []
    for own, labels in tasks:
        inputs = training_inputs(classifier, X, rows.index[own])
        evidence = Evidence.of(rule, inputs, [labels], model, method, rows.weight[own])
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
    rule: Rule, regressor: Any, X: Any, rows: RowMap, targets: Array, noise: Array
) -> Evidence:
    """Return the evidence of all targets of a regressor, which share the kernel."""
    method = methods.method(regressor.inference)
    inputs, model = training_inputs(regressor, X, rows.index), Gaussian(noise[rows.index])
    columns = list(targets.reshape(len(targets), -1).T)
    evidence = Evidence.of(rule, inputs, columns, model, method, rows.weight)
    return evidence.under(density(regressor))


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
