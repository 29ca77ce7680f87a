"""Classification of a stream, with scikit-learn's interface."""

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from cavity.arrays import Array
from cavity.estimators.classifier import GaussianProcessClassifier
from cavity.estimators.coding import Coding, class_codes, coding_of, label_log_proba
from cavity.estimators.streaming import Function, OnlineEstimator
from cavity.estimators.streams import StreamRows, check_functions, take_rows
from cavity.estimators.validation import (
    TUNING_CONSTRAINTS,
    check_classes,
    check_offset,
    validate_inputs,
)
from cavity.former import gone
from cavity.likelihoods import Likelihood, likelihood
from cavity.storage import StorageError

__getattr__ = gone(__name__)

ONLINE_CONSTRAINTS: dict[str, Any] = {
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
    kernel : kernel object or None, default None
        Any kernel of `sklearn.gaussian_process.kernels` on vectors, a sum or product of them, or a
        subclass of your own. None is ``1.0 * RBF(1.0)``. Its hyperparameters stay fixed unless
        there is a ``warmup``.
    likelihood : {"probit", "logit", "step", "noisy_probit", "ordinal"} or Likelihood, \
            default "probit"
        Maps latent values to class probabilities. "step" is noise-free: add a WhiteKernel to the
        kernel. Of "noisy_probit" (some labels are wrong) and "ordinal" (classes in the order of
        their labels) a ``warmup`` tunes the parameters as well; without one, the thresholds of
        "ordinal" are those of classes that are equally frequent.
    budget : int, default 100
        Maximum number of basis points. Learning one example takes O(budget²) time.
    novelty : float, default 1e-06
        An input can become a basis point only if the others leave at least this share of its prior
        variance unexplained.
    forget : float, default 1.0
        Factor by which each new example discounts all earlier ones: 1 never forgets, 0.999
        remembers about the last 1000 rows. Forgetting moves predictions back towards the prior.
    sweeps : int, default 1
        In `fit` only: if more than 1, expectation propagation revisits the table, at the basis
        points chosen by the first pass, until it converges or for at most this many sweeps.
    warmup : int, default 0
        Number of rows to collect, and to tune kernel and likelihood on, before learning begins.
    optimizer, n_restarts_optimizer, random_state
        How to tune, as for `GaussianProcessClassifier`.
    tol : float, optional
        Deprecated: the former name of ``novelty``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    basis_points_ : ndarray of shape (n_basis, n_features), or a list of one for each class
    kernel_ : kernel object, or a list of one for each class
    likelihood_ : Likelihood, or a list of one for each class
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
        **ONLINE_CONSTRAINTS,
        "likelihood": [str, Likelihood],
    }

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
        self._keep(locals())

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
    ) -> Self:
        """Learn more rows of the stream, as in `fit`; a call that fails changes nothing.

        The first call needs ``classes``: all classes that the stream will ever have.
        """
        self._check_parameters()
        with self._alone():
            known = self._known_classes(classes)
            X, y = self._validated(X, y, reset=not self.__sklearn_is_fitted__())
            rows = take_rows(X, class_codes(y, known), sample_weight, offset)
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
        codes = np.arange(float(len(self.classes_)))
        return likelihood(self.likelihood).fitted_to(codes)

    @property
    def _coding(self) -> Coding:
        return coding_of(likelihood(self.likelihood), len(self.classes_))

    def _targets(self, y: Array) -> list[Array]:
        return [task.labels for task in self._coding.tasks(y)]

    def _lacking(self, y: Array) -> str:
        count = len(np.unique(y))
        if count == 1:
            return "only one class"
        known = len(self._coding.labels)
        return "" if count == known else f"only {count} of the {known} classes"

    def _tuned_on(self, X: Array, y: Array, **given: Array) -> Function:
        how = "ep" if self._model().concave else "mixture"
        options = {"likelihood": self.likelihood, "inference": how, **self._search}
        dense = GaussianProcessClassifier(self._kernel(), **options).fit(X, y, **given)
        return dense.kernel_, dense.base_estimator_.likelihood.bare

    def predict(self, X: Any, offset: Any = None) -> Array:
        """Return the most probable class of each row of an array (n_samples, n_features)."""
        best = np.argmax(self.predict_log_proba(X, offset), axis=1)
        return self.classes_[best]

    def predict_log_proba(self, X: Any, offset: Any = None) -> Array:
        """Return log class probabilities of each row, columns in the order of ``classes_``."""
        check_is_fitted(self)
        X = validate_inputs(self, X, reset=False)
        streams, added, split = self._current.streams, check_offset(offset, len(X)), self._coding
        check_functions(added, len(streams))
        each = [(stream.likelihood, stream.predict(X, added)) for stream in streams]
        return split.scores([label_log_proba(model, q, split.labels) for model, q in each])

    def predict_proba(self, X: Any, offset: Any = None) -> Array:
        """Return class probabilities of each row, columns in the order of ``classes_``."""
        return np.exp(self.predict_log_proba(X, offset))
