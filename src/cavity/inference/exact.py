"""Exact: a Gaussian likelihood is its own site."""

from typing import ClassVar

from cavity.arrays import Array
from cavity.inference.base import Method, expanded, log_joint, register
from cavity.inference.problem import Fit, Problem, Report, WarmStart
from cavity.inference.self_consistent import dense_fit, equations_of
from cavity.likelihoods import Likelihood
from cavity.sites import Local, Matched, Moments, Rows


@register
class Exact(Method):
    """Regression with Gaussian noise, in one step and one factorisation."""

    name: ClassVar[str] = "exact"
    needs: ClassVar[str] = "derivatives"

    @classmethod
    def serves(cls, likelihood: Likelihood) -> bool:
        """Whether log p is quadratic in f."""
        return likelihood.quadratic

    def respond(
        self, likelihood: Likelihood, rows: Rows, mean: Array, alpha: Array, lam: Array
    ) -> Matched:
        """Read the sites off the likelihood."""
        return expanded(likelihood, rows, mean)

    def terms(self, rows: Rows, local: Local, lam: Array, moments: Moments) -> Array:
        """Return log p(y|μ) − ½ α·μ row by row, R&W (2.30) by another route."""
        return log_joint(rows, local, moments)

    def fit(self, problem: Problem, start: WarmStart | None = None) -> Fit:
        """Condition on the sites."""
        if not problem.prior.dense:
            return super().fit(problem, start)
        equations, diag = equations_of(self, problem), problem.prior.diag
        sites = expanded(equations.likelihood, equations.rows, 0.0 * diag).sites
        posterior = problem.prior.condition(sites)
        report, end = Report(True, 1, 0.0, "exact"), WarmStart(sites, diag)
        return dense_fit(equations, problem, posterior, posterior.means(), diag, report, end)
