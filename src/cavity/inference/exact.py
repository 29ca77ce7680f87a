"""Exact: a Gaussian likelihood is its own site."""

from typing import Any, ClassVar

from cavity.arrays import namespace
from cavity.inference.base import (
    Method,
    Problem,
    Report,
    Start,
    log_joint_at_mode,
    register,
)
from cavity.priors import DensePosterior
from cavity.sites import expand

__all__ = ["Exact"]


@register
class Exact(Method):
    """Regression with Gaussian noise, in one step and one factorisation."""

    name: ClassVar[str] = "exact"
    needs: ClassVar[str] = "sites"

    def solve(self, problem: Problem, start: Start | None) -> tuple[DensePosterior, Report, Start]:
        """Read the sites off the likelihood."""
        likelihood, prior, y, copies = problem
        f = namespace(y).zeros_like(prior.diag)
        d1, d2, _ = likelihood.derivatives(y, f)
        posterior = prior.condition(expand(f, d1, d2, copies))
        return posterior, Report(True, 1, 0.0, "exact"), Start(posterior.alpha, prior.diag)

    def log_evidence(self, problem: Problem, posterior: DensePosterior) -> Any:
        """Return log p(y|μ) − ½ α·μ − Σ log L_ii, R&W (2.30) by another route."""
        return log_joint_at_mode(problem, posterior) - posterior.half_log_det
