"""Expectation propagation: sites whose cavities agree with the moments of the tilted marginals."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from cavity.arrays import Array, namespace
from cavity.inference.base import Method, Problem, Report, Start, register, with_whole_copies
from cavity.inference.newton import cavity_response
from cavity.inference.running import RunningPosterior, revisit
from cavity.inference.self_consistent import Equations, solve_consistent
from cavity.priors import DensePosterior
from cavity.sites import Local, Sites, cavity

__all__ = ["EP"]

# A sweep is n updates of an n × n matrix: beyond this it outlasts anybody's patience.
_SEQUENTIAL_LIMIT = 3000


@register
@dataclass(frozen=True)
class EP(Method):
    """Expectation propagation, whose fixed points are those of the TAP equations.

    Parameters
    ----------
    tol : float
    schedule : {"parallel", "sequential"}
        Parallel updates all cavity variances at once, the means solved in between; what does not
        converge that way is handed to the sequential schedule, one site after the other (up to
        3,000 examples).
    power : float
        Power EP's fraction η: sites are matched to p(y|f)^η, which is EP with 1/η copies of that
        likelihood. η → 0 approaches the variational method.
    """

    # The evidence is stationary in the sites: this leaves it eleven digits, its gradient six.
    tol: float = 1e-6
    schedule: Literal["parallel", "sequential"] = "parallel"
    power: float = 1.0

    name: ClassVar[str] = "ep"
    needs: ClassVar[str] = "tilted"

    def solve(self, problem: Problem, start: Start | None) -> tuple[DensePosterior, Report, Start]:
        """Find the fixed point."""
        if self.schedule == "parallel":
            found = solve_consistent(
                problem,
                Equations(cavity_response, _cavity_variance),
                start,
                tol=self.tol,
                max_iter=self.max_iter,
            )
            if found[1].converged or problem.prior.size > _SEQUENTIAL_LIMIT:
                return found
        return self._solve_sequentially(problem)

    def _solve_sequentially(self, problem: Problem) -> tuple[DensePosterior, Report, Start]:
        running = RunningPosterior(problem)
        residual, n_iter = float("inf"), 0
        while residual > self.tol and n_iter < self.max_iter:
            residual = revisit(running, range(problem.prior.size))
            n_iter += 1
        # Rank-one updates gather rounding; the posterior is made anew from the sites alone.
        posterior = problem.prior.condition(running.sites)
        converged = residual <= self.tol
        how = "converged" if converged else "stopped without converging"
        message = f"{how} after {n_iter} sequential sweeps, residual {residual:.1e}"
        variance = _cavity_variance(posterior.local, problem.copies)
        return (
            posterior,
            Report(converged, n_iter, residual, message),
            Start(posterior.alpha, variance),
        )

    def prepare(self, problem: Problem) -> Problem:
        """Turn power EP into EP with 1/η copies of p(y|f)^η."""
        problem = with_whole_copies(problem)
        if self.power == 1.0:
            return problem
        likelihood, prior, y, copies = problem
        return Problem(likelihood.power(self.power), prior, y, copies / self.power)

    def log_evidence(self, problem: Problem, posterior: DensePosterior) -> Any:
        """Return log Z_EP; R&W (3.65) with the terms of each site gathered, none divided by v."""
        likelihood, _, y, copies = problem
        xp = namespace(posterior.alpha)
        c = cavity(posterior.local, copies)
        log_z = likelihood.tilted(y, c).log_z
        tau, nu = _one_copy(posterior.sites, copies)
        m, v = c
        grown = 1.0 + tau * v
        site = log_z + 0.5 * xp.log(grown) - 0.5 * (nu**2 * v + 2.0 * nu * m - tau * m**2) / grown
        mean_term = 0.5 * xp.sum(posterior.sites.nu * posterior.mean)
        return xp.sum(copies * site) + mean_term - posterior.half_log_det


def _one_copy(sites: Sites, copies: Array) -> Sites:
    return Sites(sites.tau / copies, sites.nu / copies)


def _cavity_variance(local: Local, copies: Array) -> Array:
    return cavity(local, copies).variance
