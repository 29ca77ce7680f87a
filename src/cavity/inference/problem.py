"""What inference takes and gives: a problem in, a fit out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cavity.arrays import Array, clip, namespace
from cavity.likelihoods import Likelihood
from cavity.rows import MemoryBlocks, RowBlocks, State
from cavity.sites import Rows, Sites, Slope

if TYPE_CHECKING:
    from cavity.inference.base import Method


class Problem(NamedTuple):
    """Latent values with a prior, seen through a likelihood.

    ``rows`` are all rows in memory, or blocks of rows kept elsewhere. A row of weight w is w
    rows that happen to be equal, each with a site of its own.
    """

    likelihood: Likelihood
    prior: Any
    rows: Rows | Any

    @classmethod
    def of(
        cls, likelihood: Likelihood, prior: Any, y: Array, weight: Array | None = None
    ) -> Problem:
        """Return the problem of targets that are held in memory, each counting once by default."""
        ones = 0.0 * y + 1.0 if weight is None else weight
        return cls(likelihood, prior, Rows(y, ones))

    @property
    def blocks(self) -> RowBlocks:
        """The rows in blocks."""
        return MemoryBlocks(self.rows) if isinstance(self.rows, Rows) else self.rows


class Report(NamedTuple):
    """How an inference ended."""

    converged: bool
    n_iter: int
    residual: float
    message: str


def report_of(converged: bool, n_iter: int, residual: float, what: str = "iterations") -> Report:
    """Return a report with the message that warnings show."""
    how = "converged" if converged else "stopped without converging"
    message = f"{how} after {n_iter} {what}, residual {residual:.1e}"
    return Report(converged, n_iter, residual, message)


class WarmStart(NamedTuple):
    """Where a fit of a similar problem may start."""

    sites: Any
    """The sites, or the `State` that blocks of rows keep them under."""
    variance: Array = None
    """λ, the variances that the likelihood sees."""
    low_rank_variance: Array = None
    """λ under the low-rank approximation of the prior."""


@dataclass(frozen=True)
class Fit:
    """An approximate posterior, its evidence, and how it was reached."""

    problem: Problem
    method: Method
    posterior: Any
    log_evidence: float
    report: Report
    start: WarmStart
    """Where a fit of a similar problem may start."""

    @property
    def _state(self) -> str:
        """The name under which blocks of rows keep their sites; a dense posterior has its own."""
        return self.start.sites.name if isinstance(self.start.sites, State) else ""

    def gradient(self) -> Array:
        """Return d log evidence/d theta: of the prior's hyperparameters, then the likelihood's.

        It takes one visit to the rows, or two for a method whose slope has a source.
        """
        blocks, shared = self.problem.blocks, _Contraction(self, None)
        if not self.method.is_stationary:
            pulled, lost = blocks.reduce(_pull, shared, self._state)
            if lost:
                return self._again().gradient()
            shared = _Contraction(self, pulled if pulled is None else self.posterior.under(pulled))
        found, own, lost = blocks.reduce(_contract, shared, self._state)
        if lost:
            return self._again().gradient()
        prior = self.posterior.gradient(found)
        return np.concatenate([prior, own]) if len(own) else prior

    def _again(self) -> Fit:
        """Return the same fit after blocks have lost their sites."""
        return self.method.fit(self.problem, self.start)

    def grad_K(self) -> Array:
        """Return M with d log evidence = Σ_ij M_ij dK_ij, of a prior that holds K as a matrix."""
        slope = _slope(self, self.problem.rows, None)[2]
        s = slope.source
        other = None if s is None else self.posterior.under(Sites(s, s))
        return self.posterior.slope_matrix(slope, other)

    @property
    def targets(self) -> Rows:
        """Targets and weights of all rows, wherever they are."""
        if isinstance(self.problem.rows, Rows):
            return self.problem.rows
        parts = list(self.problem.rows.collect(_target, None, self._state))
        return Rows(*map(_joined, zip(*parts, strict=True)))

    @cached_property
    def cavities(self) -> Any:
        """Each example's latent value as predicted by all the others: `Marginals`.

        Of several classes at once, `ClassMarginals`: all of an example's sites are left out.

        If an example counts several times, one copy is left out; if it counts less than once, all
        of it is.
        """
        parts = list(self.problem.blocks.collect(_leave_one_out, self.posterior, self._state))
        if any(part is None for part in parts):
            return self._again().cavities
        return type(parts[0])(*map(_joined, zip(*parts, strict=True)))

    @property
    def unseen(self) -> Any:
        """The same, with what is added to the latent values: offsets, or a trend."""
        c = self.cavities
        return c._replace(mean=c.mean + self.problem.likelihood.shift)

    def loo_log_prob(self, y: Array | None = None) -> Array:
        """Leave-one-out log probability of each example's label (or of another one)."""
        own = self.targets.y if y is None else y
        return self.problem.likelihood.tilted(own, self.cavities).log_z


class _Contraction(NamedTuple):
    fit: Fit
    other: Any


def _slope(fit: Fit, rows: Rows, sites: Any) -> tuple[Any, Any, Slope]:
    """Return a block's features, its sites, and its part of the slope."""
    posterior, method = fit.posterior, fit.method
    likelihood, rows = method.prepare(fit.problem.likelihood, rows)
    seen = posterior.prior.features(rows)
    if method.plain_slope:
        return seen, sites, Slope()
    local = method.view(posterior, seen, sites)
    return seen, local.sites, method.slope(likelihood, rows, local, posterior.prior)


def _is_lost(prior: Any, sites: Any) -> bool:
    """Whether a block has lost its sites; of a prior that is a matrix, blocks keep none."""
    return sites is None and not prior.dense


def _pull(rows: Rows, sites: Any, now: _Contraction) -> tuple[Any, Any]:
    seen, own, slope = _slope(now.fit, rows, sites)
    prior = now.fit.posterior.prior
    lost = int(_is_lost(prior, sites))
    if slope.source is None:
        return sites, (None, lost)
    return sites, (prior.sums(seen, Sites(own.tau, slope.source)), lost)


def _contract(rows: Rows, sites: Any, now: _Contraction) -> tuple[Any, Any]:
    posterior = now.fit.posterior
    seen, own, slope = _slope(now.fit, rows, sites)
    share = posterior.contract(seen, own, slope, now.other)
    slopes = _likelihood_slopes(rows, seen, own, slope, now)
    return sites, (share, slopes, int(_is_lost(posterior.prior, sites)))


def _likelihood_slopes(
    rows: Rows, seen: Any, sites: Any, slope: Slope, now: _Contraction
) -> np.ndarray[Any, Any]:
    """Return a block's part of d log Z/d theta of the likelihood's parameters."""
    posterior, method = now.fit.posterior, now.fit.method
    likelihood, rows = method.prepare(now.fit.problem.likelihood, rows)
    if not likelihood.names:
        return np.zeros(0)
    moved = None
    if now.other is not None:
        moved = now.other.local(seen, Sites(sites.tau, slope.source)).q.mean
    local = method.view(posterior, seen, sites)
    by_row = likelihood.in_theta(method.depends(rows, local, moved))
    return np.array([float(namespace(d).sum(d)) for d in by_row])


def _target(rows: Rows, sites: Any, shared: None) -> tuple[Array, Array]:
    return rows.y, rows.weight


def _joined(parts: tuple[Array, ...]) -> Array:
    return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts)


def _leave_one_out(rows: Rows, sites: Any, posterior: Any) -> Any:
    if _is_lost(posterior.prior, sites):
        return None
    seen = posterior.prior.features(rows)
    return posterior.left_out(seen, sites, clip(rows.weight, low=1.0))
