"""Cross-validation that tunes again in every fold."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from cavity.arrays import Array
from cavity.estimators.problems import with_limits
from cavity.estimators.validation import check_offset


def cross_val_tuned(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 10,
    n_jobs: int | None = None,
    offset: Any = None,
) -> Any:
    """Predict each row by a model that was tuned and fitted without the row's fold.

    This takes one fit for each fold. Use it where leave-one-out predictions do not account for the
    tuning (``loo_is_believable_`` is False), or as a check of those that do.

    Parameters
    ----------
    estimator : GaussianProcessClassifier, GaussianProcessRegressor, or a Pipeline ending in one
        If it is fitted, a kernel object is tuned from its fitted hyperparameters on.
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    cv : int or cross-validation splitter, default 10
        Number of folds, in which classes keep their shares, or what tests every row once.
    n_jobs : int or None, default None
        Number of folds to fit in parallel.
    offset : float or array-like of shape (n_samples,), optional
        What is added to each row's latent value, as in the estimator's ``fit``.

    Returns
    -------
    proba : ndarray of shape (n_samples, n_classes)
        Class probabilities of a classifier, in the order of the sorted classes.
    mean, std : ndarrays of shape (n_samples,)
        Prediction and standard deviation of a regressor, with the kernel's own noise; with
        another likelihood than "gaussian" the deviation is that of the target.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity import GaussianProcessClassifier, cross_val_tuned
    >>> from cavity.datasets import load_crabs
    >>> X, y = load_crabs(return_X_y=True)
    >>> cross_val_tuned(GaussianProcessClassifier(100.0 * RBF(10.0)), X, y, cv=3).shape
    (200, 2)
    """
    found = folds_asked(estimator, X, y, _answers, cv=cv, n_jobs=n_jobs, offset=offset)
    return found if is_classifier(estimator) else (found[:, 0], found[:, 1])


Ask = Callable[[Any, Array, Array, dict[str, Any], Array], Array]
"""From a fitted model, inputs, targets and offset of rows that are new to it, and all targets, to
columns of numbers."""


def folds_asked(
    estimator: Any,
    X: Any,
    y: Any,
    ask: Ask,
    *,
    cv: Any = 10,
    n_jobs: int | None = None,
    offset: Any = None,
) -> Array:
    """Return what models that were tuned and fitted without a row's fold answer about the row.

    The parameters are those of `cross_val_tuned`.
    """
    # The import takes a quarter of a second, which most programs can do without.
    from sklearn.model_selection import check_cv

    X, y, classes = np.asarray(X), _one_target(y), is_classifier(estimator)
    splitter = check_cv(cv, y, classifier=classes)
    if isinstance(cv, int):
        # Rows are often sorted: folds of neighbours would differ from each other.
        splitter.shuffle, splitter.random_state = True, 0
    folds = list(splitter.split(X, y))
    _check_partition(cv, [test for _, test in folds], len(y))
    begin, offset = _from_here(estimator, y), check_offset(offset, len(y))
    found = Parallel(n_jobs=n_jobs)(
        delayed(_asked)(begin, X, y, train, test, offset, ask) for train, test in folds
    )
    values = np.empty((len(y), found[0].shape[1]))
    for (_, test), part in zip(folds, found, strict=True):
        values[test] = part
    return values


def _one_target(y: Any) -> Array:
    """Return the targets, of which there may be one only."""
    y = np.asarray(y)
    if y.ndim > 1 and y.shape[1:] != (1,):
        raise ValueError(
            f"Cross-validation needs one target; y has shape {y.shape}. Call it with each column."
        )
    return y


def _check_partition(cv: Any, tests: list[Any], n: int) -> None:
    """Refuse folds that leave rows without a prediction, or with several."""
    rows = np.arange(n)
    times = np.bincount(np.concatenate([rows[:0], *(rows[test] for test in tests)]), minlength=n)
    if np.any(times != 1):
        raise ValueError(
            f"cv must test each of the {n} rows once; {cv!r} never tests {np.sum(times == 0)} and "
            f"tests {np.sum(times > 1)} several times: give a number of folds, or KFold(...)."
        )


def _from_here(estimator: Any, y: Array) -> Any:
    """Return a copy that tunes its kernel object from where the fitted one has ended."""
    copy = clone(estimator)
    model = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    last = copy.steps[-1][1] if isinstance(copy, Pipeline) else copy
    tuned = getattr(model, "kernel_", None) if hasattr(model, "n_features_in_") else None
    if not isinstance(model.kernel, str | None) and type(tuned) is type(model.kernel):
        last.set_params(kernel=tuned)
    if not is_classifier(last):
        with_limits(last, y)
    return copy


def _asked(
    estimator: Any, X: Array, y: Array, train: Array, test: Array, offset: Array | None, ask: Ask
) -> Array:
    step = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
    given = {} if offset is None else {f"{step}offset": offset[train]}
    there = {} if offset is None else {"offset": offset[test]}
    with warnings.catch_warnings():
        # A fold's trouble is not the table's.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = clone(estimator).fit(X[train], y[train], **given)
    return ask(model, X[test], y[test], there, y)


def _answers(model: Any, X: Array, y: Array, offset: dict[str, Any], every: Array) -> Array:
    """Return class probabilities, or predictions and their standard deviations."""
    if not is_classifier(model):
        return np.column_stack(model.predict(X, return_std=True, **offset))
    proba = np.full((len(X), len(np.unique(every))), np.finfo(float).tiny)
    proba[:, np.searchsorted(np.unique(every), model.classes_)] = model.predict_proba(X, **offset)
    return proba
