"""Gaussian process classification with scikit-learn's interface."""

from collections.abc import Sequence
from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from cavity.arrays import Array
from cavity.estimators.blocks import in_blocks, over_blocks
from cavity.estimators.classes import ClassProcess
from cavity.estimators.fitted import warn_about
from cavity.estimators.fitting import averaged
from cavity.estimators.large import classes_in_blocks
from cavity.estimators.plans import classes_in_memory
from cavity.estimators.progress import end_fit, whole_fit, with_callbacks
from cavity.estimators.validation import (
    DENSE_CONSTRAINTS,
    check_offset,
    check_tuning,
    is_auto,
    is_table,
    validate_inputs,
)
from cavity.likelihoods import Likelihood, likelihood


class GaussianProcessClassifier(ClassProcess):
    """Gaussian process classification by analytic approximate inference.

    A drop-in replacement for scikit-learn's class of the same name: its parameters keep their names
    and meaning, and those after ``n_jobs`` are new.

    Parameters
    ----------
    kernel : kernel object, "auto", "precomputed" or None, default None
        Any kernel of `sklearn.gaussian_process.kernels`, a sum or product of them, or a subclass
        of your own. "auto" chooses among no inputs, linear, squared exponential, Matérn 5/2 and
        their sums by the integrated evidence; inputs need no scaling. None is
        ``1.0 * RBF(1.0)`` with fixed hyperparameters. With "precomputed", ``X`` holds
        covariances: square in `fit`, (new, training) in `predict`.
    optimizer : "fmin_l_bfgs_b", callable or None, default "fmin_l_bfgs_b"
        How to tune the kernel's hyperparameters by maximising the evidence. None keeps them fixed.
        A callable takes ``(obj_func, initial_theta, bounds)`` and returns ``(theta, minimum)``.
    n_restarts_optimizer : int, default 0
        Number of additional starts of the tuning, drawn log-uniformly within the kernel's bounds.
    max_iter_predict : int, default 100
        Maximum number of iterations of the inference.
    warm_start : bool, default False
        Whether another call to `fit` starts the tuning from the hyperparameters of the last fit.
    copy_X_train : bool, default True
        Whether to keep a copy of the training inputs rather than a reference.
    random_state : int, RandomState instance or None, default None
        Controls the random restarts.
    multi_class : {"one_vs_rest", "one_vs_one", "multinomial"}, default "one_vs_rest"
        How to split more than two classes into binary problems; "multinomial" does not: all classes
        are one problem, with one kernel for the functions of all.
    n_jobs : int or None, default None
        Number of starts to tune in parallel; above 500 rows results may differ by rounding.
    inference : {"ep", "laplace", "variational", "ensemble", "naive", "sequential"} or Method, \
            default "ep"
        How to approximate the posterior. To set options, pass an object of `cavity.inference`, such
        as ``EP(power=0.5)``; its ``tol`` and ``max_iter`` then replace those of the estimator.
    likelihood : {"probit", "logit", "step"} or Likelihood, default "probit"
        Maps latent values to class probabilities. "step" is noise-free: add a WhiteKernel to the
        kernel. Laplace and variational inference need a smooth likelihood.
    tol : float or None, default None
        Dimensionless residual at which the inference stops. None uses the method's default.
    hyperprior : None, "hierarchical" or Hyperprior, default None
        Prior of the hyperparameters. None maximises the evidence, as scikit-learn does, which
        overfits many length scales. "hierarchical" lets them deviate from a common level by a
        spread that is learned, as kernel="auto" does. `cavity.evidence.LogNormal`, or your own
        `cavity.evidence.Hyperprior`, is added to the log evidence.
    average_hyperparameters : int, default 0
        Over how many random hyperparameters predictions are averaged, at the cost of one inference
        in `fit` for each; 0 uses the best ones only.
    n_inducing : int, "auto" or None, default None
        Number of inducing points; with them, time is proportional to the number of rows. "auto" has
        none up to 3,000 rows (1,500 if the kernel is chosen) and up to 500 beyond.
    inducing_points : array-like of shape (m, n_features) or None, default None
        Inducing points of your own.
    mean : "linear" or None, default None
        The mean of the latent function: a trend that is linear in the inputs, tuned with the
        kernel, or zero.
    verbose : int, default 0
        1 prints a line for each start of the tuning, 2 also prints one for each evaluation.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_classes_ : int
    kernel_ : kernel object
    log_marginal_likelihood_value_ : float
        Approximate log evidence; the mean over the binary problems for more than two classes.
    loo_proba_, fixed_kernel_loo_proba_ : ndarrays of shape (n_samples, n_classes)
    kernel_comparison_ : table of the kernels that kernel="auto" has tried
    inducing_points_, inducing_left_over_, inducing_gain_ : arrays or lists of arrays, floats
    converged_, n_iter_ : bool and int
    base_estimator_ : object
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity import GaussianProcessClassifier
    >>> from cavity.datasets import load_crabs
    >>> X, y = load_crabs(return_X_y=True)
    >>> clf = GaussianProcessClassifier(100.0 * RBF(10.0), optimizer=None).fit(X, y)
    >>> clf.predict_proba(X[:2]).shape, clf.loo_proba_.shape
    ((2, 2), (200, 2))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DENSE_CONSTRAINTS,
        "max_iter_predict": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "multi_class": [StrOptions({"one_vs_rest", "one_vs_one", "multinomial"})],
        "likelihood": [str, Likelihood],
        "tol": [Interval(Real, 0, None, closed="neither"), None],
    }

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
    ) -> None:
        self._keep(locals())

    # Where a warm start begins, for each binary problem.
    _thetas: Sequence[Array] = ()

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> "GaussianProcessClassifier":
        """Tune the kernel by maximising the evidence, then infer the posterior.

        ``X`` is an array of shape (n_samples, n_features) or a list of objects the kernel takes,
        and ``y`` has class labels of any type. ``sample_weight`` is how often each example counts:
        a row with weight 2 counts twice, a row with weight 0 is left out. ``offset`` is added to
        each row's latent value.
        """
        with whole_fit(self):
            self._fit(X, y, sample_weight, offset)
        warn_about(self._model)
        return self

    @with_callbacks  # type: ignore[untyped-decorator]
    def _fit(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> None:
        self._validate_params()
        check_tuning(self)
        prepare = classes_in_blocks if in_blocks(self, X) else classes_in_memory
        before = self._thetas if self.warm_start and not is_auto(self.kernel) else ()
        task = prepare(self, X, y, sample_weight, offset, before)
        processes, comparison = task.way(self, task.setting)
        processes = averaged(self, task.setting.rngs, processes)
        self._model = task.model(processes, comparison=comparison)
        self.classes_, self.n_classes_ = task.classes, self._model.coding.n_classes
        self._thetas = [process.evaluation.theta for process in processes]
        self.log_marginal_likelihood_value_ = self._model.log_evidence()
        reports = [fit.report for fit in self._model.fits]
        self.converged_ = all(report.converged for report in reports)
        self.n_iter_ = max(report.n_iter for report in reports)
        end_fit(self, X, y, sample_weight)

    def predict(self, X: Any, offset: Any = None) -> Array:
        """Return the most probable class of each row of an array (n_samples, n_features)."""
        check_is_fitted(self, "_model")
        if is_table(X):
            return over_blocks(self, X, "predict", offset=offset)
        if self.n_classes_ == 2 and likelihood(self.likelihood).symmetric:
            # The sign of the mean is enough; no variance is needed.
            X = validate_inputs(self, X, reset=False)
            mean = self._model.means(X, check_offset(offset, len(X)))[0]
            return self.classes_[(mean > 0).astype(int)]
        return self.classes_[np.argmax(self._model.scores(*self._checked(X, offset)), axis=1)]

    def predict_log_proba(self, X: Any, offset: Any = None) -> Array:
        """Return log class probabilities of each row, accurate far into the tails.

        Columns are in the order of ``classes_``.
        """
        model = self._with_proba()
        if is_table(X):
            found: Array = over_blocks(self, X, "predict_log_proba", offset=offset)
            return found
        return model.scores(*self._checked(X, offset))

    def predict_proba(self, X: Any, offset: Any = None) -> Array:
        """Return class probabilities of each row; otherwise like `predict_log_proba`."""
        return np.exp(self.predict_log_proba(X, offset))

    @property
    def base_estimator_(self) -> Any:
        """The latent process, or an object with a list ``estimators_`` of them."""
        processes = self._fitted.processes
        return processes[0] if len(processes) == 1 else SimpleNamespace(estimators_=processes)

    @property
    def kernel_(self) -> Any:
        """The kernel with its tuned hyperparameters; a CompoundKernel for several problems."""
        kernels = [process.kernel_ for process in self._fitted.processes]
        return kernels[0] if len(kernels) == 1 else CompoundKernel(kernels)

    def latent_mean_and_variance(self, X: Any, offset: Any = None) -> tuple[Array, Array]:
        """Return mean and variance of the latent function at each row.

        With multi_class="multinomial" both have a column for each class; otherwise only two classes
        have one function.
        """
        check_is_fitted(self, "_model")
        if len(self._model.processes) > 1:
            raise ValueError(
                "Returning the mean and variance of the latent function f is only supported for "
                f"binary classification, received {self.n_classes_} classes."
            )
        mean, spread = self._model.latents(*self._checked(X, offset))[0]
        return mean, np.einsum("icc->ic", spread) if spread.ndim == 3 else spread


def start_from(
    classifier: GaussianProcessClassifier, kernels: list[Kernel]
) -> GaussianProcessClassifier:
    """Make a classifier with ``warm_start`` start its fit with one kernel per binary problem."""
    classifier._thetas = [kernel.theta for kernel in kernels]
    return classifier
