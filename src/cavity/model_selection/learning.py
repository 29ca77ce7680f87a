"""Learning curves from one fit, by theory."""

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cavity.arrays import threads_for
from cavity.model_selection.curve import LearningCurve
from cavity.model_selection.pools import DEFAULT_SIZES, check_resampling, check_sizes, pools_of
from cavity.model_selection.theory import TheorySource, theory_curve
from cavity.resampling import THEORIES, solve_sizes


def learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    train_sizes: Any = DEFAULT_SIZES,
    resampling: str = "subsample",
    theory: str = "auto",
    sample_weight: Any = None,
    tol: float = 3e-4,
    max_iter: int = 200,
) -> LearningCurve:
    """Return the error on unseen data, averaged over training sets of any size, without refitting.

    The kernel stays as it was tuned on the whole table; only the training set varies. Theory is
    that of exact or EP inference, whatever the estimator's own.

    Parameters
    ----------
    estimator : GaussianProcessClassifier, GaussianProcessRegressor, or a Pipeline ending in one
        Fitted or not; if not, a copy is fitted to the whole table first.
    X : array-like of shape (n_samples, n_features)
        The pool from which training sets are drawn.
    y : array-like of shape (n_samples,)
    train_sizes : sequence of int or of float
        Numbers of examples, or fractions of the table.
    resampling : {"subsample", "bootstrap"}
        Draw without replacement, and judge by the examples left out (m = n is leave-one-out), or
        with replacement, also more than n times, and judge by the examples out of the bag.
    theory : {"auto", "cavity", "pairs", "variational"}
        "cavity" puts each example into the average of all others. "pairs" adds what pairs of
        examples do together: closer to refits in regression from little data, the same in
        classification. "variational" is the older theory, for regression and "bootstrap" only.
        "auto" is "pairs" for regression and "cavity" for classification.
    sample_weight : array-like of shape (n_samples,), optional
        A population in which some examples are drawn (and judged) more often than others.
    tol : float
        Residual at which the theory's equations count as solved; the default leaves averages four
        digits, more than the theory itself.
    max_iter : int

    Returns
    -------
    LearningCurve

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity import GaussianProcessClassifier, learning_curve
    >>> from cavity.datasets import load_crabs
    >>> X, y = load_crabs(return_X_y=True)
    >>> clf = GaussianProcessClassifier(100.0 * RBF(10.0), optimizer=None)
    >>> curve = learning_curve(clf, X, y, train_sizes=[20, 50, 100])
    >>> bool(curve.test_error[0] > curve.test_error[2])
    True
    """
    check_resampling(resampling)
    _check_theory(theory, resampling)
    inputs = pools_of(estimator, X, y, sample_weight)
    sizes = check_sizes(train_sizes, resampling, inputs.share)
    if theory == "variational" and inputs.classes is not None:
        raise ValueError("theory='variational' is for regression: use theory='cavity'.")
    if theory == "auto":
        theory = "pairs" if inputs.classes is None else "cavity"
    solve = partial(
        solve_sizes, sizes=sizes, law=resampling, theory=theory, tol=tol, max_iter=max_iter
    )
    with threads_for(len(inputs.share)):
        solutions = list(zip(*map(solve, inputs.pools), strict=True))
        source = TheorySource(inputs, inputs.scores, solutions, theory, tol, max_iter)
        curve = theory_curve(source, sizes, resampling)
    _warn_about(curve, tol)
    return curve


def _check_theory(theory: str, resampling: str) -> None:
    """Refuse unknown names, and a theory that does not know the law."""
    names = ["auto", *THEORIES]
    if theory not in names:
        raise ValueError(f"theory must be one of {names}; got {theory!r}.")
    if theory == "variational" and resampling != "bootstrap":
        raise ValueError("theory='variational' draws with replacement: use resampling='bootstrap'.")


def _warn_about(curve: LearningCurve, tol: float) -> None:
    failed = curve.train_sizes[~curve.converged]
    if len(failed):
        worst = float(np.max(curve.residual[~curve.converged]))
        warnings.warn(
            f"The theory's equations did not converge at train_sizes {failed.tolist()} (residual "
            f"{worst:.1e}, tolerance {tol:.1e}); curve.converged marks them. Raise max_iter.",
            ConvergenceWarning,
            stacklevel=3,
        )
