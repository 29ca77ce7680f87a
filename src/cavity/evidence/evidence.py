"""The evidence of a kernel's hyperparameters and its gradient."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from cavity.arrays import Array, NotPositiveDefiniteError, namespace
from cavity.evidence.tuning import Optimum, maximise
from cavity.inference import Fit, Method, Problem, Start
from cavity.likelihoods import Likelihood
from cavity.priors import DensePrior

__all__ = ["Evidence", "KernelRule", "Optimum", "maximise"]

_DIFFERENCE = 1e-4
"""Step of the central differences in log hyperparameters, for methods without a gradient."""


class KernelRule(Protocol):
    """What the evidence needs of a kernel."""

    @property
    def theta(self) -> Array:
        """Logarithms of the free hyperparameters."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the free hyperparameters, in scikit-learn's way."""

    def with_theta(self, theta: Array) -> "KernelRule":
        """Return the same kernel at other hyperparameters."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return the covariance matrix."""

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
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
    _last: dict[bytes, KernelRule] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )

    def at(self, theta: Array) -> KernelRule:
        """Return the kernel at these hyperparameters; the last one is remembered."""
        key = np.asarray(theta, dtype=float).tobytes()
        if key not in self._last:
            self._last.clear()
            self._last[key] = self.rule.with_theta(theta)
        return self._last[key]

    def fits(self, theta: Array, starts: Sequence[Start] | None = None) -> list[Fit]:
        """Infer every target at these hyperparameters."""
        K = _finite(self.at(theta).matrix(self.X))
        prior = DensePrior(K, starts[0].scratch if starts else None)
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
        rule = self.at(theta)
        return np.sum([self._slope(rule, fit) for fit in fits], axis=0)

    def _slope(self, rule: KernelRule, fit: Fit) -> Array:
        prior, M = fit.problem.prior, fit.grad_K()
        slope = rule.vjp(self.X, None, M, prior.K)
        prior.scratch.give(M)
        return slope

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
