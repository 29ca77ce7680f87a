"""Expectation propagation: sites whose cavities agree with the moments of the tilted marginals."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from cavity.arrays import Array, namespace
from cavity.inference.base import Driver, Method, register, whole_copies
from cavity.inference.problem import Problem
from cavity.inference.sequential import one_by_one
from cavity.likelihoods import Likelihood
from cavity.sites import Local, Moments, Rows, cavity


@register
@dataclass(frozen=True)
class EP(Method):
    """Expectation propagation, whose fixed points are those of the TAP equations.

    Parameters
    ----------
    tol : float, default 1e-06
    schedule : {"parallel", "sequential"}, default "parallel"
        Parallel updates all cavity variances at once and solves for the means in between; if that
        does not converge, damped sweeps are used. Sequential updates one site after the other: a
        reference schedule that is far slower.
    power : float, default 1.0
        Power EP's fraction η: sites are matched to p(y|f)^η, which is EP with 1/η copies of that
        likelihood. η → 0 approaches the variational method.
    """

    # The evidence is stationary in the sites: this gives it eleven digits and its gradient six.
    tol: float = 1e-6
    schedule: Literal["parallel", "sequential"] = "parallel"
    power: float = 1.0

    name: ClassVar[str] = "ep"
    needs: ClassVar[str] = "tilted"
    iterates_variance: ClassVar[bool] = True
    # Saves a fifth of the factorisations on iris and on a fit of 1,600 rows.
    memory: ClassVar[int] = 5

    @property
    def dense_only(self) -> bool:
        """The reference schedule needs the covariances of all examples."""
        return self.schedule == "sequential"

    @property
    def corrected(self) -> bool:
        """Whether `second_order_correction` applies to the evidence."""
        return self.power == 1.0

    def prepare(self, likelihood: Likelihood, rows: Rows) -> tuple[Likelihood, Rows]:
        """Count no row less than once, and turn power EP into EP with 1/η copies of p(y|f)^η."""
        likelihood, rows = whole_copies(*super().prepare(likelihood, rows))
        if self.power == 1.0:
            return likelihood, rows
        return likelihood.power(self.power), rows._replace(weight=rows.weight / self.power)

    def variance(self, local: Local, weight: Array) -> Array:
        """Return the variances of the cavities."""
        return cavity(local, weight).variance

    def terms(self, rows: Rows, local: Local, lam: Array, moments: Moments) -> Array:
        """Return log Z_EP row by row; R&W (3.65) with the terms of each site gathered.

        Written in α and μ, in which the terms of order τ μ² of a sharp site have cancelled: the
        marginal's mean maximises cavity times site.
        """
        w, alpha, mean = rows.weight, local.alpha, local.q.mean
        share = namespace(w).log1p(local.sites.tau * lam / w)
        return w * (moments.log_z + 0.5 * share) - 0.5 * alpha * (mean - lam * alpha / w)

    def driver(self, problem: Problem) -> Driver:
        """Return the driver that solves the equations."""
        return one_by_one if self.schedule == "sequential" else super().driver(problem)
