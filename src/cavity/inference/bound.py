"""What methods that maximise a lower bound of the evidence have in common."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from cavity.arrays import Array
from cavity.inference.ascent import solve_or_ascend
from cavity.inference.base import Driver, Method
from cavity.inference.problem import Problem
from cavity.likelihoods import Likelihood
from cavity.sites import Local, Marginals, Matched, Moments, Rows, expand


@dataclass(frozen=True)
class Bound(Method):
    """The Gaussian q(f) of the highest bound Σ w ⟨log p⟩ − KL(q‖prior).

    ⟨log p⟩ is a function of each row's own marginal N(μ, Σ). Where the bound is highest, the row's
    site has its slope in μ, and its precision is −2 times its slope in Σ.
    """

    # The bound is stationary in the sites: this gives it eleven digits and its gradient six.
    tol: float = 1e-6

    concave: ClassVar[bool] = True
    bounds: ClassVar[bool] = True
    iterates_variance: ClassVar[bool] = True
    # Of 200 hard problems 7 do not converge without it, and the others take twice as long.
    memory: ClassVar[int] = 5

    @abstractmethod
    def averages(self, likelihood: Likelihood, y: Array, q: Marginals) -> Moments:
        """Return ⟨log p⟩ under each marginal, its slope in the mean, and −τ."""

    def respond(
        self, likelihood: Likelihood, rows: Rows, mean: Array, alpha: Array, lam: Array
    ) -> Matched:
        """Respond through averages over the marginal N(μ_i, λ_i) itself."""
        moments = self.averages(likelihood, rows.y, Marginals(mean, lam))
        return Matched(moments, expand(mean, moments.d1, moments.d2, rows.weight))

    def variance(self, local: Local, weight: Array) -> Array:
        """Return the marginal variances."""
        return local.q.variance + local.beyond

    def terms(self, rows: Rows, local: Local, lam: Array, moments: Moments) -> Array:
        """Return the bound Σ w ⟨log p⟩ − ½[tr B⁻¹ + α·μ − n + 2 Σ log L_ii], row by row."""
        return rows.weight * moments.log_z - 0.5 * (local.rest - 1.0 + local.alpha * local.q.mean)

    def driver(self, problem: Problem) -> Driver:
        """Return the driver that solves the equations."""
        return solve_or_ascend if problem.prior.dense else super().driver(problem)
