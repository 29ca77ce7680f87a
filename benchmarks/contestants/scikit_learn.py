"""scikit-learn: Laplace with the logit likelihood."""

from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF

from benchmarks.contestants.common import Evaluation, Fitted, timed

__all__ = ["evaluate", "fit"]


def evaluate(X: Any, y: Any, theta: Any) -> Evaluation:
    """Time log_marginal_likelihood(eval_gradient=True)."""
    model = GaussianProcessClassifier(1.0 * RBF(np.ones(X.shape[1])), optimizer=None).fit(X, y)
    seconds, (value, _) = timed(
        lambda: model.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)
    )
    return Evaluation(seconds, float(value))


def fit(X: Any, y: Any, deadline: float) -> Fitted:
    """Tune by scikit-learn's own optimiser."""
    model = GaussianProcessClassifier(1.0 * RBF(np.ones(X.shape[1]))).fit(X, y)
    return Fitted(
        float(model.log_marginal_likelihood_value_), lambda new: model.predict_proba(new)[:, 1]
    )
