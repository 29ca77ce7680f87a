"""The driver that works with every prior: rounds of parallel site updates over blocks of rows.

One visit to a block computes its marginals, its new sites, what the old ones add to the evidence,
and what the new ones add to the posterior. The step depends on the residual and is never undone,
so the only state of a row is its site.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cavity.arrays import namespace
from cavity.inference.problem import Fit, Problem, WarmStart, report_of
from cavity.likelihoods import Likelihood
from cavity.rows import RowBlocks, State
from cavity.sites import Rows, Sites, change_of_sites, moved

if TYPE_CHECKING:
    from cavity.inference.base import Method

_SMALLEST_STEP, _GROWTH, _SLOW = 0.02, 1.4, 0.7
_PATIENCE = 3
"""Rounds that a sweep may take for each one that Newton's method is allowed."""
_FASTEST = 0.1
"""Sweeps are never assumed to contract faster than this."""


class Round(NamedTuple):
    """What every block needs to know in a round."""

    posterior: Any
    method: Method
    likelihood: Likelihood
    step: float


class Visited(NamedTuple):
    """What a block answers."""

    terms: float
    largest: float
    """The largest change of a site."""
    sums: Any
    lost: int
    """Blocks that began without sites."""


def _visit(rows: Rows, sites: Any, now: Round) -> tuple[Sites, Visited]:
    posterior, method, lost = now.posterior, now.method, sites is None
    likelihood, rows = method.prepare(now.likelihood, rows)
    seen = posterior.prior.features(rows)
    local = posterior.local(seen, sites)
    lam = method.variance(local, rows.weight)
    moments, new = method.respond(likelihood, rows, local.q.mean, local.alpha, lam)
    terms = method.terms(rows, local, lam, moments)
    largest = change_of_sites(new, local.sites, local.q.variance)
    sites = moved(local.sites, new, now.step)
    total = float(namespace(terms).sum(terms))
    return sites, Visited(total, largest, posterior.prior.sums(seen, sites), int(lost))


def _resume(rows: Rows, sites: Any, prior: Any) -> tuple[Any, Any]:
    kept = Sites(0.0 * rows.y, 0.0 * rows.y) if sites is None else sites
    return kept, prior.sums(prior.features(rows), kept)


def sweep(
    method: Method, problem: Problem, start: WarmStart | None = None, most: int | None = None
) -> Fit:
    """Update all sites in parallel until they agree with the posterior that they lead to.

    ``most`` limits the rounds; without it the method's ``max_iter`` does. The step is halved when
    the residual has grown. If a block lost its sites and began a round without them, the residual
    of that round says nothing about the step.
    """
    blocks = problem.blocks
    state = State(blocks)
    posterior = _begin(problem, blocks, start, state.name)
    step, last, n_iter, most = 1.0, float("inf"), 1, most or _PATIENCE * method.max_iter
    now = Round(posterior, method, problem.likelihood, step)
    found = blocks.reduce(_visit, now, state.name)
    while (residual := _ahead(found, last, now)) > method.tol and n_iter < most:
        step = next_step(step, found.largest / last if not found.lost else 0.0)
        last, posterior = found.largest, problem.prior.condition(found.sums)
        now, n_iter = now._replace(posterior=posterior, step=step), n_iter + 1
        found = blocks.reduce(_visit, now, state.name)
    report = report_of(residual <= method.tol, n_iter, residual, "sweeps")
    value = found.terms - (float(posterior.half_log_det) if method.volume else 0.0)
    if problem.prior.dense:
        _, rows = method.prepare(problem.likelihood, problem.rows)
        lam = method.variance(posterior.local(), rows.weight)
        return Fit(problem, method, posterior, value, report, WarmStart(posterior.sites, lam))
    # The blocks hold the sites of the step that was taken last.
    posterior = problem.prior.condition(found.sums)
    return Fit(problem._replace(rows=blocks), method, posterior, value, report, WarmStart(state))


def _ahead(found: Visited, last: float, now: Round) -> float:
    """Return the residual after the step that was just taken.

    Of whole steps it is estimated by how the last two compare, which saves one or two rounds; the
    evidence changes with the square of the residual. A dense posterior is that before the step.
    """
    if found.lost and last < float("inf"):
        return float("inf")
    if now.step < 1.0 or now.posterior.prior.dense or last == float("inf"):
        return found.largest
    return found.largest * min(1.0, max(_FASTEST, found.largest / last))


def next_step(step: float, ratio: float) -> float:
    """Return the next step, given by how much the last one has changed the residual."""
    if ratio > 1.0:
        return max(_SMALLEST_STEP, 0.5 * step)
    # Whole steps that gain little oscillate: 30 rounds instead of 117 on the worst of 36 problems.
    if ratio > _SLOW and step > _SLOW:
        return _SLOW * step
    return min(1.0, _GROWTH * step)


def _begin(problem: Problem, blocks: RowBlocks, start: WarmStart | None, state: str) -> Any:
    """Return the posterior to start from."""
    if start is None:
        return problem.prior.condition()
    if not isinstance(start.sites, State):
        return problem.prior.condition(start.sites)
    resumed = blocks.reduce(_resume, problem.prior, state, start.sites.name)
    return problem.prior.condition(resumed)
