"""The estimators for tables on a Dask cluster: ``pip install "cavity[dask]"``."""

from __future__ import annotations

import pickle
from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin, clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from cavity.arrays import Array
from cavity.estimators import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.estimators.fitted import fitted_model
from cavity.estimators.validation import RowMap
from cavity.estimators.versions import VersionedEstimator
from cavity.rows.dask import DaskBlocks, client_or_default, mapped
from cavity.rows.partitions import table_of

__all__ = ["DaskBlocks", "DaskGaussianProcessClassifier", "DaskGaussianProcessRegressor"]


class DaskEstimator(VersionedEstimator):
    """What the estimators for Dask have in common: an ordinary one, fitted to rows on workers."""

    client: Any
    local_: Any

    @abstractmethod
    def _ordinary(self) -> Any:
        """Return the class of the estimator that does the work."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit with inducing points; the rows stay where they are.

        Parameters
        ----------
        X : dask array (n_samples, n_features), dask data frame, or DaskBlocks
            A chunk or partition is visited as a whole: some 10,000 to 1,000,000 rows are good. The
            rows stay in the workers' memory as long as the fitted estimator is kept.
        y : dask or NumPy array, dask series, or name of a column of X, default None
        sample_weight : the same, optional
            How often each row counts; rows of weight zero have to be left out.
        """
        self.client_ = client_or_default(self.client)
        table = X
        if not isinstance(X, DaskBlocks):
            table = DaskBlocks(X, y, sample_weight, client=self.client_)
        keep = getattr(self, "warm_start", False) and hasattr(self, "local_")
        local = self.local_ if keep else self._ordinary()()
        parameters = self.get_params(deep=False)
        del parameters["client"]
        self.local_ = local.set_params(**parameters).fit(table)
        return self

    def to_local(self) -> Any:
        """Return an ordinary fitted estimator: it predicts without Dask, and can be pickled.

        It does not have the training rows, so it cannot leave one out.
        """
        check_is_fitted(self, "local_")
        local, none = copy(self.local_), np.empty(0, dtype=int)
        # One number for each row is too much to send with every prediction.
        slim = replace(fitted_model(local), rows=RowMap(none, np.empty(0), none))
        vars(local)["_model"] = slim
        return pickle.loads(pickle.dumps(local))

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_") and not name.startswith("_") and "local_" in vars(self):
            return getattr(self.local_, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        fitted = {"local_": self.to_local()} if "local_" in state else {}
        state = {name: value for name, value in state.items() if name != "client_"}
        return state | fitted | {"client": None}

    def __sklearn_clone__(self) -> Any:
        parameters = self.get_params(deep=False)
        client = parameters.pop("client")
        copies = {name: clone(value, safe=False) for name, value in parameters.items()}
        return type(self)(**copies, client=client)

    def _lazily(self, method: Callable[[Any, Any], Array], X: Any) -> Any:
        """Return what a method of the ordinary estimator returns for X, of the same kind as X."""
        check_is_fitted(self, "local_")
        if not hasattr(X, "to_delayed"):
            return method(self.local_, X)
        self._check_columns(X)
        local = self.to_local()
        # In chunks the columns have no names.
        vars(local).pop("feature_names_in_", None)
        empty = method(local, np.zeros((1, local.n_features_in_)))[:0]
        return mapped(method, local, X, empty)

    def _check_columns(self, X: Any) -> None:
        fitted = getattr(self.local_, "feature_names_in_", None)
        if hasattr(X, "columns") and fitted is not None and list(X.columns) != list(fitted):
            raise ValueError(f"Expected the columns {list(fitted)}, got {list(X.columns)}.")
        count, expected = table_of(X).shape[1], self.local_.n_features_in_
        if count != expected:
            raise ValueError(f"Expected X with {expected} columns, got {count}.")


class DaskGaussianProcessClassifier(ClassifierMixin, DaskEstimator):  # type: ignore[misc]
    """Gaussian process classification of a table on a Dask cluster.

    Parameters
    ----------
    kernel, optimizer, n_restarts_optimizer, max_iter_predict, warm_start, copy_X_train, \
    random_state, multi_class, n_jobs, inference, likelihood, tol, verbose, hyperprior, \
    average_hyperparameters, n_inducing, inducing_points, mean
        As in `cavity.GaussianProcessClassifier`. There are always inducing points: None and "auto"
        are the same number of them. Rows that stay on workers have no trend: mean is None.
    client : distributed.Client or None, default None
        The cluster; None is the client made last.

    Attributes
    ----------
    local_ : GaussianProcessClassifier
        The estimator that does the work, fitted to the rows on the cluster. All its fitted
        attributes are attributes of this one, too.
    client_ : distributed.Client

    Examples
    --------
    >>> from cavity.dask import DaskGaussianProcessClassifier
    >>> clf = DaskGaussianProcessClassifier(n_inducing=100)
    >>> clf.fit(X, y)  # doctest: +SKIP
    >>> clf.predict_proba(X).compute()  # doctest: +SKIP
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        max_iter_predict: int = 100,
        warm_start: bool = False,
        copy_X_train: bool = True,
        random_state: Any = None,
        multi_class: str = "one_vs_rest",
        n_jobs: int | None = None,
        inference: Any = "ep",
        likelihood: Any = "probit",
        tol: float | None = None,
        verbose: int = 0,
        hyperprior: Any = None,
        average_hyperparameters: int = 0,
        n_inducing: Any = None,
        inducing_points: Any = None,
        mean: Any = None,
        client: Any = None,
    ) -> None:
        self._keep(locals())

    def _ordinary(self) -> Any:
        return GaussianProcessClassifier

    def predict(self, X: Any) -> Any:
        """Return the most probable class of each row; of Dask's X it is made when needed."""
        return self._lazily(_predict, X)

    def predict_proba(self, X: Any) -> Any:
        """Return class probabilities, likewise."""
        return self._lazily(_predict_proba, X)

    def predict_log_proba(self, X: Any) -> Any:
        """Return log class probabilities, likewise."""
        return self._lazily(_predict_log_proba, X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy. All predicted classes are held in memory."""
        return float(
            accuracy_score(np.asarray(y), np.asarray(self.predict(X)), sample_weight=sample_weight)
        )


class DaskGaussianProcessRegressor(MultiOutputMixin, RegressorMixin, DaskEstimator):  # type: ignore[misc]
    """Gaussian process regression of a table on a Dask cluster.

    Parameters
    ----------
    kernel, alpha, optimizer, n_restarts_optimizer, normalize_y, copy_X_train, n_targets, \
    random_state, inference, n_jobs, verbose, hyperprior, average_hyperparameters, n_inducing, \
    inducing_points, likelihood, mean
        As in `cavity.GaussianProcessRegressor`, but ``alpha`` is one number. There are always
        inducing points: None and "auto" are the same number of them. Rows that stay on workers have
        no trend: mean is None.
    client : distributed.Client or None, default None
        The cluster; None is the client made last.

    Attributes
    ----------
    local_ : GaussianProcessRegressor
        The estimator that does the work, fitted to the rows on the cluster. All its fitted
        attributes are attributes of this one, too.
    client_ : distributed.Client

    Examples
    --------
    >>> from cavity.dask import DaskGaussianProcessRegressor
    >>> reg = DaskGaussianProcessRegressor(alpha=0.1, n_inducing=100)
    >>> reg.fit(X, y)  # doctest: +SKIP
    >>> mean, std = reg.predict(X, return_std=True)  # doctest: +SKIP
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        alpha: Any = 1e-10,
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        normalize_y: bool = False,
        copy_X_train: bool = True,
        n_targets: int | None = None,
        random_state: Any = None,
        inference: Any = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        hyperprior: Any = None,
        average_hyperparameters: int = 0,
        n_inducing: Any = None,
        inducing_points: Any = None,
        likelihood: Any = "gaussian",
        mean: Any = None,
        client: Any = None,
    ) -> None:
        self._keep(locals())

    def _ordinary(self) -> Any:
        return GaussianProcessRegressor

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the mean of the latent function at each row, and its standard deviation if asked.

        Of Dask's X these are Dask arrays, made when needed; both come from one pass.
        """
        if not return_std:
            return self._lazily(_predict, X)
        both = self._lazily(_predict_both, X)
        return both[..., 0], both[..., 1]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R². All predictions are held in memory."""
        return float(
            r2_score(np.asarray(y), np.asarray(self.predict(X)), sample_weight=sample_weight)
        )


def _predict(local: Any, X: Any) -> Any:
    return local.predict(X)


def _predict_proba(local: Any, X: Any) -> Any:
    return local.predict_proba(X)


def _predict_log_proba(local: Any, X: Any) -> Any:
    return local.predict_log_proba(X)


def _predict_both(local: Any, X: Any) -> Any:
    return np.stack(local.predict(X, return_std=True), axis=-1)
