"""GPBoost: Laplace with the probit likelihood, compiled.

Its interface has no single evaluation with a gradient. An iteration of its plain gradient descent
is one gradient and one evidence, the latter's mode search starting from the last mode; the cost is
the difference between four iterations and one, over three. This favours GPBoost: ours start cold.
"""

from typing import Any

import gpboost
import numpy as np

from benchmarks.contestants.common import Evaluation, Fitted, timed

__all__ = ["evaluate", "fit"]

_FEW, _MORE = 1, 4
_REPEATS = 3
_SLOW = 1.0
"""Seconds of an iteration that stands out from the clock's noise by itself."""
_STEP = 1e-3
"""Small enough that gradient descent never has to halve its step, which would cost evaluations."""


def evaluate(X: Any, y: Any, theta: Any) -> Evaluation:
    """Time iterations of gradient descent."""
    slopes = [_slope(X, y, theta)]
    while len(slopes) < _REPEATS and slopes[0] < _SLOW:
        slopes.append(_slope(X, y, theta))
    value = -_model(X).neg_log_likelihood(cov_pars=_parameters(theta), y=_zero_one(y))
    return Evaluation(float(np.median(slopes)), float(value))


def fit(X: Any, y: Any, deadline: float) -> Fitted:
    """Tune by GPBoost's own optimiser, from the same start as all others."""
    model = _model(X)
    start = _parameters(np.zeros(X.shape[1] + 1))
    model.fit(y=_zero_one(y), params={"init_cov_pars": start})
    return Fitted(
        -float(model.get_current_neg_log_likelihood()),
        lambda new: model.predict(gp_coords_pred=new, predict_response=True)["mu"],
    )


def _model(X: Any) -> Any:
    return gpboost.GPModel(gp_coords=X, cov_function="gaussian_ard", likelihood="bernoulli_probit")


def _slope(X: Any, y: Any, theta: Any) -> float:
    few, _ = timed(lambda: _descend(X, y, theta, _FEW))
    more, _ = timed(lambda: _descend(X, y, theta, _MORE))
    return (more - few) / (_MORE - _FEW)


def _descend(X: Any, y: Any, theta: Any, iterations: int) -> None:
    params = {
        "optimizer_cov": "gradient_descent",
        "use_nesterov_acc": False,
        "lr_cov": _STEP,
        "maxit": iterations,
        "delta_rel_conv": 1e-30,
        "init_cov_pars": _parameters(theta),
    }
    _model(X).fit(y=_zero_one(y), params=params)


def _parameters(theta: Any) -> Any:
    """Return amplitude and ranges; GPBoost's kernel is exp(−r²/ρ²), without the half."""
    return np.exp(theta) * np.r_[1.0, np.full(len(theta) - 1, np.sqrt(2.0))]


def _zero_one(y: Any) -> Any:
    return (y > 0.0).astype(float)
