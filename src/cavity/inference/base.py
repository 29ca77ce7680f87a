"""What every inference method takes and gives: a problem in, a fit out."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

from cavity.arrays import Array, clip, namespace
from cavity.likelihoods import Likelihood
from cavity.priors import DensePosterior, DensePrior, Factor, LowRankFactor, LowRankPrior, Scratch
from cavity.sites import Marginals, Moments, Sites, cavity, expand, match

__all__ = [
    "METHODS",
    "Fit",
    "Matched",
    "Method",
    "Problem",
    "Report",
    "Start",
    "log_joint_at_mode",
    "register",
    "site_of",
    "with_stand_in",
    "with_whole_copies",
]


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


class Matched(NamedTuple):
    """Tilted moments and the sites that match them."""

    moments: Moments
    sites: Sites


class Start(NamedTuple):
    """Where to begin: the result of a fit nearby."""

    alpha: Array
    variance: Array
    nearby: Factor | LowRankFactor | None = None
    """A factor that helps to solve for the means."""
    sites: Sites | None = None
    """The sites: under another prior their posterior is a better guess than α itself."""
    rehearsed: Array | None = None
    """The variance that a stand-in for the prior had led to."""
    scratch: Scratch | None = None
    """Memory that has served there."""


@dataclass(frozen=True)
class Fit:
    """An approximate posterior, its evidence, and how it was reached.

    Attributes
    ----------
    problem : Problem
        As it was given.
    solved : Problem
        As the method has put it to itself.
    method : Method
    posterior : DensePosterior
    log_evidence : float
    report : Report
    start : Start
        Where a fit of a similar problem should begin.
    """

    problem: Problem
    solved: Problem
    method: "Method"
    posterior: DensePosterior
    log_evidence: float
    report: Report
    start: Start

    def grad_K(self) -> Array:
        """Return M with d log evidence = Σ_ij M_ij dK_ij."""
        return self.method.grad_K(self.solved, self.posterior)

    @cached_property
    def cavities(self) -> Marginals:
        """Each example's latent value as predicted by all the others.

        One copy is left out of an example that counts several times, and all of one that counts
        less than once.
        """
        return cavity(self.posterior.local, clip(self.problem.copies, low=1.0))

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
    is_stationary: ClassVar[bool] = True
    """Whether the evidence does not change, to first order, with what is iterated."""

    def fit(self, problem: Problem, start: Start | None = None) -> Fit:
        """Find the approximate posterior and its evidence."""
        solved = self.prepare(problem)
        posterior, report, next_start = self.solve(solved, start)
        value = self.log_evidence(solved, posterior)
        return Fit(problem, solved, self, posterior, float(value), report, next_start)

    def prepare(self, problem: Problem) -> Problem:
        """Put the problem into the form that the method solves."""
        return problem

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


def with_stand_in(problem: Problem, prior: LowRankPrior) -> Problem:
    """Return the problem with a stand-in for its prior, to find means and variances with."""
    return problem._replace(prior=prior)  # type: ignore[arg-type]


def with_whole_copies(problem: Problem) -> Problem:
    """Return the same problem with no example counted less than once.

    A cavity leaves out one copy, which has to be there: an example of weight w < 1 is one copy of
    the likelihood p(y|f)^w.
    """
    xp = namespace(problem.copies)
    if xp.all(problem.copies >= 1.0):
        return problem
    likelihood, prior, y, copies = problem
    weakened = likelihood.power(clip(copies, high=1.0))
    return Problem(weakened, prior, y, clip(copies, low=1.0))


def site_of(likelihood: Likelihood, y: Array, c: Marginals, copies: Array | float = 1.0) -> Matched:
    """Return each cavity's tilted moments and the site that matches them.

    A quadratic log likelihood is its own site, whatever the cavity; matching it would lose digits
    where it is much sharper than the cavity.
    """
    moments = likelihood.tilted(y, c)
    if "sites" not in likelihood.offers:
        return Matched(moments, match(c, moments, copies))
    d1, d2, _ = likelihood.derivatives(y, c.mean)
    return Matched(moments, expand(c.mean, d1, d2, copies))


def log_joint_at_mode(problem: Problem, posterior: DensePosterior) -> Array:
    """Return Σ w log p(y|f) − ½ fᵀK⁻¹f at the posterior's mean f = K α."""
    xp = namespace(posterior.alpha)
    log_p = problem.likelihood.log_prob(problem.y, posterior.mean)
    return xp.sum(problem.copies * log_p) - 0.5 * xp.sum(posterior.alpha * posterior.mean)
