"""Gaussian processes that learn from a stream, with scikit-learn's interface."""

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from cavity.arrays import Array
from cavity.estimators.classifier import GaussianProcessClassifier
from cavity.estimators.coding import Coding, class_codes, coding, label_log_proba
from cavity.estimators.problems import noise_variances
from cavity.estimators.regressor import GaussianProcessRegressor
from cavity.estimators.streaming import OnlineEstimator
from cavity.estimators.streams import StreamRows, take_rows
from cavity.estimators.validation import (
    TUNING_CONSTRAINTS,
    check_classes,
    check_sizes,
    validate_inputs,
)
from cavity.likelihoods import Gaussian, Likelihood, likelihood
from cavity.storage import StorageError

_CONSTRAINTS: dict[str, Any] = {
    **TUNING_CONSTRAINTS,
    "kernel": [Kernel, None],
    "budget": [Interval(Integral, 1, None, closed="left")],
    "novelty": [Interval(Real, 1e-10, 1, closed="left")],
    "forget": [Interval(Real, 0, 1, closed="right")],
    "sweeps": [Interval(Integral, 1, None, closed="left")],
    "warmup": [Interval(Integral, 0, None, closed="left")],
    "tol": [Interval(Real, 1e-10, 1, closed="left"), None],
}


class OnlineGaussianProcessClassifier(ClassifierMixin, OnlineEstimator):  # type: ignore[misc]
    """Gaussian process classification of a stream, in constant memory.

    Each example is learned once, in the order of arrival, and only a posterior process over at most
    ``budget`` basis points is kept.

    Parameters
    ----------
    kernel : kernel object or None
        Any kernel of `sklearn.gaussian_process.kernels` on vectors, a sum or product of them, or a
        subclass of your own. None is ``1.0 * RBF(1.0)``. Its hyperparameters stay fixed unless
        there is a ``warmup``.
    likelihood : {"probit", "logit", "step"} or Likelihood
        Maps latent values to class probabilities. "step" is noise-free: add a WhiteKernel to the
        kernel.
    budget : int
        Maximum number of basis points. Learning one example takes O(budget²) time.
    novelty : float
        An input can become a basis point only if the others leave at least this share of its prior
        variance unexplained.
    forget : float
        Factor by which each new example discounts all earlier ones: 1 never forgets, 0.999
        remembers about the last 1000 rows. Forgetting moves predictions back towards the prior.
    sweeps : int
        In `fit` only: if more than 1, expectation propagation revisits the table, at the basis
        points chosen by the first pass, until it converges or for at most this many sweeps.
    warmup : int
        Number of rows to collect, and to tune the kernel on, before learning begins.
    optimizer, n_restarts_optimizer, random_state
        How to tune, as for `GaussianProcessClassifier`.
    tol : float, optional
        Deprecated: the former name of ``novelty``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    basis_points_ : ndarray of shape (n_basis, n_features), or a list of one for each class
    kernel_ : kernel object, or a list of one for each class
    log_evidence_, prequential_log_loss_ : float
    n_seen_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str, if the inputs had names

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity import OnlineGaussianProcessClassifier
    >>> rng = np.random.default_rng(0)
    >>> clf = OnlineGaussianProcessClassifier(10.0 * RBF(1.0), budget=20)
    >>> for _ in range(10):
    ...     X = rng.normal(size=(50, 2))
    ...     clf = clf.partial_fit(X, X[:, 0] * X[:, 1] > 0, classes=[False, True])
    >>> clf.n_seen_, clf.basis_points_.shape, bool(clf.predict([[1.0, 1.0]])[0])
    (500, (20, 2), True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_CONSTRAINTS,
        "likelihood": [str, Likelihood],
    }
    _dense_class = GaussianProcessClassifier
    _own_parameter = "likelihood"

    def __init__(
        self,
        kernel: Any = None,
        *,
        likelihood: Any = "probit",
        budget: int = 100,
        novelty: float = 1e-6,
        forget: float = 1.0,
        sweeps: int = 1,
        warmup: int = 0,
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        random_state: Any = None,
        tol: Any = None,
    ) -> None:
        self.kernel = kernel
        self.likelihood = likelihood
        self.budget = budget
        self.novelty = novelty
        self.forget = forget
        self.sweeps = sweeps
        self.warmup = warmup
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.random_state = random_state
        self.tol = tol

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows of the stream, as in `fit`; a call that fails changes nothing.

        The first call needs ``classes``: all classes that the stream will ever have.
        """
        self._check_parameters()
        with self._alone():
            known = self._known_classes(classes)
            X, y = self._validated(X, y, reset=not self.__sklearn_is_fitted__())
            rows = take_rows(X, class_codes(y, known), sample_weight)
            self.classes_ = known
            return self._learn_more(rows)

    def _validated(self, X: Any, y: Any, reset: bool) -> tuple[Array, Array]:
        X, y = validate_inputs(self, X, y, reset=reset)
        check_classification_targets(y)
        return X, y

    def _coded(self, rows: StreamRows) -> StreamRows:
        classes = np.unique(rows.y)
        check_classes(self, classes)
        self.classes_ = classes
        return rows._replace(y=np.searchsorted(classes, rows.y))

    def _check_coded(self, y: Array) -> None:
        if y.dtype.kind != "i" or not np.all((y >= 0) & (y < len(self.classes_))):
            raise StorageError("its stored targets are no codes of its classes")

    def _known_classes(self, classes: Any) -> Array:
        if hasattr(self, "_memory"):
            if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError(
                    f"classes={classes!r} is not the same as on last call to partial_fit, was: "
                    f"{self.classes_!r}; other classes need a new estimator"
                )
            return self.classes_
        if classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        known = np.unique(np.asarray(classes))
        check_classes(self, known)
        return known

    def _model(self) -> Likelihood:
        return likelihood(self.likelihood)

    @property
    def _coding(self) -> Coding:
        return coding(len(self.classes_))

    def _targets(self, y: Array) -> list[Array]:
        return [task.labels for task in self._coding.tasks(y)]

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row of an array (n_samples, n_features)."""
        best = np.argmax(self.predict_log_proba(X), axis=1)
        return self.classes_[best]

    def predict_log_proba(self, X: Any) -> Array:
        """Return log class probabilities of each row, columns in the order of ``classes_``."""
        check_is_fitted(self)
        X = validate_inputs(self, X, reset=False)
        streams = self._current.streams
        return self._coding.scores([label_log_proba(s.likelihood, s.predict(X)) for s in streams])

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities of each row, columns in the order of ``classes_``."""
        return np.exp(self.predict_log_proba(X))


class OnlineGaussianProcessRegressor(RegressorMixin, OnlineEstimator):  # type: ignore[misc]
    """Gaussian process regression of a stream, in constant memory.

    Each example is learned once, in the order of arrival, and only a posterior process over at most
    ``budget`` basis points is kept.

    Parameters
    ----------
    kernel : kernel object or None
        As for `OnlineGaussianProcessClassifier`.
    alpha : float
        Variance of the noise on the targets. A WhiteKernel in the kernel adds to it, and is tuned.
    budget, novelty, forget, sweeps, warmup, optimizer, n_restarts_optimizer, random_state, tol
        As for `OnlineGaussianProcessClassifier`.

    Attributes
    ----------
    basis_points_, kernel_, log_evidence_, n_seen_, n_features_in_, feature_names_in_
        As for `OnlineGaussianProcessClassifier` with two classes.
    prequential_log_loss_ : float
        Mean negative log predictive density of each target just before it was learned.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity import OnlineGaussianProcessRegressor
    >>> X = np.random.default_rng(0).uniform(0.0, 6.0, size=(500, 1))
    >>> reg = OnlineGaussianProcessRegressor(1.0 * RBF(1.0), alpha=0.01, budget=20)
    >>> mean, std = reg.fit(X, np.sin(X[:, 0])).predict([[1.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.5)) < 0.05), len(reg.basis_points_) <= 20
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_CONSTRAINTS,
        "alpha": [Interval(Real, 0, None, closed="left")],
    }
    _dense_class = GaussianProcessRegressor
    _own_parameter = "alpha"

    def __init__(
        self,
        kernel: Any = None,
        *,
        alpha: float = 0.1,
        budget: int = 100,
        novelty: float = 1e-6,
        forget: float = 1.0,
        sweeps: int = 1,
        warmup: int = 0,
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        random_state: Any = None,
        tol: Any = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.budget = budget
        self.novelty = novelty
        self.forget = forget
        self.sweeps = sweeps
        self.warmup = warmup
        self.optimizer = optimizer
        self.n_restarts_optimizer = n_restarts_optimizer
        self.random_state = random_state
        self.tol = tol

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn more rows of the stream, as in `fit`; a call that fails changes nothing."""
        self._check_parameters()
        with self._alone():
            X, y = self._validated(X, y, reset=not self.__sklearn_is_fitted__())
            return self._learn_more(take_rows(X, y, sample_weight))

    def _validated(self, X: Any, y: Any, reset: bool) -> tuple[Array, Array]:
        X, y = validate_inputs(self, X, y, y_numeric=True, reset=reset)
        y = np.asarray(y, dtype=np.float64)
        check_sizes(y)
        return X, y

    def _coded(self, rows: StreamRows) -> StreamRows:
        return rows

    def _check_coded(self, y: Array) -> None:
        if y.dtype.kind != "f":
            raise StorageError("its stored targets are no real numbers")
        check_sizes(y)

    def _model(self) -> Likelihood:
        return Gaussian(float(noise_variances(self.alpha, 1)[0]))

    def _targets(self, y: Array) -> list[Array]:
        return [y]

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the function at each row of an array of shape (n_samples, n_features).

        With ``return_std``, also return the standard deviation. It includes the kernel's own noise
        but not ``alpha``.
        """
        check_is_fitted(self)
        q = self._current.streams[0].predict(validate_inputs(self, X, reset=False))
        return (q.mean, np.sqrt(q.variance)) if return_std else q.mean
