"""Gaussian processes that learn from a stream, with scikit-learn's interface."""

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from cavity.arrays import Array
from cavity.estimators.classifier import GaussianProcessClassifier
from cavity.estimators.coding import ClassTasks, TargetTasks, class_codes
from cavity.estimators.regressor import GaussianProcessRegressor
from cavity.estimators.streaming import OnlineEstimator
from cavity.estimators.streams import StreamRows, take_rows
from cavity.estimators.validation import check_classes, validate_inputs
from cavity.likelihoods import Gaussian, Likelihood, likelihood

_CONSTRAINTS: dict[str, Any] = {
    "kernel": [Kernel, None],
    "budget": [Interval(Integral, 1, None, closed="left")],
    "novelty": [Interval(Real, 1e-10, 1, closed="left")],
    "forget": [Interval(Real, 0, 1, closed="right")],
    "sweeps": [Interval(Integral, 1, None, closed="left")],
    "warmup": [Interval(Integral, 0, None, closed="left")],
    "optimizer": [StrOptions({"fmin_l_bfgs_b"}), callable, None],
    "n_restarts_optimizer": [Interval(Integral, 0, None, closed="left")],
    "random_state": ["random_state"],
    "tol": [Interval(Real, 1e-10, 1, closed="left"), None],
}
_LARGEST_TARGET = 1e100
_SMALLEST_NOISE = 1e-20
"""Noise of zero would make sites of infinite precision."""


class OnlineGaussianProcessClassifier(ClassifierMixin, OnlineEstimator):  # type: ignore[misc]
    """Gaussian process classification of a stream, in constant memory.

    Each example is learned once, in the order of arrival, and only a posterior process over at most
    ``budget`` basis points is kept.

    Parameters
    ----------
    kernel : kernel object or None
        Any kernel of `sklearn.gaussian_process.kernels` on vectors, a sum or product of them, or a
        subclass of your own. None is ``1.0 * RBF(1.0)``. Its hyperparameters stay as they are,
        unless there is a ``warmup``.
    likelihood : {"probit", "logit", "step"} or Likelihood
        From latent values to class probabilities. "step" is noise-free: give the kernel a
        WhiteKernel.
    budget : int
        The most basis points. An example costs O(budget²).
    novelty : float
        The share of an input's prior variance that the basis points must leave unexplained before
        the input becomes one of them.
    forget : float
        By how much all earlier evidence is multiplied with each new example: 1 never forgets, 0.999
        remembers about the last 1000 rows. Predictions fade towards the prior.
    sweeps : int
        In `fit` only: more than one goes over the table again by expectation propagation, at the
        basis points that one pass has chosen, until it converges or for this many sweeps.
    warmup : int
        Rows to collect before learning begins, on which the kernel is tuned by the evidence.
    optimizer, n_restarts_optimizer, random_state
        How to tune, as for `GaussianProcessClassifier`.
    tol : float, optional
        Deprecated: the former name of ``novelty``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    basis_points_ : ndarray of shape (n_basis, n_features), or a list of one for each class
    kernel_ : kernel object, or a list of one for each class
        With tuned hyperparameters, if there was a warm-up.
    log_evidence_ : float
        Running log evidence: each example as predicted by those before it, summed up; EP's after
        several sweeps. The mean over the binary problems for more than two classes.
    prequential_log_loss_ : float
        Mean log loss of predictions made just before each example was learned.
    n_seen_ : int
        Rows seen.
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
        """Learn further rows of the stream; a call that fails changes nothing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,)
            All classes that the stream will ever have; needed in the first call only.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.
        """
        self._check_parameters()
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
        self._check_classes(classes)
        self.classes_ = classes
        return rows._replace(y=np.searchsorted(classes, rows.y))

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
        self._check_classes(known)
        return known

    def _check_classes(self, classes: Array) -> None:
        check_classes(self._model())
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} requires 2 or more distinct classes; got 1 class "
                f"(only class {classes[0]} is present)"
            )

    def _model(self) -> Likelihood:
        return likelihood(self.likelihood)

    def _tasks(self) -> ClassTasks:
        return ClassTasks(len(self.classes_))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        best = np.argmax(self.predict_log_proba(X), axis=1)
        return self.classes_[best]

    def predict_log_proba(self, X: Any) -> Array:
        """Return log class probabilities, columns in the order of ``classes_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        X = validate_inputs(self, X, reset=False)
        answers = [stream.log_proba(X) for stream in self._streams]
        return self._tasks().coding.scores(answers)

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities, columns in the order of ``classes_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
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
        """Learn further rows of the stream; a call that fails changes nothing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.
        """
        self._check_parameters()
        X, y = self._validated(X, y, reset=not self.__sklearn_is_fitted__())
        return self._learn_more(take_rows(X, y, sample_weight))

    def _validated(self, X: Any, y: Any, reset: bool) -> tuple[Array, Array]:
        X, y = validate_inputs(self, X, y, y_numeric=True, reset=reset)
        y = np.asarray(y, dtype=np.float64)
        if np.any(np.abs(y) > _LARGEST_TARGET):
            raise ValueError(f"a target is beyond ±{_LARGEST_TARGET:g}; scale the targets")
        return X, y

    def _coded(self, rows: StreamRows) -> StreamRows:
        return rows

    def _model(self) -> Likelihood:
        return Gaussian(max(float(self.alpha), _SMALLEST_NOISE))

    def _tasks(self) -> TargetTasks:
        return TargetTasks()

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the function.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool
            Whether to return the standard deviation as well: of the function and the kernel's own
            noise, without ``alpha``.
        """
        check_is_fitted(self)
        q = self._streams[0].predict(validate_inputs(self, X, reset=False))
        return (q.mean, np.sqrt(q.variance)) if return_std else q.mean
