"""The evidence of a kernel's hyperparameters, its gradient, and the search for its maximum."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import optimize

from cavity.arrays import Array, NotPositiveDefiniteError, namespace
from cavity.inference import Fit, Method, Problem, Start
from cavity.likelihoods import Likelihood
from cavity.priors import DensePrior

__all__ = ["Evidence", "KernelRule", "Optimum", "maximise"]

_TUNING_TOL = 1e-5
_DIFFERENCE = 1e-4
"""Step of the central differences in log hyperparameters, for methods without a gradient."""


class KernelRule(Protocol):
    """What the evidence needs of a kernel."""

    @property
    def theta(self) -> Array:
        """Logarithms of the free hyperparameters."""

    def with_theta(self, theta: Array) -> "KernelRule":
        """Return the same kernel at other hyperparameters."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return the covariance matrix."""

    def vjp(self, X: Array, G: Array, K: Array | None = None) -> Array:
        """Return Σ_ij G_ij ∂K_ij/∂theta."""


@dataclass(frozen=True)
class Evidence:
    """Approximate log evidence of hyperparameters, for given data and inference.

    Parameters
    ----------
    rule : KernelRule
    X : array of shape (n, d)
    targets : sequence of arrays of shape (n,)
        Several targets share the kernel; their evidences add up.
    likelihood : Likelihood
    method : Method
    copies : array of shape (n,)
        How often each example counts.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity.evidence import Evidence
    >>> from cavity.inference import EP
    >>> from cavity.kernels import rule
    >>> from cavity.likelihoods import Probit
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 1.0, -1.0])
    >>> evidence = Evidence(rule(RBF(1.0)), X, [y], Probit(), EP(), np.ones(3))
    >>> value, gradient = evidence.value_and_gradient(np.zeros(1))
    >>> round(value, 6), gradient.shape
    (-2.123576, (1,))
    """

    rule: KernelRule
    X: Array
    targets: Sequence[Array]
    likelihood: Likelihood
    method: Method
    copies: Array

    def fits(self, theta: Array, starts: Sequence[Start] | None = None) -> list[Fit]:
        """Infer every target at these hyperparameters."""
        prior = DensePrior(_finite(self.rule.with_theta(theta).matrix(self.X)))
        problems = [Problem(self.likelihood, prior, y, self.copies) for y in self.targets]
        begin = starts if starts is not None else [None] * len(problems)
        return [self.method.fit(p, s) for p, s in zip(problems, begin, strict=True)]

    def value(self, theta: Array) -> float:
        """Return the log evidence."""
        return _total(self.fits(theta))

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Return the log evidence and its gradient in theta."""
        fits = self.fits(theta)
        return _total(fits), self.gradient(theta, fits)

    def gradient(self, theta: Array, fits: Sequence[Fit]) -> Array:
        """Return the gradient in theta, given the fits there."""
        if not self.method.has_gradient:
            return self._differences(theta)
        rule = self.rule.with_theta(theta)
        K = fits[0].problem.prior.K
        return np.sum([rule.vjp(self.X, fit.grad_K(), K) for fit in fits], axis=0)

    def _differences(self, theta: Array) -> Array:
        steps = _DIFFERENCE * np.eye(len(theta))
        change = [self.value(theta + step) - self.value(theta - step) for step in steps]
        return np.array(change) / (2.0 * _DIFFERENCE)


def _finite(K: Array) -> Array:
    xp = namespace(K)
    if not xp.all(xp.isfinite(K)):
        raise NotPositiveDefiniteError("some of its entries are not finite")
    return K


def _total(fits: Sequence[Fit]) -> float:
    return sum(fit.log_evidence for fit in fits)


class _Descent:
    """The negative log evidence along one optimiser's path, each fit starting from the last.

    A kernel matrix that is not positive definite is reported as a point far worse than any seen,
    so that a line search backs off instead of ending.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.starts: Sequence[Start] | None = None
        self.worst = 0.0
        self.failure: NotPositiveDefiniteError | None = None
        self.succeeded = False

    def __call__(self, theta: Array, eval_gradient: bool = True) -> Any:
        theta = np.asarray(theta, dtype=float)
        try:
            fits = self.evidence.fits(theta, self.starts)
        except NotPositiveDefiniteError as error:
            self.failure = error
            return self._far_worse(theta, eval_gradient)
        value = -_total(fits)
        self.starts = [fit.start for fit in fits]
        self.worst, self.succeeded = max(self.worst, value), True
        if not eval_gradient:
            return value
        return value, -self.evidence.gradient(theta, fits)

    def _far_worse(self, theta: Array, eval_gradient: bool) -> Any:
        value = 10.0 * (1.0 + abs(self.worst))
        return (value, np.zeros_like(theta)) if eval_gradient else value


@dataclass(frozen=True)
class Optimum:
    """The best hyperparameters found, and the log evidence there."""

    theta: Array
    value: float


Optimizer = Callable[..., tuple[Array, float]]
"""scikit-learn's signature: optimizer(objective, initial_theta, bounds) → (theta, minimum)."""


def maximise(
    evidence: Evidence,
    theta: Array,
    bounds: Array,
    *,
    optimizer: Optimizer | None = None,
    n_restarts: int = 0,
    rng: np.random.RandomState | np.random.Generator | None = None,
) -> Optimum:
    """Climb the evidence from the given hyperparameters, and from random ones.

    Parameters
    ----------
    evidence : Evidence
    theta : array of shape (p,)
        First start.
    bounds : array of shape (p, 2)
        Log bounds; restarts are drawn uniformly inside them.
    optimizer : callable, optional
        With scikit-learn's signature; L-BFGS-B if not given.
    n_restarts : int
    rng : numpy random generator, needed for restarts
    """
    begin = [np.clip(theta, bounds[:, 0], bounds[:, 1])]
    if n_restarts:
        if rng is None or not np.isfinite(bounds).all():
            raise ValueError(
                "Restarts of the optimizer are drawn inside the kernel's bounds: "
                "n_restarts_optimizer > 0 requires that all bounds are finite."
            )
        begin += [rng.uniform(bounds[:, 0], bounds[:, 1]) for _ in range(n_restarts)]
    climb = optimizer or _l_bfgs_b
    optima = [_climb(evidence, climb, start, bounds) for start in begin]
    found = [optimum for optimum in optima if isinstance(optimum, Optimum)]
    if not found:
        raise next(failure for failure in optima if isinstance(failure, Exception))
    return max(found, key=lambda optimum: optimum.value)


def _climb(
    evidence: Evidence, climb: Optimizer, theta: Array, bounds: Array
) -> Optimum | NotPositiveDefiniteError:
    """Run one optimiser from one start; a path that never met a valid point is a failure."""
    descent = _Descent(_loosened(evidence))
    best, value = climb(descent, theta, bounds=bounds)
    if not descent.succeeded and descent.failure is not None:
        return descent.failure
    return Optimum(np.asarray(best, dtype=float), -float(value))


def _loosened(evidence: Evidence) -> Evidence:
    """Return the evidence to a precision that an optimiser can use.

    It is stationary in what is iterated, so that its error is the square of the tolerance.
    """
    method = evidence.method
    return replace(evidence, method=replace(method, tol=max(method.tol, _TUNING_TOL)))


def _l_bfgs_b(objective: Callable[..., Any], theta: Array, bounds: Array) -> tuple[Array, float]:
    found = optimize.minimize(objective, theta, method="L-BFGS-B", jac=True, bounds=bounds)
    return found.x, float(found.fun)
