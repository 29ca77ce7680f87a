"""What a fitted regressor answers beside its predictions."""

from typing import Any

from sklearn.base import MultiOutputMixin, RegressorMixin

from cavity.arrays import Array
from cavity.estimators.answers import (
    explained,
    loo_log_prob,
    loo_moments,
    outlier_scores,
    target_quantiles,
)
from cavity.estimators.blocks import over_blocks
from cavity.estimators.common import GaussianProcess
from cavity.estimators.fitted import warn_of_loo
from cavity.estimators.gradients import (
    checked_vectors,
    target_and_std_gradients,
    target_gradients,
)
from cavity.estimators.intervals import target_intervals
from cavity.estimators.validation import check_offset, is_table, validate_inputs
from cavity.likelihoods import Gaussian
from cavity.sites import Marginals


class TargetProcess(MultiOutputMixin, RegressorMixin, GaussianProcess):  # type: ignore[misc]
    """An estimator of targets that are numbers."""

    def predict_quantiles(
        self, X: Any, levels: Any = (0.05, 0.5, 0.95), offset: Any = None
    ) -> Array:
        """Return quantiles of the target at new inputs, its noise included.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        levels : sequence of float, default (0.05, 0.5, 0.95)
            Probabilities between 0 and 1.
        offset : float or array-like of shape (n_samples,), optional
            As in `predict`.

        Returns
        -------
        quantiles : ndarray of shape (n_samples, n_levels)
            Of counts, the smallest whole number that is not exceeded with this probability.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from cavity import GaussianProcessRegressor
        >>> X = np.arange(20.0)[:, None]
        >>> y = np.random.default_rng(0).poisson(3.0, 20)
        >>> reg = GaussianProcessRegressor(1.0 * RBF(10.0), likelihood="poisson").fit(X, y)
        >>> reg.predict_quantiles([[4.5]], [0.1, 0.9]).shape
        (1, 2)
        """
        model, X = self._fitted, validate_inputs(self, X, reset=False)
        if len(model.fits) > 1:
            raise ValueError("predict_quantiles needs one target; this model has several.")
        latents = self._latents(X, check_offset(offset, len(X)))
        return target_quantiles(model, latents, levels)

    def predict_interval(
        self, X: Any, level: float = 0.9, offset: Any = None
    ) -> tuple[Array, Array]:
        """Return intervals that hold new targets with a probability that is kept on any table.

        They are those of jackknife+ with the leave-one-out predictions of this one fit, scaled by
        the model's standard deviations. Even where the model is wrong they hold a new target of
        the same source with probability at least 2 level − 1, and with about ``level`` in practice;
        `predict_quantiles` is right only if the model is. With inducing points, or a likelihood
        other than "gaussian", they are the quantiles that leave-one-out shows to be needed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        level : float, default 0.9
            Needs at least level/(1 − level) training rows.
        offset : float or array-like of shape (n_samples,), optional
            As in `predict`.

        Returns
        -------
        lower, upper : ndarrays of shape (n_samples,) or (n_samples, n_targets)

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from cavity import GaussianProcessRegressor
        >>> X = np.linspace(0.0, 6.0, 60)[:, None]
        >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(60)
        >>> reg = GaussianProcessRegressor(1.0 * RBF(1.0), alpha=0.01).fit(X, y)
        >>> lower, upper = reg.predict_interval([[1.0], [4.0]], level=0.8)
        >>> bool(np.all((lower < np.sin([1.0, 4.0])) & (np.sin([1.0, 4.0]) < upper)))
        True
        """
        if is_table(X):
            low, high = over_blocks(self, X, "predict_interval", level=level, offset=offset)
            return low, high
        model, X = self._fitted, validate_inputs(self, X, reset=False)
        warn_of_loo(model)
        new = X, self._own_variance(len(X)), check_offset(offset, len(X))
        return target_intervals(model, new, level)

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Return the share of the deviance that predictions explain, D².

        With likelihood="gaussian", and where the deviance of the target has no name, it is that of
        the variance, R².
        """
        known = self._model.likelihood if hasattr(self, "_model") else Gaussian()
        return explained(known, y, self.predict(X, offset=offset), sample_weight)

    def _latents(self, X: Any, offset: Array | None) -> list[Marginals]:
        return self._model.latents(X, self._own_variance(len(X)), offset)

    def predict_gradient(self, X: Any, return_std: bool = False, offset: Any = None) -> Any:
        """Return how predictions change with the inputs: exact derivatives at each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool, default False
            Whether to also return the gradient of the standard deviation, as in `predict`. Where
            that is zero, at rows without noise, it has a kink and no gradient of use.
        offset : float or array-like of shape (n_samples,), optional
            As in `predict`.

        Returns
        -------
        gradient : ndarray of shape (n_samples, n_features) or (n_samples, n_features, n_targets)
            ∂mean/∂x, or a tuple of this and ∂std/∂x.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from cavity import GaussianProcessRegressor
        >>> X = np.linspace(0.0, 6.0, 30)[:, None]
        >>> reg = GaussianProcessRegressor(1.0 * RBF(1.0), alpha=1e-4).fit(X, np.sin(X[:, 0]))
        >>> bool(abs(reg.predict_gradient([[1.0]])[0, 0] - np.cos(1.0)) < 0.01)
        True
        """
        model, X = self._fitted, checked_vectors(self, X)
        how = target_and_std_gradients if return_std else target_gradients
        return how(model, X, check_offset(offset, len(X)))

    @property
    def loo_mean_(self) -> Array:
        """Leave-one-out prediction of each training target, without refitting.

        It counts the tuning, in which to first order the row had no part. When first asked for,
        this takes one evaluation for each hyperparameter, unless the tuning was hierarchical.
        """
        return self._loo(tuned_without=True)[0]

    @property
    def loo_std_(self) -> Array:
        """Standard deviation of the leave-one-out predictions, noise included."""
        return self._loo(tuned_without=True)[1]

    @property
    def fixed_kernel_loo_mean_(self) -> Array:
        """As `loo_mean_`, with the kernel as tuned on all rows: too good with many scales."""
        return self._loo(tuned_without=False)[0]

    @property
    def fixed_kernel_loo_std_(self) -> Array:
        """As `loo_std_`, with the kernel as tuned on all rows."""
        return self._loo(tuned_without=False)[1]

    def _loo(self, *, tuned_without: bool) -> tuple[Array, Array]:
        if tuned_without:
            warn_of_loo(self._fitted)
        return loo_moments(self._fitted, tuned_without=tuned_without)

    @property
    def loo_log_prob_(self) -> Array:
        """Leave-one-out log density of each target (of counts, its log probability).

        It counts the tuning, as `loo_mean_` does.
        """
        model = self._fitted
        warn_of_loo(model)
        return loo_log_prob(model)

    @property
    def outlier_score_(self) -> Array:
        """How surprising each target is, given all other rows; high for an outlier.

        It is the number of standard deviations by which a Gaussian target as unlikely would be off:
        `cavity.likelihoods.surprise` of the leave-one-out prediction, for every likelihood.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from cavity import GaussianProcessRegressor
        >>> X = np.linspace(0.0, 6.0, 40)[:, None]
        >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(40)
        >>> y[17] += 3.0
        >>> reg = GaussianProcessRegressor(1.0 * RBF(1.0), likelihood="student_t").fit(X, y)
        >>> int(np.argmax(reg.outlier_score_))
        17
        """
        return outlier_scores(self._fitted)
