"""Fitted estimators as numbers and names, and back without another fit."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np

from cavity import storage
from cavity.arrays import Array
from cavity.estimators.answers import user_likelihood
from cavity.estimators.classifier import GaussianProcessClassifier
from cavity.estimators.coding import coding_of
from cavity.estimators.fitted import FittedModel, fitted_model
from cavity.estimators.forgotten import ForgottenRows
from cavity.estimators.joint import latents_of
from cavity.estimators.latents import SIGNS, Latents
from cavity.estimators.parts import (
    ProcessArrays,
    coverage_of,
    report_of,
    scaling,
    with_trend,
)
from cavity.estimators.process import FittedProcess
from cavity.estimators.regressor import GaussianProcessRegressor
from cavity.estimators.validation import RowMap, is_precomputed
from cavity.evidence import Evaluation, Evidence
from cavity.inference import Fit, Method, Problem, WarmStart, method
from cavity.kernels import rule
from cavity.likelihoods import Gaussian, Likelihood, likelihood
from cavity.priors import InducingPrior
from cavity.sites import Sites
from cavity.storage import (
    StorageError,
    check_memory,
    refusing,
    stored_number,
)
from cavity.storage.codecs import (
    classes_from_json,
    kernel_from_json,
    kernel_to_json,
    labels_to_json,
    likelihood_from_json,
    likelihood_to_json,
)

T = TypeVar("T")
Stored = tuple[dict[str, Any], dict[str, Array]]
"""What JSON can hold, and arrays by their names."""
_KIND = "fitted estimator"
_LABELS = ("signs", "codes")


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier or regressor to a file that `load` reads.

    With inducing points the file holds no training rows: only the points and the posterior at
    them, m² numbers. Otherwise it holds the training inputs and targets. It never holds code.
    Kernels and likelihoods must be those of scikit-learn and of this library.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity import GaussianProcessRegressor
    >>> from cavity.estimators import load, save
    >>> X = np.linspace(0.0, 3.0, 20)[:, None]
    >>> model = GaussianProcessRegressor(RBF(1.0), alpha=0.01).fit(X, np.sin(X[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, Path(folder) / "model")
    ...     again = load(Path(folder) / "model")
    >>> bool(np.allclose(again.predict(X), model.predict(X), rtol=1e-12))
    True
    """
    header, arrays = as_numbers(estimator)
    names = getattr(estimator, "feature_names_in_", None)
    header |= {
        "estimator": type(estimator).__name__,
        "inference": fitted_model(estimator).fits[0].method.name,
        "feature_names": None if names is None else [str(name) for name in names],
    }
    if isinstance(estimator, GaussianProcessClassifier):
        header["likelihood"] = likelihood_to_json(estimator.likelihood)
        header["classes"] = labels_to_json(estimator.classes_)
        header["multi_class"] = estimator.multi_class
    storage.write(path, _KIND, header, arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted classifier or regressor that `save` wrote; nothing is fitted again."""
    header, arrays = storage.read(path, _KIND)
    with refusing(path):
        return _loaded(header, arrays)


def _loaded(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Any:
    name = header["estimator"]
    options: dict[str, Any] = {"inference": str(header["inference"])}
    if name not in (GaussianProcessClassifier.__name__, GaussianProcessRegressor.__name__):
        raise ValueError("its estimator is unknown")
    if name == GaussianProcessRegressor.__name__:
        found = restored(GaussianProcessRegressor(**options), header, arrays)
    else:
        options["multi_class"] = str(header["multi_class"])
        model = likelihood_from_json(header["likelihood"])
        classifier = GaussianProcessClassifier(likelihood=model, **options)
        found = restored(classifier, header, arrays, classes_from_json(header["classes"]))
    if header["feature_names"] is not None:
        if len(header["feature_names"]) != found.n_features_in_:
            raise ValueError("its names do not fit its columns")
        if not all(isinstance(name, str) for name in header["feature_names"]):
            raise ValueError("the names of its columns are not all text")
        names = np.array(header["feature_names"], dtype=object)
        found.__dict__.update(feature_names_in_=names)
    return found


def as_numbers(estimator: Any) -> Stored:
    """Return what a fitted estimator needs to predict."""
    model: FittedModel = fitted_model(estimator)
    if is_precomputed(estimator.kernel) or any(process.others for process in model.processes):
        raise StorageError(
            "models with kernel='precomputed' or average_hyperparameters cannot be stored"
        )
    if not hasattr(estimator, "n_features_in_"):
        raise StorageError("models of inputs that need not be vectors cannot be stored")
    parts = [_of_process(k, process) for k, process in enumerate(model.processes)]
    arrays = {name: array for _, found in parts for name, array in found.items()}
    arrays |= {name: np.asarray(getattr(model, name)) for name in ("origin", "scale")}
    # The noise of a row of the training table says nothing about a new one, unless all have it.
    arrays |= {"noise": np.min(model.noise), "most_noise": np.max(model.noise)}
    fit = {"n_features": int(estimator.n_features_in_), "processes": [about for about, _ in parts]}
    fit["level"] = float(model.level)
    return {"fit": fit}, arrays


def _of_process(k: int, process: FittedProcess) -> Stored:
    prior, coverage = process.evaluation.prior, process.coverage
    about = {
        "kernel": kernel_to_json(process.kernel_),
        "dense": bool(prior.dense),
        "log_evidence": [float(fit.log_evidence) for fit in process.fits],
        "reports": [[_plain(value) for value in fit.report] for fit in process.fits],
        "coverage": None if coverage is None else [_plain(value) for value in coverage],
        "likelihood": _own_likelihood(process),
    }
    own = {"X": prior.X} | process.latents.arrays(prior) if prior.dense else {}
    arrays = own if prior.dense else {"Z": prior.points, "W": prior.W}
    trend = process.trend
    if trend is not None:
        arrays |= {f"trend_{name}": part for name, part in trend._asdict().items()}
    for j, fit in enumerate(process.fits):
        arrays |= {f"{name}_{j}": value for name, value in _numbers(fit.posterior).items()}
    return about, {f"{k}_{name}": np.asarray(array) for name, array in arrays.items()}


def _numbers(posterior: Any) -> dict[str, Any]:
    """Return what a file holds of a posterior."""
    if posterior.prior.dense:
        return {**posterior.sites._asdict(), "alpha": posterior.alpha}
    return {name: getattr(posterior.values, name) for name in ("V", "w", "half_log_det")}


def _own_likelihood(process: FittedProcess) -> Any:
    """Return the tuned likelihood of new rows; None if the rest of the file says what it is."""
    model = process.likelihood.bare
    known = model.quadratic or "classes" in model.offers
    return None if known else likelihood_to_json(model)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def restored(
    estimator: T,
    header: Mapping[str, Any],
    arrays: Mapping[str, Array],
    classes: Array | None = None,
) -> T:
    """Make an estimator the fitted one that `as_numbers` described; return it.

    It predicts. What belongs to the training rows, such as leave-one-out, it does not have.
    """
    fit, options = header["fit"], estimator.__dict__
    n_features, split, count = stored_number(fit["n_features"], int), None, 1
    if classes is not None:
        split = coding_of(likelihood(options["likelihood"]), len(classes), options["multi_class"])
        count = split.n_tasks if len(classes) > 1 else -1
    if len(fit["processes"]) != count:
        raise ValueError("its functions do not fit its classes")
    latents = SIGNS if split is None else latents_of(estimator, split)
    given = partial(_likelihood, options, arrays, classes)
    about = n_features, given, method(options["inference"]), latents
    dense = [k for k, one in enumerate(fit["processes"]) if one["dense"]]
    check_memory([ProcessArrays(arrays, k).count("X") for k in dense], latents.n_functions)
    processes = [
        _process(one, ProcessArrays(arrays, k), *about) for k, one in enumerate(fit["processes"])
    ]
    units = scaling(arrays, processes, classes)
    nothing = np.empty(0, dtype=np.int64)
    rows, absent = RowMap(nothing, nothing, nothing), (np.empty((0, n_features)), None, None)
    if any((p.likelihood.support in _LABELS) != (classes is not None) for p in processes):
        raise ValueError("its likelihood does not fit its targets")
    level = stored_number(fit.get("level", 0.0), float)
    found = FittedModel(processes, rows, absent, split, level=level, **units)
    options.update(_attributes(found, n_features, classes))
    return estimator


def _likelihood(
    options: Mapping[str, Any], arrays: Mapping[str, Array], classes: Array | None
) -> Likelihood:
    if classes is not None:
        return likelihood(options["likelihood"])
    return Gaussian(float(arrays["noise"]))


def _attributes(model: FittedModel, n_features: int, classes: Array | None) -> dict[str, Any]:
    """Return what a fitted estimator has besides its parameters."""
    found = {
        "_model": model,
        "n_features_in_": n_features,
        "kernel": model.processes[0].kernel_,
        "log_marginal_likelihood_value_": model.log_evidence(),
    }
    if any(process.trend is not None for process in model.processes):
        found["mean"] = "linear"
    if classes is None:
        own = user_likelihood(model)
        named = {} if own.quadratic else {"likelihood": own}
        return found | named | {"X_train_": model.processes[0].X_train_, "likelihood_": own}
    reports = [fit.report for fit in model.fits]
    return found | {
        "classes_": classes,
        "n_classes_": len(classes),
        "converged_": all(report.converged for report in reports),
        "n_iter_": max(report.n_iter for report in reports),
    }


def _process(
    about: Mapping[str, Any],
    arrays: ProcessArrays,
    n_features: int,
    given: Callable[[], Likelihood],
    how: Method,
    latents: Latents,
) -> FittedProcess:
    kernel = rule(kernel_from_json(about["kernel"]))
    prior: Any
    if about["dense"]:
        n = arrays.count("X")
        X, n_rows = arrays.get("X", n, n_features), n
        prior, n = latents.prior(kernel, X, lambda name: arrays.get(name, n_rows))
    else:
        n = arrays.count("Z")
        Z, W = arrays.get("Z", n, n_features), arrays.get("W", n, n)
        prior = latents.again_on_points(InducingPrior(kernel, Z, W))
    # More columns than the kernel has length scales would fail during a prediction.
    kernel.diag(prior.points[:1])
    none, model = ForgottenRows(), with_trend(_known(about, given), arrays, n_features)
    evidence = Evidence(kernel, [none], model, how, none.reduce)
    problem, fits = Problem(model, prior, none), []
    for j, (value, report) in enumerate(zip(about["log_evidence"], about["reports"], strict=True)):
        posterior = _posterior(prior, arrays, n, j, latents)
        log_evidence = stored_number(value, float)
        fits.append(Fit(problem, how, posterior, log_evidence, report_of(report), WarmStart(None)))
    coverage = None if about["coverage"] is None else coverage_of(*about["coverage"])
    evaluation = Evaluation(evidence, evidence.theta, prior, fits)
    return FittedProcess(evaluation, coverage=coverage, latents=latents)


def _known(about: Mapping[str, Any], given: Callable[[], Likelihood]) -> Likelihood:
    """Return a process's own likelihood; files of earlier versions have one for all."""
    own = about.get("likelihood")
    return given() if own is None else likelihood(likelihood_from_json(own))


def _posterior(prior: Any, arrays: ProcessArrays, n: int, j: int, latents: Latents) -> Any:
    if prior.dense:
        tau = arrays.get(f"tau_{j}", n, least=0.0)
        nu, alpha = (arrays.get(f"{name}_{j}", n) for name in ("nu", "alpha"))
        return prior.condition(Sites(tau, nu), alpha)
    return latents.posterior(prior, lambda name, *shape: arrays.get(f"{name}_{j}", *shape))
