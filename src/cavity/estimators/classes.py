"""What a fitted classifier answers beside its predictions."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from cavity.arrays import Array
from cavity.estimators.blocks import over_blocks
from cavity.estimators.coding import NO_PROBA
from cavity.estimators.common import GaussianProcess
from cavity.estimators.fitted import FittedModel, warn_of_loo
from cavity.estimators.gradients import checked_vectors, class_gradients
from cavity.estimators.intervals import class_sets
from cavity.estimators.validation import check_offset, is_table, validate_inputs


class ClassProcess(ClassifierMixin, GaussianProcess):  # type: ignore[misc]
    """An estimator of targets that are classes."""

    classes_: Array

    def predict_set(
        self, X: Any, level: float = 0.9, allow_empty: bool = True, offset: Any = None
    ) -> Array:
        """Return sets of classes that hold the true one with a probability kept on any table.

        They are those of jackknife+ with the leave-one-out probabilities of this one fit: at least
        2 level − 1 of new rows of the same source have their class in the set, even if the
        probabilities are wrong, and about ``level`` in practice.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        level : float, default 0.9
            Needs at least level/(1 − level) training rows.
        allow_empty : bool, default True
            Where most rows are predicted almost surely, a level below their share can only be kept
            by empty sets: of rows that are unlike those of any class. False puts the most probable
            class into each, and more rows than said have their class in their set.
        offset : float or array-like of shape (n_samples,), optional
            As in `predict_log_proba`.

        Returns
        -------
        sets : ndarray of bool, shape (n_samples, n_classes)
            Which of ``classes_`` are in each row's set.

        Examples
        --------
        >>> from cavity import GaussianProcessClassifier
        >>> from cavity.datasets import load_crabs
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> X, y = load_crabs(return_X_y=True)
        >>> clf = GaussianProcessClassifier(100.0 * RBF(10.0), optimizer=None).fit(X[::2], y[::2])
        >>> sets = clf.predict_set(X[1::2], level=0.95)
        >>> [clf.classes_[row].tolist() for row in sets[:3]]
        [[0, 1], [1], [1]]
        """
        model = self._with_proba()
        if is_table(X):
            options = {"level": level, "allow_empty": allow_empty, "offset": offset}
            found: Array = over_blocks(self, X, "predict_set", **options)
            return found
        warn_of_loo(model)
        return class_sets(model, self._checked(X, offset), level, allow_empty=allow_empty)

    def predict_gradient(self, X: Any, of: str = "probability", offset: Any = None) -> Any:
        """Return how predictions change with the inputs: exact derivatives at each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        of : {"probability", "log_probability", "latent"}, default "probability"
            What is differentiated. "log_probability" is accurate far into the tails.

        Returns
        -------
        gradient : ndarray of shape (n_samples, n_classes, n_features)
            ∂P(class)/∂x, classes in the order of ``classes_``. With ``of="latent"`` two arrays, for
            mean and variance of the latent function, of shape (n_samples, n_features); for more
            than two classes (n_samples, n_problems, n_features), in the order of
            ``base_estimator_.estimators_``, or of ``classes_`` with multi_class="multinomial".

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from cavity import GaussianProcessClassifier
        >>> X = np.linspace(-2.0, 2.0, 20)[:, None]
        >>> clf = GaussianProcessClassifier(RBF(1.0), optimizer=None).fit(X, X[:, 0] > 0.0)
        >>> gradient = clf.predict_gradient([[0.1], [-0.3]])
        >>> gradient.shape, bool(np.all(gradient[:, 1, 0] > 0.0))
        ((2, 2, 1), True)
        """
        X = checked_vectors(self, X)
        return class_gradients(self._fitted, X, of, check_offset(offset, len(X)))

    def _with_proba(self) -> FittedModel:
        """Return the model, which has class probabilities."""
        if not self._fitted.coding.has_proba:
            raise ValueError(NO_PROBA)
        return self._model

    def _checked(self, X: Any, offset: Any) -> tuple[Any, Array | None, Array | None]:
        X = validate_inputs(self, X, reset=False)
        return X, self._own_variance(len(X)), check_offset(offset, len(X))

    @property
    def loo_proba_(self) -> Array:
        """Leave-one-out class probabilities of the training rows, without refitting.

        They count the tuning: to first order, the row had no part in it. When first asked for,
        this takes one evaluation of the evidence for each hyperparameter, unless the tuning was
        hierarchical. If a row has a weight above one, one copy is left out. A row with weight zero
        gets its ordinary prediction.
        """
        model = self._with_proba()
        warn_of_loo(model)
        return np.exp(model.loo_scores())

    @property
    def fixed_kernel_loo_proba_(self) -> Array:
        """The same with the kernel as tuned on all rows: too good, the more so with many scales."""
        model = self._with_proba()
        return np.exp(model.loo_scores(tuned_without=False))

    @property
    def evidence_correction_(self) -> float:
        """Second-order correction of EP's log evidence: the size and sign of its error.

        Like the evidence, it is the mean over the binary problems.
        """
        return self._fitted.evidence_correction()
