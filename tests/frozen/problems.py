"""Small inference problems: every method, likelihood and kind of kernel, with and without weights.

Whatever is not public is called in the adapters at the top and nowhere else in this folder.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from cavity.evidence import Evidence
from cavity.inference import EP, method
from cavity.kernels import rule
from cavity.likelihoods import Gaussian, likelihood

from . import DIRECT, ITERATED

__all__ = ["PROBLEMS", "Inference", "Outcome", "infer", "make_method", "measure", "tolerance"]


class Inference(NamedTuple):
    """One inference problem."""

    method: Any
    likelihood: Any
    kernel: Any
    X: Any
    y: Any
    weight: Any


class Outcome(NamedTuple):
    """How an inference ended."""

    converged: bool
    n_iter: int
    log_evidence: float
    alpha: Any
    fell_back: bool
    fit: Any


# Adapters, from here to `_evidence`: the only callers of what is not public.


def make_method(name, tol=None, max_iter=1000):
    """Return an inference method by a name that may carry an option."""
    options = {"max_iter": max_iter} | ({} if tol is None else {"tol": tol})
    if name.startswith("ep "):
        extra = {"ep half": {"power": 0.5}, "ep sequential": {"schedule": "sequential"}}
        return EP(**extra[name], **options)
    return method(name, **options)


def make_likelihood(name, noise=0.4):
    """Return a likelihood by its name."""
    return Gaussian(noise) if name == "gaussian" else likelihood(name)


def infer(given, start=None):
    """Solve an inference problem, from the outcome of a similar one if it is given."""
    starts = None if start is None else [start.fit.start]
    [fit] = _evidence(given).at(given.kernel.theta, starts).fits
    report, alpha = fit.report, np.array(fit.posterior.alpha)
    fell_back = "sweeps" in report.message and getattr(given.method, "schedule", "") == "parallel"
    return Outcome(report.converged, report.n_iter, fit.log_evidence, alpha, fell_back, fit)


def measure(given, outcome, X_new):
    """Return all numbers of a solved problem that are worth freezing."""
    covariance = rule(given.kernel)
    cross = covariance.matrix(X_new, given.X)
    mean, variance = outcome.fit.posterior.predict(cross, covariance.diag(X_new))
    loo = outcome.fit.loo_log_prob()
    return {
        "evidence": outcome.log_evidence,
        "alpha": outcome.alpha,
        "loo": loo,
        "mean": mean,
        "variance": variance,
        "gradient": _evidence(given).at(given.kernel.theta).gradient,
    }


def _evidence(given):
    return Evidence.of(
        rule(given.kernel), given.X, [given.y], given.likelihood, given.method, given.weight
    )


class Blend(RBF):
    """A kernel of a user's own, for which the library has no rule: (1 + RBF)/2."""

    def __call__(self, X, Y=None, eval_gradient=False):
        if not eval_gradient:
            return 0.5 + 0.5 * super().__call__(X, Y)
        K, slope = super().__call__(X, Y, eval_gradient=True)
        return 0.5 + 0.5 * K, 0.5 * slope


KERNELS = {
    "ard": 2.0 * RBF([0.8, 1.7]) + WhiteKernel(0.3),
    "matern 1.5": 1.5 * Matern(1.2, nu=1.5),
    "matern 2.5": 1.5 * Matern([1.0, 2.0], nu=2.5),
    "rational": 1.3 * RationalQuadratic(1.1, alpha=0.7),
    "periodic": 1.2 * ExpSineSquared(1.0, periodicity=2.5),
    "linear": DotProduct(0.8),
    "sum": RBF(1.0) + 0.5 * Matern(2.0, nu=1.5),
    "product": RBF(1.5) * DotProduct(1.0),
    "power": Exponentiation(RationalQuadratic(1.0, alpha=0.5), 2.0),
    "fixed": ConstantKernel(1.7, "fixed") * RBF([1.0, 1.5]) + WhiteKernel(0.2),
    "own": 1.4 * Blend(0.9),
}
LIKELIHOODS = {
    "ep": ("probit", "logit", "step", "gaussian"),
    "ep half": ("probit", "logit", "step", "gaussian"),
    "ep sequential": ("probit", "logit", "step", "gaussian"),
    "laplace": ("probit", "logit", "gaussian"),
    "variational": ("probit", "logit", "gaussian"),
    "ensemble": ("probit", "logit", "step", "gaussian"),
    "naive": ("probit", "logit", "step", "gaussian"),
    "sequential": ("probit", "logit", "step", "gaussian"),
}
DIRECT_METHODS = ("exact", "sequential")
TOL = 1e-11


def tolerance(key, quantity):
    """Return how closely a frozen number has to be met."""
    direct = key.split(":")[0] in DIRECT_METHODS
    # Differences of the evidence over a step of 1e-4 lose four digits.
    by_differences = key.startswith("sequential") and quantity == "gradient"
    return DIRECT if direct and not by_differences else ITERATED


def _weights(name, n, rng):
    return rng.choice([1.0, 2.0, 3.0] if name == "ensemble" else [0.5, 1.0, 1.5, 2.0, 3.0], size=n)


def _inputs(k, labels):
    rng = np.random.default_rng(k)
    n = 8 + 7 * k % 53
    X, X_new = rng.uniform(-2.0, 2.0, size=(n, 2)), rng.uniform(-2.0, 2.0, size=(3, 2))
    f = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] + 0.5 * rng.standard_normal(n)
    return X, X_new, np.where(f > 0.0, 1.0, -1.0) if labels else f, rng


def _make(k, name, likelihood_name, kernel_name, weighted):
    """Return the k-th problem and new inputs."""
    X, X_new, y, rng = _inputs(k, likelihood_name != "gaussian")
    kernel = KERNELS[kernel_name]
    if kernel_name == "periodic":
        # Of distances in a plane it is not positive definite.
        X, X_new = X[:, :1], X_new[:, :1]
    if likelihood_name == "step" or (name, likelihood_name) == ("ensemble", "logit"):
        # Without noise of their own these need a matrix that can be inverted.
        kernel = kernel + WhiteKernel(0.3)
    weight = _weights(name, len(y), rng) if weighted else np.ones(len(y))
    chosen = make_method(name, TOL)
    model = make_likelihood(likelihood_name)
    return Inference(chosen, model, kernel, X, y, weight), X_new


def _table():
    """Name every problem; kernels take turns."""
    pairs = [(name, lik) for name, liks in LIKELIHOODS.items() for lik in liks]
    rows = [(*pair, weighted) for weighted in (False, True) for pair in pairs]
    # Equal examples need noise by which ensemble mean field can tell them apart.
    alike = {("ensemble", "logit", True), ("ensemble", "step", True)}
    rows = [row for row in rows if row not in alike]
    turns = [(*row[:2], list(KERNELS)[k % len(KERNELS)], row[2]) for k, row in enumerate(rows)]
    turns += [("exact", "gaussian", name, k % 2 == 1) for k, name in enumerate(KERNELS)]
    return {
        f"{m}: {lik}, {kernel}{', weighted' if weighted else ''}": (k, m, lik, kernel, weighted)
        for k, (m, lik, kernel, weighted) in enumerate(turns)
    }


PROBLEMS = _table()
"""Every problem by its name."""


def problem(key):
    """Return a problem and new inputs."""
    return _make(*PROBLEMS[key])


def solve(key):
    """Return the numbers of a problem."""
    given, X_new = problem(key)
    outcome = infer(given)
    assert outcome.converged, key
    return measure(given, outcome, X_new)
