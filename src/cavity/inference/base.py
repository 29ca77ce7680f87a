"""What every inference method takes and gives: a problem in, a fit out."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

from cavity.arrays import Array, namespace
from cavity.likelihoods import Likelihood
from cavity.priors import DensePosterior, DensePrior
from cavity.sites import Marginals, cavity

__all__ = ["METHODS", "Fit", "Method", "Problem", "Report", "Start", "log_likelihood", "register"]


class Problem(NamedTuple):
    """Latent values with a prior, seen through a likelihood.

    ``copies`` is how often each example counts: an example of weight w is w examples that happen
    to be equal, each with a site of its own.
    """

    likelihood: Likelihood
    prior: DensePrior
    y: Array
    copies: Array


class Report(NamedTuple):
    """How an inference ended."""

    converged: bool
    n_iter: int
    residual: float
    message: str


class Start(NamedTuple):
    """Where to begin: the result of a fit nearby."""

    alpha: Array
    variance: Array
    nearby: DensePosterior | None = None
    """A posterior whose factor helps to solve for the means."""


@dataclass(frozen=True)
class Fit:
    """An approximate posterior, its evidence, and how it was reached.

    Attributes
    ----------
    problem : Problem
    method : Method
    posterior : DensePosterior
    log_evidence : float
    report : Report
    start : Start
        Where a fit of a similar problem should begin.
    """

    problem: Problem
    method: "Method"
    posterior: DensePosterior
    log_evidence: float
    report: Report
    start: Start

    def grad_K(self) -> Array:
        """Return M with d log evidence = Σ_ij M_ij dK_ij."""
        return self.method.grad_K(self.problem, self.posterior)

    @cached_property
    def cavities(self) -> Marginals:
        """Each example's latent value as predicted by all the others."""
        return cavity(self.posterior.local, self.problem.copies)

    def loo_log_prob(self, y: Array | None = None) -> Array:
        """Leave-one-out log probability of each example's label (or of another one)."""
        label = self.problem.y if y is None else y
        return self.problem.likelihood.tilted(label, self.cavities).log_z


@dataclass(frozen=True)
class Method(ABC):
    """One way to find the sites.

    Parameters
    ----------
    tol : float
        Residual, without dimension, at which to stop.
    max_iter : int
        The most iterations of the outermost loop.
    """

    tol: float = 1e-8
    max_iter: int = 100

    name: ClassVar[str]
    needs: ClassVar[str]
    """What the method asks of a likelihood: "tilted", "derivatives" or "expected"."""
    has_gradient: ClassVar[bool] = True

    def fit(self, problem: Problem, start: Start | None = None) -> Fit:
        """Find the approximate posterior and its evidence."""
        posterior, report, next_start = self.solve(problem, start)
        value = self.log_evidence(problem, posterior)
        return Fit(problem, self, posterior, float(value), report, next_start)

    @abstractmethod
    def solve(self, problem: Problem, start: Start | None) -> tuple[DensePosterior, Report, Start]:
        """Find the posterior."""

    @abstractmethod
    def log_evidence(self, problem: Problem, posterior: DensePosterior) -> Any:
        """Approximate log p(y)."""

    def grad_K(self, problem: Problem, posterior: DensePosterior) -> Array:
        """Return the slope of the log evidence in K.

        The default is right wherever the evidence is stationary in the sites.
        """
        return posterior.grad_K()


METHODS: dict[str, type[Method]] = {}
"""Every inference method by its name."""

M = TypeVar("M", bound=type[Method])


def register(cls: M) -> M:
    """Make a method known by its name."""
    METHODS[cls.name] = cls
    return cls


def log_likelihood(problem: Problem, f: Array) -> Array:
    """Return Σ w log p(y|f)."""
    xp = namespace(f)
    return xp.sum(problem.copies * problem.likelihood.log_prob(problem.y, f))
