"""Gaussian process regression with scikit-learn's interface."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from cavity.arrays import Array, add_to_diagonal, cholesky, copy
from cavity.estimators.answers import (
    drawn_targets,
    target_means,
    target_moments,
    user_likelihood,
)
from cavity.estimators.blocks import in_blocks, over_blocks
from cavity.estimators.fitted import require_dense, warn_about
from cavity.estimators.fitting import averaged
from cavity.estimators.large import targets_in_blocks
from cavity.estimators.plans import targets_in_memory
from cavity.estimators.problems import regressor_rule
from cavity.estimators.progress import end_fit, whole_fit, with_callbacks
from cavity.estimators.targets import TargetProcess
from cavity.estimators.validation import (
    DENSE_CONSTRAINTS,
    check_offset,
    check_tuning,
    is_auto,
    is_precomputed,
    is_table,
    validate_inputs,
)
from cavity.likelihoods import Likelihood


class GaussianProcessRegressor(TargetProcess):
    """Gaussian process regression.

    A drop-in replacement for scikit-learn's class of the same name: its parameters keep their names
    and meaning, and those after ``random_state`` are new.

    Parameters
    ----------
    kernel : kernel object, "auto", "precomputed" or None, default None
        Any kernel of `sklearn.gaussian_process.kernels`, a sum or product of them, or a subclass
        of your own. "auto" chooses among no inputs, linear, squared exponential, Matérn 5/2 and
        their sums by the integrated evidence; inputs need no scaling. It includes noise and
        implies ``normalize_y``. None is ``1.0 * RBF(1.0)``. With "precomputed", ``X`` holds
        covariances: square in `fit`, (new, training) in `predict`.
    alpha : float or ndarray of shape (n_samples,), default 1e-10
        Variance of the noise on the training targets.
    optimizer : "fmin_l_bfgs_b", callable or None, default "fmin_l_bfgs_b"
        How to tune the kernel's hyperparameters by maximising the evidence. None keeps them fixed.
    n_restarts_optimizer : int, default 0
        Number of additional starts, drawn log-uniformly within the kernel's bounds.
    normalize_y : bool, default False
        Whether to scale the targets to zero mean and unit variance before fitting; of counts and
        amounts, whose mean is e^f, the log of their mean is added to f instead.
    copy_X_train : bool, default True
        Whether to keep a copy of the training inputs rather than a reference.
    n_targets : int or None, default None
        Number of targets, for predictions from the prior before `fit`.
    random_state : int, RandomState instance or None, default None
        Controls the random restarts.
    inference : {"auto", "exact", "ep", "laplace", "variational", "mixture", ...} or Method, \
            default "auto"
        "auto" is "exact" with Gaussian noise, where the next three give the same posterior,
        "mixture" for targets with outliers, and "ep" otherwise. "ensemble", "naive" and
        "sequential" are for study.
    n_jobs : int or None, default None
        Number of starts to tune in parallel; above 500 rows results may differ by rounding.
    hyperprior : None, "hierarchical" or Hyperprior, default None
        Prior of the hyperparameters. None maximises the evidence, as scikit-learn does, which
        overfits many length scales. "hierarchical" lets them deviate from a common level by a
        spread that is learned, as kernel="auto" does. `cavity.evidence.LogNormal`, or your own
        `cavity.evidence.Hyperprior`, is added to the log evidence.
    average_hyperparameters : int, default 0
        Over how many random hyperparameters predictions are averaged, at the cost of one inference
        for each; 0 uses the best ones only.
    n_inducing : int, "auto" or None, default None
        Number of inducing points; with them, time is proportional to the number of rows. "auto" has
        none up to 3,000 rows (1,500 if the kernel is chosen) and up to 500 beyond.
    inducing_points : array-like of shape (m, n_features) or None, default None
        Inducing points of your own.
    verbose : int, default 0
        1 prints a line for each start of the tuning, 2 also prints one for each evaluation.
    likelihood : {"gaussian", "poisson", "negative_binomial", "gamma", "student_t", "censored"} or \
            Likelihood, default "gaussian"
        What the targets are: real numbers, counts (the next two, with mean e^f), positive amounts
        (mean e^f), real numbers with outliers, or real numbers cut off at limits. Its own
        parameters are tuned with the kernel's hyperparameters.
    mean : "linear" or None, default None
        The mean of the latent function: a trend that is linear in the inputs, tuned with the
        kernel, or zero.

    Attributes
    ----------
    kernel_ : kernel object
    likelihood_ : Likelihood
        With its tuned parameters, in the units of the targets; of several targets that are scaled
        it has the noise of each, on the last axis.
    log_marginal_likelihood_value_ : float
        Log evidence, summed over the targets.
    alpha_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
    L_ : ndarray of shape (n_samples, n_samples)
    X_train_, y_train_ : training inputs, equal ones merged, and targets; None if inducing
    loo_mean_, loo_std_, fixed_kernel_loo_mean_, fixed_kernel_loo_std_ : ndarrays of shape \
            (n_samples,) or (n_samples, n_targets)
    loo_log_prob_, outlier_score_ : ndarrays of shape (n_samples,) or (n_samples, n_targets)
    kernel_comparison_ : table of the kernels that kernel="auto" has tried
    inducing_points_, inducing_left_over_, inducing_gain_ : arrays or lists of arrays, floats
    n_features_in_, feature_names_in_ : int and ndarray of str

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity import GaussianProcessRegressor
    >>> X = np.linspace(0.0, 6.0, 30)[:, None]
    >>> reg = GaussianProcessRegressor(1.0 * RBF(1.0), alpha=0.01).fit(X, np.sin(X[:, 0]))
    >>> mean, std = reg.predict([[1.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.5)) < 3 * std[0])
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DENSE_CONSTRAINTS,
        "alpha": [Interval(Real, 0, None, closed="left"), np.ndarray],
        "normalize_y": ["boolean"],
        "likelihood": [str, Likelihood],
        "n_targets": [Interval(Integral, 1, None, closed="left"), None],
    }

    y_train_: Any

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
    ) -> None:
        self._keep(locals())

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> "GaussianProcessRegressor":
        """Tune the kernel by maximising the evidence, then infer the posterior.

        ``X`` is an array of shape (n_samples, n_features) or a list of objects the kernel takes,
        and ``y`` has shape (n_samples,) or (n_samples, n_targets). ``sample_weight`` is how often
        each example counts: a row with weight 2 counts twice, a row with weight 0 is left out.
        ``offset`` is added to each row's latent value: a mean function of your own or, where the
        mean of the target is its exponential, the log of the exposure.
        """
        with whole_fit(self):
            self._fit(X, y, sample_weight, offset)
        warn_about(self._model)
        return self

    @with_callbacks  # type: ignore[untyped-decorator]
    def _fit(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> None:
        self._validate_params()
        check_tuning(self)
        prepare = targets_in_blocks if in_blocks(self, X) else targets_in_memory
        task = prepare(self, X, y, sample_weight, offset)
        processes, comparison = task.way(self, task.setting)
        processes = averaged(self, task.setting.rngs, processes)
        self._model = task.model(processes, comparison=comparison)
        self.X_train_, self.y_train_ = self._model.inputs(), task.targets
        self.log_marginal_likelihood_value_ = self._model.log_evidence()
        self.likelihood_ = user_likelihood(self._model)
        end_fit(self, X, y, sample_weight)

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        offset: Any = None,
    ) -> Any:
        """Predict the mean of the target, E[y]; before `fit`, from the prior.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool, default False
            Whether to also return the standard deviation: with likelihood="gaussian" that of the
            latent function (as in scikit-learn, without ``alpha``), otherwise that of the target.
        return_cov : bool, default False
            Whether to also return the joint covariance, of shape (n_samples, n_samples) or
            (n_samples, n_samples, n_targets); not with ``return_std``, and with
            likelihood="gaussian" only.
        offset : float or array-like of shape (n_samples,), optional
            What is added to each latent value, as in `fit`; 0 if not given.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        if is_table(X):
            options = {"return_std": return_std, "return_cov": return_cov, "offset": offset}
            return over_blocks(self, X, "predict", **options)
        fitted = hasattr(self, "_model")
        X = validate_inputs(self, X, reset=not fitted)
        if not fitted:
            return self._predict_prior(X, return_std, return_cov)
        model, offset = self._model, check_offset(offset, len(X))
        if return_cov or not return_std:
            cov = self._covariance(X) if return_cov else None
            mean = target_means(model, X, offset)
            return (mean, cov) if return_cov else mean
        return target_moments(model, self._latents(X, offset))

    def _predict_prior(self, X: Any, return_std: bool, return_cov: bool) -> Any:
        if is_auto(self.kernel):
            check_is_fitted(self, "_model")
        rule, count = regressor_rule(self), self.n_targets or 1
        targets = () if count == 1 else (count,)
        mean = np.zeros((len(X), *targets))
        if not (return_std or return_cov):
            return mean
        spread = rule.matrix(X) if return_cov else np.sqrt(rule.diag(X))
        return mean, np.multiply.outer(spread, np.ones(targets))

    def _covariance(self, X: Any) -> Array:
        if not self._model.likelihood.quadratic:
            raise ValueError(
                "return_cov needs likelihood='gaussian': targets of other likelihoods are not "
                "jointly Gaussian. Use return_std, predict_quantiles or sample_y."
            )
        if is_precomputed(self.kernel):
            raise ValueError(
                "With kernel='precomputed' the covariances among new examples are not available: "
                "return_cov needs a kernel object."
            )
        covariance = self._model.processes[0].covariance(X)
        return np.multiply.outer(covariance, np.squeeze(self._model.scale**2))

    # Private in scikit-learn as well, but its tests and packages that convert its models read them.
    @property
    def _y_train_mean(self) -> Any:
        return self._fitted.origin

    @property
    def _y_train_std(self) -> Any:
        return self._fitted.scale

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Draw ``n_samples`` functions from the posterior (or the prior) at given inputs.

        The last axis of the result runs over the functions, after those of inputs and targets. With
        another likelihood than "gaussian", targets are drawn, given such functions.
        """
        rng = check_random_state(random_state)
        if hasattr(self, "_model") and not self._model.likelihood.quadratic:
            X = validate_inputs(self, X, reset=False)
            return drawn_targets(self._model, X, n_samples, rng)
        mean, cov = self.predict(X, return_cov=True)
        if mean.ndim == 1:
            return rng.multivariate_normal(mean, cov, n_samples).T
        each = zip(mean.T, np.moveaxis(cov, 2, 0), strict=True)
        return np.stack([rng.multivariate_normal(m, C, n_samples).T for m, C in each], axis=1)

    @property
    def kernel_(self) -> Any:
        """The kernel with its tuned hyperparameters."""
        return self._fitted.processes[0].kernel_

    @property
    def alpha_(self) -> Array:
        """Dual coefficients: predictions are ``K(X, X_train_) @ alpha_``."""
        require_dense(self._fitted, "alpha_")
        columns = np.stack([fit.posterior.alpha for fit in self._model.processes[0].fits], axis=1)
        return columns.reshape(self.y_train_.shape)

    @property
    def L_(self) -> Array:
        """Lower Cholesky factor of the training covariance, noise included."""
        require_dense(self._fitted, "L_")
        rows = self._model.rows
        noise = self._model.noise[rows.index] / rows.weight
        return cholesky(add_to_diagonal(copy(self._model.processes[0].evaluation.prior.K), noise))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
