"""GPy: expectation propagation with the probit likelihood."""

import time
from typing import Any

import GPy
import numpy as np
from GPy.inference.latent_function_inference import EP

from benchmarks.contestants.common import Evaluation, Fitted, timed

__all__ = ["evaluate", "fit"]

_GAIN = 1e-3
"""Nats by which a further round of EP and tuning has to raise the evidence to go on."""


def evaluate(X: Any, y: Any, theta: Any) -> Evaluation:
    """Time the evaluation that follows a change of parameters: EP, evidence, gradient."""
    model = _model(X, y, np.exp(theta))
    seconds, _ = timed(model.initialize_parameter)
    return Evaluation(seconds, float(model.log_likelihood()))


def fit(X: Any, y: Any, deadline: float) -> Fitted:
    """Tune in rounds, EP then hyperparameters: GPy's default, and faster than EP at each step."""
    model = _model(X, y, np.ones(X.shape[1] + 1))
    finished = _in_rounds(model, time.perf_counter() + deadline)
    note = "" if finished else f"stopped after the round that passed {deadline:.0f} s"
    return Fitted(float(model.log_likelihood()), lambda new: model.predict(new)[0][:, 0], note)


def _model(X: Any, y: Any, parameters: Any) -> Any:
    kernel = GPy.kern.RBF(X.shape[1], parameters[0], parameters[1:], ARD=True)
    labels = (y[:, None] > 0.0).astype(float)
    likelihood = GPy.likelihoods.Bernoulli()
    return GPy.core.GP(X, labels, kernel, likelihood, inference_method=EP(), initialize=False)


def _in_rounds(model: Any, stop: float) -> bool:
    """Tune until a round gains nothing; between rounds sites and hyperparameters agree."""
    model.initialize_parameter()
    last = -np.inf
    while model.log_likelihood() > last + _GAIN:
        if time.perf_counter() > stop:
            return False
        last = model.log_likelihood()
        model.optimize()
        model.inference_method.on_optimization_start()
        model.parameters_changed()
    return True
