"""Exact: a Gaussian likelihood is its own site."""

from typing import ClassVar

from cavity.arrays import Array
from cavity.inference.base import Driver, Method, expanded, log_joint, register
from cavity.inference.problem import Problem
from cavity.inference.self_consistent import one_step
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

    def driver(self, problem: Problem) -> Driver:
        """Return the driver that solves the equations."""
        return one_step if problem.prior.dense else super().driver(problem)
