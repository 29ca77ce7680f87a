"""The library itself."""

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from benchmarks.contestants.common import Evaluation, Fitted, timed
from cavity import GaussianProcessClassifier
from cavity.evidence import Evidence
from cavity.inference import method
from cavity.kernels import rule
from cavity.likelihoods import likelihood as likelihood_of

__all__ = ["evaluate", "evidence_of", "fit", "warm"]


def evidence_of(X: Any, y: Any, inference: str, likelihood: str) -> Evidence:
    """Return the evidence of an ARD kernel on the data."""
    kernel = rule(1.0 * RBF(np.ones(X.shape[1])))
    copies = np.ones(len(y))
    return Evidence.of(kernel, X, [y], likelihood_of(likelihood), method(inference), copies)


def evaluate(X: Any, y: Any, theta: Any, inference: str, likelihood: str) -> Evaluation:
    """Time one evidence with its gradient from a cold start."""
    evidence = evidence_of(X, y, inference, likelihood)
    seconds, value = timed(lambda: _value(evidence.at(theta)))
    return Evaluation(seconds, value)


def warm(
    X: Any, y: Any, theta: Any, inference: str, likelihood: str, step: float = 0.05
) -> Evaluation:
    """Time one evidence with its gradient after all hyperparameters have moved by a fraction."""
    evidence = evidence_of(X, y, inference, likelihood)
    starts = evidence.at(theta).starts
    signs = np.where(np.arange(len(theta)) % 2, -1.0, 1.0)
    there = theta + signs * np.log1p(step)
    return Evaluation(*timed(lambda: _value(evidence.at(there, starts))))


def _value(found: Any) -> float:
    """Return the evidence, with its gradient computed."""
    assert np.all(np.isfinite(found.gradient))
    return float(found.value)


def fit(X: Any, y: Any, deadline: float, inference: str, likelihood: str) -> Fitted:
    """Tune through the estimator, as a user would."""
    kernel = 1.0 * RBF(np.ones(X.shape[1]))
    model = GaussianProcessClassifier(kernel, inference=inference, likelihood=likelihood).fit(X, y)
    return Fitted(
        float(model.log_marginal_likelihood_value_), lambda new: model.predict_proba(new)[:, 1]
    )
