"""Learning curves by brute force: draw training sets, refit, predict the rest."""

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from cavity.model_selection.curve import LearningCurve, solved
from cavity.model_selection.pools import DEFAULT_SIZES, check_resampling, check_sizes, pools_of
from cavity.model_selection.refit_source import RefitSource
from cavity.model_selection.refits import Draws, Refitter, refit_all


def simulate_learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    train_sizes: Any = DEFAULT_SIZES,
    resampling: str = "subsample",
    n_repeats: int = 100,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> LearningCurve:
    """Return the error on unseen data, averaged over training sets of any size, by refitting.

    The slow truth that `learning_curve` predicts. Kernel, preprocessing and the normalisation of
    the target stay as they were fitted to the whole table; inference is the estimator's own.

    Parameters
    ----------
    estimator, X, y, train_sizes, resampling
        As in `learning_curve`.
    n_repeats : int
        How many training sets of each size, at least two. At m = n without replacement each
        leaves out another example: never more than n of them.
    sample_weight : array-like of shape (n_samples,), optional
        A population in which some examples are drawn (and judged) more often than others. Without
        replacement each example then enters by itself, and the size holds on average.
    n_jobs : int or None
        How many refits go on at a time; each keeps to one thread of BLAS. Changes nothing but the
        time.
    random_state : int, RandomState instance or None
        Draws the training sets. Those of one size do not depend on the other sizes.
    verbose : int
        1 prints a line about each size.

    Returns
    -------
    LearningCurve
        With ``theory="simulation"`` and the averages' standard errors over training sets in
        ``standard_error``. What no training set has left out is NaN.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity import GaussianProcessClassifier, simulate_learning_curve
    >>> from cavity.datasets import load_crabs
    >>> X, y = load_crabs(return_X_y=True)
    >>> clf = GaussianProcessClassifier(100.0 * RBF(10.0), optimizer=None)
    >>> curve = simulate_learning_curve(
    ...     clf, X, y, train_sizes=[20, 100], n_repeats=10, random_state=0
    ... )
    >>> bool(curve.test_error[0] > curve.test_error[1])
    True
    """
    check_resampling(resampling)
    if not isinstance(n_repeats, Integral) or n_repeats < 2:
        raise ValueError(
            f"n_repeats must be an integer of at least 2, for standard errors; got {n_repeats!r}."
        )
    inputs = pools_of(estimator, X, y, sample_weight)
    sizes = check_sizes(train_sizes, resampling, inputs.share)
    law = Draws(resampling, inputs.share, check_random_state(random_state).randint(2**31 - 1))
    draws = [law.draw(int(size), int(n_repeats)) for size in sizes]
    refits = list(refit_all(Refitter.of(inputs), sizes, draws, n_jobs, verbose))
    source = RefitSource(inputs, inputs.scores, law, sizes, refits)
    _warn_about(source)
    return _curve(source)


def _curve(source: RefitSource) -> LearningCurve:
    mean, variance = source.scores.predicted(source.averages)
    return LearningCurve(
        **source.inputs.about_curve(),
        **solved(source.reports),
        **{"test_brier": None} | {name: values for name, (values, _) in source.means.items()},
        resampling=source.law.resampling,
        theory="simulation",
        train_sizes=source.sizes,
        point_error=source.points("error"),
        point_log_loss=source.points("log_loss"),
        point_mean=mean,
        point_variance=variance,
        point_support=source.support,
        point_doubt=source.doubt,
        source=source,
        standard_error={name: errors for name, (_, errors) in source.means.items()},
    )


def _warn_about(source: RefitSource) -> None:
    """Warn of sizes without held-out averages, and of refits that did not converge."""
    empty = source.sizes[np.isnan(source.means["test_error"][0])]
    if len(empty):
        warnings.warn(
            f"At train_sizes {empty.tolist()} no training set has left any example out, so that "
            "there are no held-out averages: raise n_repeats, or draw fewer examples.",
            UserWarning,
            stacklevel=3,
        )
    reports = [report for of_size in source.reports for report in of_size]
    failed = [report for report in reports if not report.converged]
    if failed:
        worst = max(report.residual for report in failed)
        warnings.warn(
            f"{len(failed)} of {len(reports)} inferences did not converge (residual up to "
            f"{worst:.1e}); curve.converged marks their sizes. Raise max_iter_predict, or check "
            "the scale of the inputs and of the kernel.",
            ConvergenceWarning,
            stacklevel=3,
        )
