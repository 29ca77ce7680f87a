"""Regression of a stream, with scikit-learn's interface."""

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from cavity.arrays import Array
from cavity.estimators.answers import explained, warned_moments, warned_quantiles
from cavity.estimators.online import ONLINE_CONSTRAINTS
from cavity.estimators.problems import given_noise, noise_variances, target_likelihood
from cavity.estimators.regressor import GaussianProcessRegressor
from cavity.estimators.sizes import check_sizes
from cavity.estimators.streaming import Function, OnlineEstimator
from cavity.estimators.streams import StreamRows, take_rows
from cavity.estimators.validation import check_offset, validate_inputs
from cavity.likelihoods import Censored, Gaussian, Likelihood
from cavity.sites import Marginals
from cavity.storage import StorageError

_ALPHA = 0.1


class OnlineGaussianProcessRegressor(RegressorMixin, OnlineEstimator):  # type: ignore[misc]
    """Gaussian process regression of a stream, in constant memory.

    Each example is learned once, in the order of arrival, and only a posterior process over at most
    ``budget`` basis points is kept.

    Parameters
    ----------
    kernel : kernel object or None, default None
        As for `OnlineGaussianProcessClassifier`.
    alpha : float, default 0.1
        With likelihood="gaussian", the variance of the noise on the targets. A WhiteKernel in the
        kernel adds to it, and is tuned.
    likelihood : {"gaussian", "poisson", "negative_binomial", "gamma", "student_t", "censored"} or \
            Likelihood, default "gaussian"
        What the targets are, as for `GaussianProcessRegressor`. Parameters of its own are tuned
        with the kernel on the ``warmup``; without one they are those of the object given.
    budget, novelty, forget, sweeps, warmup, optimizer, n_restarts_optimizer, random_state, tol
        As for `OnlineGaussianProcessClassifier`.

    Attributes
    ----------
    basis_points_, kernel_, likelihood_, log_evidence_, n_seen_, n_features_in_, feature_names_in_
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
        **ONLINE_CONSTRAINTS,
        "likelihood": [str, Likelihood],
        "alpha": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        kernel: Any = None,
        *,
        alpha: float = _ALPHA,
        budget: int = 100,
        novelty: float = 1e-6,
        forget: float = 1.0,
        sweeps: int = 1,
        warmup: int = 0,
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        random_state: Any = None,
        tol: Any = None,
        likelihood: Any = "gaussian",
    ) -> None:
        self._keep(locals())

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Learn more rows of the stream, as in `fit`; a call that fails changes nothing."""
        self._check_parameters()
        with self._alone():
            X, y = self._validated(X, y, reset=not self.__sklearn_is_fitted__())
            return self._learn_more(take_rows(X, y, sample_weight, offset))

    def _validated(self, X: Any, y: Any, reset: bool) -> tuple[Array, Array]:
        X, y = validate_inputs(self, X, y, y_numeric=True, reset=reset)
        y = np.asarray(y, dtype=np.float64)
        self._model().check_targets(y)
        check_sizes(y)
        return X, y

    def _coded(self, rows: StreamRows) -> StreamRows:
        return rows

    def _check_coded(self, y: Array) -> None:
        if y.dtype.kind != "f":
            raise StorageError("its stored targets are no real numbers")
        self._model().check_targets(y)
        check_sizes(y)

    def _model(self) -> Likelihood:
        model = target_likelihood(self, _ALPHA)
        if model.quadratic:
            return Gaussian(float(noise_variances(given_noise(self), 1)[0]))
        cut = not isinstance(model, Censored) or (model.lower, model.upper) != (None, None)
        if not (cut or self.warmup):
            raise ValueError(
                "A stream does not show where its targets are cut off: pass "
                "likelihood=Censored(lower=..., upper=...) or a warmup that shows it."
            )
        return model

    def _targets(self, y: Array) -> list[Array]:
        return [y]

    def _lacking(self, y: Array) -> str:
        return "" if len(np.unique(y)) > 1 else "only one value of the target"

    def _tuned_on(self, X: Array, y: Array, **given: Array) -> Function:
        model = self._model()
        own = {"alpha": given_noise(self)} if model.quadratic else {"likelihood": self.likelihood}
        dense = GaussianProcessRegressor(self._kernel(), **own, **self._search).fit(X, y, **given)
        return dense.kernel_, model if model.quadratic else dense.likelihood_

    def predict(self, X: Any, return_std: bool = False, offset: Any = None) -> Any:
        """Predict the mean of the target at each row of an array of shape (n_samples, n_features).

        With ``return_std``, also return a standard deviation: with likelihood="gaussian" that of
        the function, the kernel's own noise included but not ``alpha``, otherwise that of the
        target. ``offset`` is added to each latent value, as in `fit`.
        """
        model, q = self._answer(X, offset)
        if model.quadratic:
            found = q.mean, np.sqrt(q.variance)
        else:
            found = warned_moments(model, q, deviation=return_std)
        return found if return_std else found[0]

    def predict_quantiles(
        self, X: Any, levels: Any = (0.05, 0.5, 0.95), offset: Any = None
    ) -> Array:
        """Return quantiles of the target at new inputs, its noise included; a column for each."""
        return warned_quantiles(*self._answer(X, offset), levels)

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Return the share of the deviance that predictions explain: D², as for the batch."""
        return explained(self.likelihood_, y, self.predict(X, offset=offset), sample_weight)

    def _answer(self, X: Any, offset: Any) -> tuple[Likelihood, Marginals]:
        """Return the likelihood, and the latent values at new inputs."""
        check_is_fitted(self)
        [stream], X = self._current.streams, validate_inputs(self, X, reset=False)
        return stream.likelihood, stream.predict(X, check_offset(offset, len(X)))
