"""What the fitted classifier and the fitted regressor have in common."""

from contextlib import suppress
from copy import copy
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from cavity.arrays import Array, NotPositiveDefiniteError
from cavity.estimators.fitted import FittedModel, warn_about
from cavity.estimators.progress import CallbackSupportMixin
from cavity.estimators.validation import check_prior_variance, is_precomputed
from cavity.estimators.versions import VersionedEstimator


class GaussianProcess(CallbackSupportMixin, VersionedEstimator):  # type: ignore[misc]
    """An estimator that keeps a `FittedModel`: what both kinds answer in the same way."""

    kernel: Any
    log_marginal_likelihood_value_: Any
    _model: FittedModel
    # Of new examples, if `with_prior_variance` was told them.
    _prior_variance: Any = None

    @property
    def _fitted(self) -> FittedModel:
        check_is_fitted(self, "_model")
        return self._model

    @property
    def loo_is_believable_(self) -> bool:
        """Whether leave-one-out answers account for the tuning; if not: `cavity.cross_val_tuned`.

        Their names begin with ``loo_``.
        """
        return self._fitted.loo_is_believable

    @property
    def inducing_points_(self) -> Any:
        """The inducing points; a list with those of each binary problem, if there are several."""
        return self._fitted.inducing_points()

    @property
    def inducing_left_over_(self) -> float:
        """Share of the prior variance at the rows that the inducing points leave over."""
        return max(found.left_over for found in self._fitted.coverages())

    @property
    def inducing_gain_(self) -> float | None:
        """Log evidence gained by the last doubling of their number; if small, there are enough."""
        return self._fitted.inducing_gain()

    @property
    def kernel_comparison_(self) -> Any:
        """What kernel="auto" has tried: a table, the best kernel first."""
        return self._fitted.kernel_comparison()

    def log_marginal_likelihood(
        self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        """Return the log evidence at given hyperparameters, or that of the fit.

        ``theta`` holds log hyperparameters; with ``eval_gradient``, the gradient with respect to
        them is also returned. For more than two classes the evidence is the mean over the binary
        problems, and ``theta`` holds either one kernel's values, used for all problems, or those of
        all kernels, concatenated.

        With ``clone_kernel=False`` the model moves to ``theta``: ``kernel_``, predictions and
        evidence are then those at ``theta``, without another tuning. Where the evidence is −∞,
        because there is no positive definite covariance, the model stays as it was.
        """
        if theta is not None and not clone_kernel:
            with suppress(NotPositiveDefiniteError):
                self._model = self._fitted.moved(theta)
                self.log_marginal_likelihood_value_ = self._model.log_evidence()
                warn_about(self._model)
        return self._fitted.log_evidence(theta, eval_gradient)

    def with_prior_variance(self, variance: Any) -> Self:
        """Return this model for predictions at new examples with these prior variances.

        With kernel="precomputed" the covariances of new examples with the training rows do not say
        how uncertain their functions were before. If all training variances are equal, theirs is
        the same and nothing need be said.

        Parameters
        ----------
        variance : array-like of shape (n_samples,)
            The diagonal of the new examples' own covariance matrix.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.gaussian_process.kernels import DotProduct
        >>> from cavity import GaussianProcessClassifier
        >>> kernel, X, X_new = DotProduct(), np.arange(6.0)[:, None], np.array([[0.5], [3.5]])
        >>> clf = GaussianProcessClassifier("precomputed").fit(kernel(X), X[:, 0] > 2.0)
        >>> clf = clf.with_prior_variance(kernel.diag(X_new))
        >>> clf.predict_proba(kernel(X_new, X)).shape
        (2, 2)
        """
        if not is_precomputed(self.kernel):
            raise ValueError("Prior variances can only be given with kernel='precomputed'.")
        found = copy(self)
        found._prior_variance = variance
        return found

    def _own_variance(self, rows: int) -> Array | None:
        """Return the prior variances of new examples if the kernel does not know them."""
        training = self._model.processes[0].X_train_
        return check_prior_variance(self.kernel, training, self._prior_variance, rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags
