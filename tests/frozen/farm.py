"""Hostile inference problems: small tables on which an iteration may well fail."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

from .problems import Inference, infer, make_likelihood, make_method

__all__ = ["SIZES", "converged", "is_number", "outcomes", "problem"]

SIZES = {"ep": 300, "variational": 200, "laplace": 100, "naive": 100, "ensemble": 100}
"""How many problems each method is given."""
_LIKELIHOODS = {
    "ep": ("probit", "logit", "step"),
    "variational": ("probit", "logit"),
    "laplace": ("probit", "logit"),
    "naive": ("probit", "logit", "step"),
    "ensemble": ("probit", "logit", "step"),
}


def problem(name, k):
    """Return a method's k-th problem."""
    rng = np.random.default_rng([k, *name.encode()])
    n = int(rng.integers(5, 60))
    X = _inputs(rng, n)
    y = _labels(rng, X)
    kind = str(rng.choice(_LIKELIHOODS[name]))
    # Equal examples need noise of their own; ensemble mean field has it from a probit only.
    weighted = rng.random() < 0.3 and (name != "ensemble" or kind == "probit")
    weight = rng.choice([1.0, 2.0, 5.0, 20.0], size=n) if weighted else np.ones(n)
    if weighted and name != "ensemble":
        weight *= rng.choice([0.1, 0.5, 1.0], size=n)
    kernel = _kernel(rng, X.shape[1], kind == "step" or (name, kind) == ("ensemble", "logit"))
    return Inference(make_method(name, max_iter=100), make_likelihood(kind), kernel, X, y, weight)


def _inputs(rng, n):
    """Return points, some of them perhaps twice, on a scale of any size."""
    X = rng.standard_normal((n, int(rng.integers(1, 6))))
    if rng.random() < 0.4:
        X[rng.integers(0, n, size=n // 3)] = X[rng.integers(0, n, size=n // 3)]
    return X


def _labels(rng, X):
    """Return labels that are separable, noisy, random, or but one of a class."""
    n, kind = len(X), rng.choice(["separable", "noisy", "random", "lonely"])
    y = np.where(X[:, 0] + 0.1 * np.sin(3.0 * X[:, -1]) > 0.0, 1.0, -1.0)
    if kind == "noisy":
        y *= np.where(rng.random(n) < 0.2, -1.0, 1.0)
    elif kind == "random":
        y = rng.choice([-1.0, 1.0], size=n)
    elif kind == "lonely":
        y = np.ones(n)
        y[int(rng.integers(n))] = -1.0
    return y


def _kernel(rng, d, noisy):
    """Return a kernel of any amplitude and length scale, with noise where it is needed."""
    amplitude = 10.0 ** rng.uniform(-3.0, 6.0)
    scales = 10.0 ** rng.uniform(-2.0, 3.0) * 10.0 ** rng.uniform(-0.5, 0.5, size=d)
    bounds = {"length_scale_bounds": "fixed"}
    shape = RBF(scales, **bounds) if rng.random() < 0.6 else Matern(scales, nu=1.5, **bounds)
    share = 10.0 ** rng.uniform(-5.0, 0.0)
    noise = noisy or rng.random() < 0.3
    return amplitude * shape + WhiteKernel(share * amplitude) if noise else amplitude * shape


def outcomes(name, problems):
    """Solve some of a method's problems."""
    # Far out, a step that is not taken may well have overflowed.
    with np.errstate(all="ignore"):
        return [infer(problem(name, k)) for k in problems]


def is_number(outcome):
    """Tell whether a result, converged or not, can be used at all."""
    return bool(np.isfinite(outcome.log_evidence) and np.all(np.isfinite(outcome.alpha)))


def converged(name):
    """Return how many of a method's problems converge, and which of them are hard."""
    ended = outcomes(name, range(SIZES[name]))
    return {
        "converged": sum(outcome.converged for outcome in ended),
        "failed": [k for k, outcome in enumerate(ended) if not outcome.converged],
        "fell back": [k for k, outcome in enumerate(ended) if outcome.fell_back],
    }
