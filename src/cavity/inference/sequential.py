"""One example after the other: Bayesian online learning, and EP's reference schedule."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cavity.arrays import (
    Array,
    NotPositiveDefiniteError,
    add_outer,
    clip,
    copy,
    namespace,
    put,
    solve_lower,
)
from cavity.inference.base import METHODS, Method, register, site_of
from cavity.inference.problem import Fit, Problem, Report, WarmStart, report_of
from cavity.inference.self_consistent import dense_fit, equations_of
from cavity.likelihoods import Likelihood
from cavity.priors import DensePosterior
from cavity.sites import Local, Marginals, Matched, Rows, Sites, cavity, change_of_sites

_INDEFINITE = 100.0
_SMALLEST_REST = 1e-12
SINGLY = 128
"""Copies of an example that are presented one by one."""
MOST_COPIES = 1e12
"""More copies of an example leave too few digits for its next cavity."""
_GROWTH = 0.05
"""Further copies that are presented together, as a share of those before them."""
_BENT = 0.03
"""Share of what a group changes by which its first copy and its middle one may disagree."""
_BLOCK = 64
"""Examples whose covariances with all earlier ones are worked out together."""


@register
@dataclass(frozen=True)
class Sequential(Method):
    """One sweep over the data in the order given; no iteration (the founding paper's third way).

    Hyperparameters are tuned by EP's evidence, which has an exact gradient.

    Parameters
    ----------
    sweeps : int, default 1
        More than one presents the data again *without* removing old contributions: the founding
        paper's heuristic, which counts every example several times. The evidence is that of the
        first sweep, the only one in which the examples are new. EP removes them properly.
    """

    sweeps: int = 1

    name: ClassVar[str] = "sequential"
    needs: ClassVar[str] = "tilted"
    has_gradient: ClassVar[bool] = False
    ordered: ClassVar[bool] = True

    @property
    def dense_only(self) -> bool:
        """It needs the covariances of all examples."""
        return True

    @property
    def tuned_by(self) -> Method:
        """EP: its evidence has a gradient, and does not depend on the order of the rows."""
        return METHODS["ep"]()

    def fit(self, problem: Problem, start: WarmStart | None = None) -> Fit:
        """Learn the examples one by one."""
        if not problem.prior.dense:
            raise ValueError("Sequential inference needs the covariance matrix of all examples.")
        sites, log_evidence = _first_sweep(problem)
        posterior = problem.prior.condition(sites)
        for _ in range(self.sweeps - 1):
            posterior = _present_again(problem, posterior)
        report = Report(True, self.sweeps, 0.0, f"{self.sweeps} sweep(s) in the order given")
        end = WarmStart(posterior.sites, problem.prior.diag)
        return Fit(problem, self, posterior, log_evidence, report, end)


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
            y, weight = problem.rows.y[t : t + 1], float(problem.rows.weight[t])
            site, log_z = _present(own, y, q, weight)
            growing.append(t, u, q, site)
            total += log_z
    return growing.sites(), total


def _present(likelihood: Likelihood, y: Array, q: Marginals, weight: float) -> tuple[Sites, float]:
    """Present one example as often as it counts; return its sites' sum and log probability.

    An example of weight 2.5 is presented twice and then once through p(y|f)^½.
    """
    part, whole = math.modf(weight)
    found, log_z = presented(lambda c: site_of(likelihood, y, c), q, whole)
    if part:
        moments, site = site_of(likelihood.power(part), y, _after(q, found))
        found = _plus(found, 1.0, site)
        log_z += float(moments.log_z[0])
    return found, log_z


def presented(
    site_at: Callable[[Marginals], Matched], q: Marginals, copies: float, earlier: float = 0.0
) -> tuple[Sites, float]:
    """Present copies of one example one after the other; return their sites' sum and Σ log Z.

    Up to `SINGLY` copies, the earlier ones included, are presented one by one. After that a copy
    changes less than a hundredth of what those before it have learned: growing groups of them take
    the site that the middle one of the group would get, so that time grows with the logarithm. An
    outlier's copies may change little at first and much later; their groups are made smaller.
    """
    found, log_z, done, total = Sites(0.0 * q.mean, 0.0 * q.mean), 0.0, earlier, earlier + copies
    while done < total:
        group = 1.0 if done < SINGLY else min(_GROWTH * done, total - done)
        group, matched = _together(site_at, _after(q, found), group)
        found = _plus(found, group, matched.sites)
        log_z, done = log_z + group * float(matched.moments.log_z[0]), done + group
    return found, log_z


def _together(
    site_at: Callable[[Marginals], Matched], q: Marginals, group: float
) -> tuple[float, Matched]:
    """Return how many of the next copies have nearly one site, and that of their middle one."""
    first = middle = site_at(q)
    while group > 1.0:
        middle = site_at(_after(q, _times(0.5 * (group - 1.0), first.sites)))
        if _agree(q, _times(group, first.sites), _times(group, middle.sites)):
            break
        group, middle = max(1.0, 0.5 * group), first
    return group, middle


def _agree(q: Marginals, one: Sites, other: Sites) -> bool:
    """Whether two sites change a marginal in nearly the same way."""
    if not float(q.variance[0]) > 0.0:
        return True
    a, b = _after(q, one), _after(q, other)
    moved = math.sqrt(float(q.variance[0])) + abs(float(b.mean[0] - q.mean[0]))
    near = abs(float(a.mean[0] - b.mean[0])) <= _BENT * moved
    return near and abs(math.log(float(a.variance[0] / b.variance[0]))) <= _BENT


def _plus(sites: Sites, factor: float, more: Sites) -> Sites:
    return Sites(sites.tau + factor * more.tau, sites.nu + factor * more.nu)


def _times(factor: float, sites: Sites) -> Sites:
    return Sites(factor * sites.tau, factor * sites.nu)


def _after(q: Marginals, site: Sites) -> Marginals:
    """Return a marginal once a site has been multiplied in."""
    grown = 1.0 + site.tau * q.variance
    return Marginals((q.mean + q.variance * site.nu) / grown, q.variance / grown)


class _GrowingFactor:
    """chol(B) of the examples seen so far, filled in row by row."""

    def __init__(self, problem: Problem) -> None:
        xp = namespace(problem.rows.y)
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
        # Rounding may make a variance that has shrunk by sixteen orders zero or negative.
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
    running = RunningPosterior(posterior)
    for t in range(problem.prior.size):
        own = problem.likelihood.subset(slice(t, t + 1))
        y, weight = problem.rows.y[t : t + 1], float(problem.rows.weight[t])
        site, _ = _present(own, y, running.marginal(t), weight)
        running.add(t, site)
    again: DensePosterior = problem.prior.condition(running.sites)
    return again


class RunningPosterior:
    """Mean and covariance of all training latent values, kept up to date site by site."""

    def __init__(self, posterior: DensePosterior) -> None:
        self.prior_variance, self.sites = posterior.prior.diag, posterior.sites
        self.mean, self.covariance = posterior.mean, posterior.covariance()

    def marginal(self, i: int) -> Marginals:
        """Return the posterior marginal of one example, as arrays of length one."""
        # Rounding may make a variance that has shrunk by sixteen orders zero or negative.
        xp = namespace(self.mean)
        floor = float(xp.finfo(self.mean.dtype).eps) ** 2 * float(self.prior_variance[i])
        variance = clip(self.covariance[i : i + 1, i], low=floor)
        return Marginals(self.mean[i : i + 1], variance)

    def add(self, i: int, change: Sites) -> None:
        """Multiply one site (τ, ν, arrays of length one) into the posterior."""
        q = self.marginal(i)
        column = copy(self.covariance[:, i])
        grown = 1.0 + change.tau * q.variance
        self.mean = self.mean + ((change.nu - change.tau * q.mean) / grown) * column
        self.covariance = add_outer(self.covariance, -float(change.tau[0] / grown[0]), column)
        index = namespace(self.mean).asarray([i])
        self.sites = Sites(
            put(self.sites.tau, index, self.sites.tau[i : i + 1] + change.tau),
            put(self.sites.nu, index, self.sites.nu[i : i + 1] + change.nu),
        )


def one_by_one(method: Method, problem: Problem, start: WarmStart | None = None) -> Fit:
    """Replace one site after the other by the one that matches its cavity, until none changes.

    Rank-one updates of an n × n matrix: the reference for schedules that update sites in parallel.
    """
    if not problem.prior.dense:
        raise ValueError("The sequential schedule needs the covariance matrix of all examples.")
    equations = equations_of(method, problem)
    running = RunningPosterior(problem.prior.condition())
    residual, n_iter = float("inf"), 0
    while residual > method.tol and n_iter < method.max_iter:
        changes = [
            _revisit(running, equations.likelihood, equations.rows, i)
            for i in range(problem.prior.size)
        ]
        # Unlike max, this one finds what is no number.
        residual = float(np.max(changes))
        n_iter += 1
    # Rank-one updates accumulate rounding; the posterior is computed afresh from the sites alone.
    posterior = problem.prior.condition(running.sites)
    local = posterior.local()
    lam = method.variance(local, equations.rows.weight)
    report = report_of(residual <= method.tol, n_iter, residual, "sequential sweeps")
    end = WarmStart(running.sites, lam)
    return dense_fit(equations, problem, posterior, local, lam, report, end)


def _revisit(running: RunningPosterior, likelihood: Likelihood, rows: Rows, i: int) -> float:
    """Replace one example's site; return its change in units of the marginal's own precision."""
    one = slice(i, i + 1)
    q, w = running.marginal(i), rows.weight[one]
    old = Sites(running.sites.tau[one], running.sites.nu[one])
    # Rounding may take a marginal below the variance that its own site allows.
    rest = clip(1.0 - old.tau * q.variance, low=_SMALLEST_REST)
    c = cavity(Local(q, old, old.nu - old.tau * q.mean, rest, q.variance), w)
    new = site_of(likelihood.subset(one), rows.y[one], c, w).sites
    running.add(i, Sites(new.tau - old.tau, new.nu - old.nu))
    return change_of_sites(new, old, q.variance)
