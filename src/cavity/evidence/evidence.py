"""The evidence of a kernel's hyperparameters and its gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.evidence.hyperpriors import Hyperprior
from cavity.inference import Fit, Method, Problem, WarmStart
from cavity.likelihoods import Likelihood
from cavity.priors import DensePrior, KernelRule
from cavity.sites import Rows

_DIFFERENCE = 1e-4
"""Step of the central differences in log hyperparameters, for methods without a gradient."""
_USABLE = 1e-2
"""Up to this residual, an inference that stopped early may still guide a search."""


@dataclass(frozen=True)
class Evidence:
    """Approximate log evidence of hyperparameters, for given data and inference.

    Its theta are the kernel's hyperparameters, then those of the likelihood.

    Parameters
    ----------
    rule : KernelRule
    rows : sequence of Rows or RowBlocks
        One for each target; several targets share the kernel, and their evidences add up.
    likelihood : Likelihood
    method : Method
    couple : callable
        Makes the prior of the rows from a kernel rule.
    hyperprior : Hyperprior, optional
        A prior density of the hyperparameters, which a search adds to the evidence.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity.evidence import Evidence
    >>> from cavity.inference import EP
    >>> from cavity.kernels import rule
    >>> from cavity.likelihoods import Probit
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 1.0, -1.0])
    >>> evidence = Evidence.of(rule(RBF(1.0)), X, [y], Probit(), EP(), np.ones(3))
    >>> here = evidence.at(np.zeros(1))
    >>> round(here.value, 6), here.gradient.shape
    (-2.123576, (1,))
    """

    rule: KernelRule
    rows: Sequence[Any]
    likelihood: Likelihood
    method: Method
    couple: Callable[[KernelRule], Any]
    hyperprior: Hyperprior | None = None

    @classmethod
    def of(
        cls,
        rule: KernelRule,
        X: Any,
        targets: Sequence[Array],
        likelihood: Likelihood,
        method: Method,
        weight: Array,
        hyperprior: Hyperprior | None = None,
    ) -> Evidence:
        """Return the evidence of a table in memory, under a prior that holds K as a matrix.

        Parameters
        ----------
        rule : KernelRule
        X : array of shape (n, d), or a list of objects that the kernel takes
        targets : sequence of arrays of shape (n,)
        likelihood : Likelihood
        method : Method
        weight : array of shape (n,)
            How often each row counts.
        hyperprior : Hyperprior, optional
        """
        rows = [Rows(y, weight, X) for y in targets]
        return cls(rule, rows, likelihood, method, partial(DensePrior.of, X=X), hyperprior)

    @property
    def theta(self) -> Array:
        """The hyperparameters as they are given, of the kernel and of the likelihood."""
        return np.concatenate([self.rule.theta, self.likelihood.theta])

    @property
    def bounds(self) -> Array:
        """Their limits, of shape (p, 2)."""
        return np.concatenate([np.reshape(self.rule.bounds, (-1, 2)), self.likelihood.bounds])

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [*self.rule.names, *self.likelihood.names]

    def with_theta(self, theta: Array) -> Evidence:
        """Return the same evidence, given at other hyperparameters."""
        own = len(self.rule.theta)
        rule, likelihood = self.rule.with_theta(theta[:own]), self.likelihood
        return replace(self, rule=rule, likelihood=likelihood.with_theta(theta[own:]))

    def under(self, hyperprior: Hyperprior | None) -> Evidence:
        """Return the same evidence with a prior density of these hyperparameters."""
        density = hyperprior.of(self) if hyperprior is not None and len(self.theta) else None
        return replace(self, hyperprior=density)

    def at(self, theta: Array, starts: Sequence[WarmStart] | None = None) -> Evaluation:
        """Infer every target at these hyperparameters."""
        here = self.with_theta(theta)
        prior, fits = self.couple(here.rule), []
        for i, rows in enumerate(self.rows):
            problem = Problem(here.likelihood, prior, rows)
            fits.append(self.method.fit(problem, starts[i] if starts else None))
        return Evaluation(self, theta, prior, fits)


@dataclass(frozen=True)
class Evaluation:
    """The evidence at one theta: the prior there, and a fit for each target."""

    evidence: Evidence
    theta: Array
    prior: Any
    fits: Sequence[Fit]

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood at this theta."""
        return self.fits[0].problem.likelihood

    @property
    def value(self) -> float:
        """The log evidence."""
        return sum(fit.log_evidence for fit in self.fits)

    @cached_property
    def gradient(self) -> Array:
        """Its gradient in theta."""
        if self.evidence.method.has_slopes(self.likelihood):
            return np.sum([fit.gradient() for fit in self.fits], axis=0)
        steps = _DIFFERENCE * np.eye(len(self.theta))
        value = [[self.evidence.at(self.theta + s).value for s in (step, -step)] for step in steps]
        return np.array([up - down for up, down in value]) / (2.0 * _DIFFERENCE)

    @property
    def converged(self) -> bool:
        """Whether every inference converged."""
        return all(fit.report.converged for fit in self.fits)

    @property
    def usable(self) -> bool:
        """Whether every inference came close to a solution."""
        reports = [fit.report for fit in self.fits]
        return all(report.converged or report.residual <= _USABLE for report in reports)

    @property
    def starts(self) -> list[WarmStart]:
        """Where nearby evaluations may start."""
        return [fit.start for fit in self.fits]
