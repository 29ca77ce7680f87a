"""Checks of user input, made once here and relied on everywhere else."""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from cavity.arrays import Array
from cavity.estimators.sizes import check_columns, check_sizes, check_weights
from cavity.evidence import Hyperprior
from cavity.inference import Method
from cavity.kernels import Precomputed, Rule, rule
from cavity.likelihoods import Likelihood, likelihood

# Constraints for scikit-learn's check of the parameters that several estimators share.
TUNING_CONSTRAINTS: dict[str, Any] = {
    "optimizer": [StrOptions({"fmin_l_bfgs_b"}), callable, None],
    "n_restarts_optimizer": [Interval(Integral, 0, None, closed="left")],
    "random_state": ["random_state"],
}
DENSE_CONSTRAINTS: dict[str, Any] = {
    **TUNING_CONSTRAINTS,
    "kernel": [Kernel, StrOptions({"precomputed", "auto"}), None],
    "hyperprior": [StrOptions({"hierarchical"}), Hyperprior, None],
    "average_hyperparameters": [Interval(Integral, 0, None, closed="left")],
    "copy_X_train": ["boolean"],
    "inference": [str, Method],
    "n_inducing": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
    "inducing_points": ["array-like", None],
    "mean": [StrOptions({"linear"}), None],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
}
_MOST_COPIES = 20_000


def is_table(X: Any) -> bool:
    """Whether X is a table in blocks, such as `cavity.rows` has them, and not an array."""
    return all(callable(getattr(X, name, None)) for name in ("reduce", "collect", "drop"))


def is_precomputed(kernel: Any) -> bool:
    """Whether the inputs are covariances."""
    return isinstance(kernel, str) and kernel == "precomputed"


def is_auto(kernel: Any) -> bool:
    """Whether the kernel is to be chosen."""
    return isinstance(kernel, str) and kernel == "auto"


def check_tuning(estimator: BaseEstimator) -> None:
    """Reject a kernel with several matrices, and parameters that contradict each other."""
    _check_single(estimator.kernel)
    auto, prior, how = is_auto(estimator.kernel), estimator.hyperprior, estimator.optimizer
    if auto and how != "fmin_l_bfgs_b":
        raise ValueError(
            "kernel='auto' is tuned by its own search: leave optimizer at 'fmin_l_bfgs_b', or "
            "pass a kernel object."
        )
    if auto and isinstance(prior, Hyperprior):
        raise ValueError(
            "kernel='auto' brings its own hierarchical prior: leave hyperprior at None, or pass "
            "a kernel object that your prior is for."
        )
    if callable(how) and prior == "hierarchical":
        raise ValueError(
            "hyperprior='hierarchical' is tuned by its own search: leave optimizer at "
            "'fmin_l_bfgs_b'."
        )


def validate_inputs(
    estimator: BaseEstimator, X: Any, y: Any = "no_validation", **options: Any
) -> Any:
    """Check inputs (and targets) with scikit-learn's own errors; vectors become float64.

    A target of None is an error, as in scikit-learn; if omitted, only the inputs are checked.
    """
    if is_table(X):
        raise ValueError("This needs an array, not a table in blocks: pass some rows as an array.")
    kernel = estimator.kernel
    objects = isinstance(kernel, Kernel) and not kernel.requires_vector_input
    kind = {"ensure_2d": False, "dtype": None} if objects else {"dtype": np.float64}
    # scikit-learn looks for what is not finite in a sum, which may overflow.
    with np.errstate(over="ignore", invalid="ignore"):
        found = validate_data(estimator, X, y, **kind, **options)
    if isinstance(found, tuple) and is_precomputed(kernel):
        _check_square(found[0])
    elif isinstance(found, tuple) and not objects and _needs_spreads(estimator):
        check_columns(found[0], getattr(estimator, "feature_names_in_", None))
    return found


def _needs_spreads(estimator: Any) -> bool:
    """Whether a fit takes the spread of each column."""
    options = ("hyperprior", "mean", "n_inducing", "inducing_points")
    return is_auto(estimator.kernel) or any(
        getattr(estimator, name, None) is not None for name in options
    )


def check_variances(rule: Rule, X: Any) -> None:
    """Reject inputs where the kernel's variance overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        bad = np.flatnonzero(~np.isfinite(rule.diag(X)))
    if len(bad):
        raise ValueError(
            f"the kernel's variance is not finite at row {bad[0]}: its inputs are too large "
            f"for {rule.kernel}; scale the inputs"
        )


def require_numbers(*answers: Array) -> None:
    """Refuse answers that are not finite: a posterior of huge numbers, or one that is none."""
    if not all(np.all(np.isfinite(part)) for part in answers):
        raise ValueError(
            "the posterior's numbers are too large to predict with, or contradict each other: fit "
            "the model again, to inputs and targets of usual size"
        )


def _check_square(K: Array) -> None:
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"With kernel='precomputed' X must be the square matrix of covariances among the "
            f"training examples; got shape {K.shape}."
        )
    if not np.allclose(K, K.T, rtol=1e-8, atol=1e-12 * np.max(np.abs(K))):
        raise ValueError("With kernel='precomputed' the matrix must be symmetric; it is not.")


def kernel_rule(kernel: Any, default: Kernel) -> Rule:
    """Return the rule of a copy of the kernel, or of the default."""
    if is_precomputed(kernel):
        return Precomputed()
    if is_auto(kernel):
        return rule(default)
    _check_single(kernel)
    return rule(default if kernel is None else clone(kernel))


def _check_single(kernel: Any) -> None:
    if isinstance(kernel, CompoundKernel):
        raise ValueError("kernel cannot be a CompoundKernel; pass one of its kernels")


def check_classes(classifier: BaseEstimator, classes: Array) -> None:
    """Reject a likelihood that is not for labels or so many classes, and a single class."""
    model = likelihood(classifier.likelihood)
    if model.support not in ("signs", "codes"):
        raise ValueError(
            f"{model!r} is for {model.expects}: a classifier needs a likelihood for "
            "labels, such as 'probit' or 'logit'; real targets need GaussianProcessRegressor."
        )
    if len(classes) < 2:
        raise ValueError(
            f"{type(classifier).__name__} requires 2 or more distinct classes; got 1 class "
            f"(only class {classes[0]} is present)"
        )
    if model.n_classes not in (None, len(classes)):
        raise ValueError(
            f"{model!r} is for {model.n_classes} classes, and there are {len(classes)}: pass one "
            "threshold less than there are classes, or likelihood='ordinal' for those of y."
        )


def check_offers(model: Likelihood, method: Method) -> None:
    """Reject a likelihood that does not offer what the inference needs."""
    if not model.concave and not method.serves(model):
        raise ValueError(
            f"inference={method.name!r} needs a log-concave likelihood, which {model!r} is not; "
            "use inference='mixture'."
        )
    if not method.serves(model):
        raise ValueError(
            f"inference={method.name!r} needs the likelihood's {method.needs}, which "
            f"{model!r} does not have; use another inference (such as 'ep') or a smooth "
            "likelihood ('probit' or 'logit')."
        )


def check_prior_variance(kernel: Any, training: Array, given: Any, rows: int) -> Array | None:
    """Return prior variances of new inputs, given or as in training; only if precomputed."""
    if not is_precomputed(kernel):
        return None
    if given is None:
        diagonal = np.diagonal(training)
        if not np.allclose(diagonal, diagonal[0], rtol=1e-10):
            raise ValueError(
                "The precomputed kernel's variance differs from example to example: predict with "
                "with_prior_variance(diagonal of the new examples' own covariance matrix)."
            )
        return np.full(rows, diagonal[0])
    variance = np.asarray(given, dtype=np.float64)
    if variance.shape != (rows,):
        raise ValueError(f"the prior variances must have shape {(rows,)}; got {variance.shape}.")
    return variance


class RowMap(NamedTuple):
    """Which examples are trained on, how often each counts, and where each given one went."""

    index: Array
    """Rows of the table, in training order; an example may appear several times."""
    weight: Array
    """How often each of these counts."""
    position: Array
    """For each row of the table its first place in ``index``, or −1 if it has no weight."""


def check_rows(sample_weight: Any, X: Any, labels: Array, rule: Rule, *, merge: bool) -> RowMap:
    """Turn sample weights into rows and how often each counts.

    Rows without weight are left out, and equal examples become one that counts several times: a
    table gives the same fit whether it repeats a row or weighs it. Under a kernel with noise of
    its own (a WhiteKernel) each copy has its own noise, and integer weights repeat the row instead.
    Equal examples have equal labels as well; ``merge`` is False if their order matters.
    """
    weight = check_weights(sample_weight, len(X))
    if not np.any(weight):
        raise ValueError("All sample weights are zero: there is nothing to learn from.")
    if sample_weight is not None and np.any(rule.noise(X)):
        whole = np.all(weight == np.round(weight))
        _check_copies(weight if whole else np.ones(len(X)))
        return _apart(weight, weight.astype(int) if whole else np.ones(len(X), int))
    if merge and isinstance(X, np.ndarray):
        merged = _merged(weight, np.column_stack([X, labels]))
        if sample_weight is not None or (len(merged.index) < len(X) and not np.any(rule.noise(X))):
            return merged
    return _apart(weight, np.ones(len(X), int))


def _check_copies(weight: Array) -> None:
    """Refuse more copies than have a covariance that can be worked with."""
    total = float(np.sum(weight))
    if total > max(_MOST_COPIES, len(weight)):
        raise ValueError(
            f"Under a kernel with noise of its own (WhiteKernel), sample_weight repeats rows: "
            f"{total:.6g} of them are too many (at most {_MOST_COPIES:,}). Leave the noise to the "
            "likelihood, or divide the weights by a number that is not whole."
        )


def _apart(weight: Array, copies: Array) -> RowMap:
    """Leave out rows without weight, and share each other row's weight among its copies."""
    index = np.flatnonzero(weight)
    counts = copies[index]
    position = np.full(len(weight), -1)
    position[index] = np.cumsum(counts) - counts
    return RowMap(np.repeat(index, counts), np.repeat(weight[index] / counts, counts), position)


def _merged(weight: Array, examples: Array) -> RowMap:
    """Merge equal examples, in an order that depends on their values alone."""
    used = np.flatnonzero(weight)
    _, first, place = np.unique(examples[used], axis=0, return_index=True, return_inverse=True)
    position = np.full(len(weight), -1)
    position[used] = place.ravel()
    return RowMap(used[first], np.bincount(place.ravel(), weights=weight[used]), position)


def check_n_targets(regressor: Any, y: Array) -> None:
    """Reject another number of targets than was declared."""
    seen = y.shape[1] if y.ndim == 2 else 1
    if regressor.n_targets is not None and seen != regressor.n_targets:
        raise ValueError(
            "The number of targets seen in `y` is different from the parameter `n_targets`. "
            f"Got {seen} != {regressor.n_targets}."
        )


def check_targets(regressor: Any, model: Likelihood, y: Array, offset: Array | None) -> None:
    """Reject targets that the likelihood is not for, and several where only one can be."""
    check_n_targets(regressor, y)
    model.check_targets(y)
    check_sizes(y)
    check_added(regressor, offset, 1 if y.ndim == 1 else y.shape[1], "targets")
    if y.ndim == 2 and y.shape[1] > 1 and not model.quadratic:
        raise ValueError(
            f"{type(model).__name__} is for one target; y has {y.shape[1]}: fit one model for each."
        )


def check_added(estimator: Any, offset: Array | None, count: int, what: str) -> None:
    """Reject an offset or a trend where there are several latent functions, or no inputs."""
    if estimator.mean is None and offset is None:
        return
    if count > 1:
        raise ValueError(
            f"offset and mean='linear' need one latent function; {count} {what} have one each."
        )
    if estimator.mean is None:
        return
    if is_precomputed(estimator.kernel) or is_auto(estimator.kernel):
        raise ValueError(
            "mean='linear' needs inputs and a kernel object: with kernel='precomputed' there are "
            "no inputs, and kernel='auto' has a linear part of its own."
        )
    if isinstance(estimator.kernel, Kernel) and not estimator.kernel.requires_vector_input:
        raise ValueError("mean='linear' needs inputs that are vectors; this kernel takes objects.")


def select_rows(X: Any, index: Array) -> Any:
    """Return these rows of a table, or these entries of a list."""
    return X[index] if isinstance(X, np.ndarray) else [X[i] for i in index]


def unweighted_rows(
    estimator: BaseEstimator, X: Any, rows: RowMap, offset: Array | None = None
) -> tuple[Any, Array | None, Array | None]:
    """Return inputs without weight, if precomputed their prior variances, and their offsets."""
    index = np.flatnonzero(rows.position < 0)
    variance = np.diagonal(X)[index] if is_precomputed(estimator.kernel) else None
    return select_rows(X, index), variance, None if offset is None else offset[index]


def check_offset(offset: Any, n: int) -> Array | None:
    """Return what is added to each row's latent value, or None."""
    if offset is None:
        return None
    found = np.asarray(offset, dtype=np.float64)
    if found.shape not in ((), (n,)) or not np.all(np.isfinite(found)):
        raise ValueError(
            f"offset must be a finite number, or one for each of the {n} rows; got "
            f"{'values that are not finite' if found.shape in ((), (n,)) else found.shape}."
        )
    return np.broadcast_to(found, (n,))


def training_inputs(estimator: BaseEstimator, X: Any, index: Array) -> Any:
    """Return the inputs to keep for these training rows; a copy if wanted."""
    if is_precomputed(estimator.kernel):
        return X[np.ix_(index, index)]
    if not estimator.copy_X_train and len(index) == len(X):
        return X
    return select_rows(X, index)
