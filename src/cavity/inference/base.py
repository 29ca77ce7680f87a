"""An inference method as row equations, and the registry of methods."""

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from cavity.arrays import Array, clip, namespace
from cavity.inference.problem import Fit, Problem, WarmStart
from cavity.inference.self_consistent import fixed_variance, self_consistent
from cavity.inference.sweeps import sweep
from cavity.likelihoods import Likelihood
from cavity.sites import Local, Marginals, Matched, Moments, Rows, Slope, expand, match


@dataclass(frozen=True)
class Method(ABC):
    """An inference method: which variance the likelihood sees, and what follows from that.

    A method is four functions of a block of rows. `respond` gives each row's moments and site at
    a posterior mean, `variance` the λ that it responds with, `terms` what the row adds to the log
    evidence, and `slope` how the evidence changes with the prior. Solving the equations is left
    to the drivers.

    Parameters
    ----------
    tol : float, default 1e-08
        Dimensionless residual at which to stop.
    max_iter : int, default 100
        Maximum number of iterations of the outermost loop.
    """

    tol: float = 1e-8
    max_iter: int = 100

    name: ClassVar[str]
    needs: ClassVar[str]
    """What the method needs from a likelihood: an entry of its `offers`."""
    volume: ClassVar[bool] = True
    """Whether −½ log det(I + K T) belongs to the evidence; without it, no variances either."""
    concave: ClassVar[bool] = False
    """Whether the means maximise Σ w log z − ½ α·μ at given λ."""
    iterates_variance: ClassVar[bool] = False
    """Whether λ depends on the posterior."""
    memory: ClassVar[int] = 0
    """Steps from which the iteration on λ extrapolates."""
    has_gradient: ClassVar[bool] = True
    is_stationary: ClassVar[bool] = True
    """Whether the evidence does not change, to first order, with what is iterated."""
    may_factor: ClassVar[bool] = True
    """Whether Newton's method may factor B if conjugate gradients are slow."""
    bounds: ClassVar[bool] = False
    """Whether the evidence is a lower bound of the true one, and is to stay one."""
    ordered: ClassVar[bool] = False
    """Whether the result depends on the order of the rows."""

    @classmethod
    def serves(cls, likelihood: Likelihood) -> bool:
        """Whether the likelihood offers what the method needs, and is log-concave.

        Otherwise sites may have negative precisions.
        """
        return likelihood.concave and cls.needs in likelihood.offers

    @property
    def dense_only(self) -> bool:
        """Whether the method needs the covariances of all rows as a matrix."""
        return False

    @property
    def tuned_by(self) -> "Method":
        """The method whose evidence hyperparameters are searched by; as a rule this one."""
        return self

    @property
    def corrected(self) -> bool:
        """Whether `second_order_correction` applies to the evidence."""
        return False

    @property
    def plain_slope(self) -> bool:
        """Whether `slope` is the default, which does not look at the rows."""
        return type(self).slope is Method.slope

    def prepare(self, likelihood: Likelihood, rows: Rows) -> tuple[Likelihood, Rows]:
        """Return the likelihood of these rows, and the rows, in the form that the method solves."""
        return likelihood if rows.place == slice(None) else likelihood.subset(rows.place), rows

    def view(self, posterior: Any, seen: Any, sites: Any) -> Local:
        """Return what the posterior says about each row, without variances that are not needed."""
        if self.volume or not posterior.prior.dense:
            return posterior.local(seen, sites)  # type: ignore[no-any-return]
        return posterior.means()  # type: ignore[no-any-return]

    def respond(
        self, likelihood: Likelihood, rows: Rows, mean: Array, alpha: Array, lam: Array
    ) -> Matched:
        """Return each row's moments and site, given its posterior mean, α and λ.

        The default goes through a cavity of variance λ.
        """
        return through_cavity(likelihood, rows, mean, alpha, lam)

    def variance(self, local: Local, weight: Array) -> Array:
        """Return λ, the variance that the likelihood sees; by default the prior's."""
        return local.prior

    def terms(self, rows: Rows, local: Local, lam: Array, moments: Moments) -> Array:
        """Return each row's part of the log evidence, log Z = Σ terms − ½ log det(I + K T).

        A method with a `fit` of its own has none.
        """
        raise TypeError(f"{self.name!r} finds its evidence in its own way.")

    def slope(self, likelihood: Likelihood, rows: Rows, local: Local, prior: Any) -> Slope:
        """Return how the evidence changes with the prior.

        The default is right if the evidence is stationary in the sites.
        """
        return Slope()

    def depends(
        self, rows: Rows, local: Local, moved: Array | None
    ) -> Callable[[Likelihood], Array]:
        """Return each row's part of the evidence as a function of the likelihood alone.

        Its slopes in the likelihood's parameters are those of the evidence. The default is right
        if the evidence is stationary in the sites; ``moved`` are the means under the slope's
        source, where there is one.
        """
        return lambda likelihood: rows.weight * self.moments(likelihood, rows, local).log_z

    def has_slopes(self, likelihood: Likelihood) -> bool:
        """Whether gradients are known, also in the parameters of this likelihood."""
        return self.has_gradient

    def fit(self, problem: Problem, start: WarmStart | None = None) -> Fit:
        """Find the approximate posterior and its evidence.

        Far out a trial may overflow: it is judged by its merit, and not taken.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self.driver(problem)(self, problem, start)

    def driver(self, problem: Problem) -> "Driver":
        """Return the driver for the equations: sweeps, or Newton's method if K is a matrix."""
        if not problem.prior.dense:
            return sweep
        return self_consistent if self.iterates_variance else fixed_variance

    def rounding(self, fit: Fit) -> float:
        """Return the error of the log evidence by inverses that have lost their digits."""
        return 0.0

    def moments(self, likelihood: Likelihood, rows: Rows, local: Local) -> Moments:
        """Return the moments that belong to a posterior."""
        lam = self.variance(local, rows.weight)
        return self.respond(likelihood, rows, local.q.mean, local.alpha, lam).moments


Driver = Callable[[Method, Problem, WarmStart | None], Fit]
"""Solves a method's equations for a problem, perhaps from a warm start."""

METHODS: dict[str, type[Method]] = {}
"""Every inference method by its name."""

M = TypeVar("M", bound=type[Method])


def register(cls: M) -> M:
    """Register a method by its name."""
    METHODS[cls.name] = cls
    return cls


def whole_copies(likelihood: Likelihood, rows: Rows) -> tuple[Likelihood, Rows]:
    """Return the same rows with none counted less than once.

    A cavity leaves out one copy, so there must be one: a row of weight w < 1 is one copy of the
    likelihood p(y|f)^w.
    """
    if namespace(rows.weight).all(rows.weight >= 1.0):
        return likelihood, rows
    weakened = likelihood.power(clip(rows.weight, high=1.0))
    return weakened, rows._replace(weight=clip(rows.weight, low=1.0))


def through_cavity(
    likelihood: Likelihood, rows: Rows, mean: Array, alpha: Array, lam: Array
) -> Matched:
    """Respond through a cavity of variance λ: m_i = μ_i − λ_i α_i/w_i (TAP)."""
    c = Marginals(mean - lam * alpha / rows.weight, lam)
    return site_of(likelihood, rows.y, c, rows.weight)


def expanded(likelihood: Likelihood, rows: Rows, mean: Array) -> Matched:
    """Respond by the slope and curvature of log p at the means."""
    d1, d2, _ = likelihood.derivatives(rows.y, mean)
    moments = Moments(likelihood.log_prob(rows.y, mean), d1, d2)
    return Matched(moments, expand(mean, d1, d2, rows.weight))


def log_joint(rows: Rows, local: Local, moments: Moments) -> Array:
    """Return each row's part of w log p(y|f) − ½ fᵀK⁻¹f at the posterior's mean f = K α."""
    return rows.weight * moments.log_z - 0.5 * local.alpha * local.q.mean


def site_of(likelihood: Likelihood, y: Array, c: Marginals, weight: Array | float = 1.0) -> Matched:
    """Return each cavity's tilted moments and the site that matches them.

    A quadratic log likelihood is its own site, whatever the cavity; matching it would lose digits
    when it is much sharper than the cavity.
    """
    moments = likelihood.tilted(y, c)
    if not likelihood.quadratic:
        return Matched(moments, match(c, moments, weight))
    d1, d2, _ = likelihood.derivatives(y, c.mean)
    return Matched(moments, expand(c.mean, d1, d2, weight))
