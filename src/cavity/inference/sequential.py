"""Sequential: Bayesian online learning, each example met once (the founding paper's third way)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from cavity.arrays import Array, NotPositiveDefiniteError, clip, namespace, solve_lower
from cavity.inference.base import Fit, Method, Problem, Report, Start, register, site_of
from cavity.inference.running import RunningPosterior
from cavity.likelihoods import Likelihood
from cavity.priors import DensePosterior
from cavity.sites import Marginals, Sites

__all__ = ["Sequential"]

_INDEFINITE = 100.0
_BLOCK = 64
"""Examples whose covariances with all earlier ones are worked out together."""


@register
@dataclass(frozen=True)
class Sequential(Method):
    """One sweep over the data in the order given; no iteration.

    Parameters
    ----------
    sweeps : int
        More than one re-presents the data *without* taking old contributions out: the founding
        paper's heuristic, which counts every example several times. The evidence is that of the
        first sweep, the only one in which the examples are new. Proper removal is EP.
    """

    sweeps: int = 1

    name: ClassVar[str] = "sequential"
    needs: ClassVar[str] = "tilted"
    has_gradient: ClassVar[bool] = False

    def fit(self, problem: Problem, start: Start | None = None) -> Fit:
        """Learn the examples one by one."""
        sites, log_evidence = _first_sweep(problem)
        posterior = problem.prior.condition(sites)
        for _ in range(self.sweeps - 1):
            posterior = _present_again(problem, posterior)
        report = Report(True, self.sweeps, 0.0, f"{self.sweeps} sweep(s) in the order given")
        next_start = Start(posterior.alpha, problem.prior.diag)
        return Fit(problem, problem, self, posterior, log_evidence, report, next_start)

    def solve(self, problem: Problem, start: Start | None) -> tuple[DensePosterior, Report, Start]:
        """Find the posterior."""
        found = self.fit(problem, start)
        return found.posterior, found.report, found.start

    def log_evidence(self, problem: Problem, posterior: DensePosterior) -> Any:
        """Return Σ_t log Z_t of one sweep."""
        return _first_sweep(problem)[1]


def _first_sweep(problem: Problem) -> tuple[Sites, float]:
    """Return the sites of one sweep and Σ_t log Z_t.

    The factor L of B = I + S K S grows by a row for each example: with u = L⁻¹ S k the next one is
    predicted as N(u·g, k(x,x) − u·u), g = L⁻¹ S⁻¹ ν, and its site (τ, ν) adds the row
    (√τ u, √(1 + τ v)).
    """
    n = problem.prior.size
    growing = _GrowingFactor(problem)
    total = 0.0
    for begin in range(0, n, _BLOCK):
        growing.open_block(begin, min(begin + _BLOCK, n))
        for t in range(begin, min(begin + _BLOCK, n)):
            u, q = growing.predict(t)
            own = problem.likelihood.subset(slice(t, t + 1))
            site, log_z = _present(own, problem.y[t : t + 1], q, float(problem.copies[t]))
            growing.append(t, u, q, site)
            total += log_z
    return growing.sites(), total


def _present(likelihood: Likelihood, y: Array, q: Marginals, copies: float) -> tuple[Sites, float]:
    """Present one example as often as it counts; return its sites' sum and log probability.

    An example of weight 2.5 is presented twice and then once through p(y|f)^½.
    """
    part, whole = math.modf(copies)
    turns = [likelihood] * int(whole) + ([likelihood.power(part)] if part else [])
    tau, nu, log_z = 0.0 * q.mean, 0.0 * q.mean, 0.0
    for turn in turns:
        grown = 1.0 + tau * q.variance
        now = Marginals((q.mean + q.variance * nu) / grown, q.variance / grown)
        moments, site = site_of(turn, y, now)
        tau, nu, log_z = tau + site.tau, nu + site.nu, log_z + float(moments.log_z[0])
    return Sites(tau, nu), log_z


class _GrowingFactor:
    """chol(B) of the examples met so far, filled in row by row."""

    def __init__(self, problem: Problem) -> None:
        xp = namespace(problem.y)
        self.K = problem.prior.K
        self.prior_variance = problem.prior.diag
        self.L = xp.zeros_like(self.K)
        self.s, self.g, self.nu = (xp.zeros_like(self.prior_variance) for _ in range(3))
        self.begin = 0

    def open_block(self, begin: int, end: int) -> None:
        """Work out L⁻¹ S K between all examples before the block and those in it."""
        scaled = self.s[:begin, None] * self.K[:begin, begin:end]
        self.begin = begin
        self.before = solve_lower(self.L[:begin, :begin], scaled) if begin else scaled

    def predict(self, t: int) -> tuple[Array, Marginals]:
        """Return u = L⁻¹ S k of the next example, and its predictive marginal."""
        xp = namespace(self.g)
        b = self.begin
        first = self.before[:, t - b]
        rest = self.s[b:t] * self.K[b:t, t] - self.L[b:t, :b] @ first
        u = xp.concat([first, solve_lower(self.L[b:t, b:t], rest)]) if t > b else first
        eps, prior_variance = float(xp.finfo(u.dtype).eps), float(self.prior_variance[t])
        v = self.prior_variance[t] - xp.sum(u * u)
        if not float(v) > -_INDEFINITE * eps * (t + 1) * prior_variance:
            raise NotPositiveDefiniteError(f"the predictive variance of example {t} is negative")
        # Rounding may leave a variance that has shrunk by sixteen orders at zero or below.
        v = clip(v, low=eps**2 * prior_variance)
        m = xp.sum(u * self.g[:t])
        return u, Marginals(xp.reshape(m, (1,)), xp.reshape(v, (1,)))

    def append(self, t: int, u: Array, q: Marginals, site: Sites) -> None:
        """Learn the example's site."""
        xp = namespace(self.g)
        s, nu = xp.sqrt(site.tau[0]), site.nu[0]
        corner = xp.sqrt(1.0 + site.tau[0] * q.variance[0])
        self.L[t, :t], self.L[t, t] = s * u, corner
        self.s[t], self.nu[t] = s, nu
        if float(s) > 0.0:
            self.g[t] = (nu / s - s * q.mean[0]) / corner

    def sites(self) -> Sites:
        """Return the sites of all examples."""
        return Sites(self.s**2, self.nu)


def _present_again(problem: Problem, posterior: DensePosterior) -> DensePosterior:
    """Show every example once more as if it were new."""
    running = RunningPosterior(problem, posterior)
    for t in range(problem.prior.size):
        own = problem.likelihood.subset(slice(t, t + 1))
        site, _ = _present(own, problem.y[t : t + 1], running.marginal(t), float(problem.copies[t]))
        running.add(t, site)
    return problem.prior.condition(running.sites)
