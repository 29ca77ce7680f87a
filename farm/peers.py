"""scikit-learn on the same problems: how often it fails, and how often without a word."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor

from farm.ledger import Ledger

_SETTLED = 1e-3
"""By how much the probabilities at the mode may miss those that the mode equation gives back."""


def classify(ledger: Ledger, kernel: Any, X: Any, y: Any, X_new: Any) -> None:
    """Count how scikit-learn's classifier ends."""

    def run() -> tuple[bool, bool]:
        model = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
        proba, inner = model.predict_proba(X_new), model.base_estimator_
        back = expit(inner.kernel_(inner.X_train_) @ (inner.y_train_ - inner.pi_))
        settled = float(np.max(np.abs(back - inner.pi_))) < _SETTLED
        finite = np.isfinite(inner.log_marginal_likelihood_value_) and np.isfinite(proba).all()
        return bool(finite), settled

    _count(ledger, run)


def regress(ledger: Ledger, kernel: Any, alpha: float, X: Any, y: Any, X_new: Any) -> None:
    """Count how scikit-learn's regressor ends."""

    def run() -> tuple[bool, bool]:
        model = GaussianProcessRegressor(kernel, alpha=alpha, optimizer=None).fit(X, y)
        mean, std = model.predict(X_new, return_std=True)
        value = model.log_marginal_likelihood_value_
        return bool(np.isfinite([*mean, *std, value]).all()), True

    _count(ledger, run)


def _count(ledger: Ledger, run: Callable[[], tuple[bool, bool]]) -> None:
    ledger.counts["peer fits"] += 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            finite, settled = run()
        except Exception:
            ledger.counts["peer errors"] += 1
            return
    told = any(issubclass(one.category, ConvergenceWarning) for one in caught)
    leaks = any(issubclass(one.category, RuntimeWarning) for one in caught)
    ledger.counts["peer leaked warnings"] += leaks
    ledger.counts["peer not finite"] += not finite
    ledger.counts["peer not converged, in silence"] += finite and not settled and not told
