"""The driver for bounds that may have several maxima: every step raises the bound.

The unknowns are the sites. A plain step replaces all of them by those that the posterior's own
marginals ask for, as expectation maximisation does, which cannot lower the bound of a mixture.
Extrapolated from the last few, the steps are kept if the bound has risen.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from cavity.arrays import Array, NotPositiveDefiniteError, clip, namespace
from cavity.inference.newton import Equations
from cavity.inference.problem import Fit, Problem, WarmStart, report_of
from cavity.inference.self_consistent import dense_fit, equations_of, self_consistent
from cavity.sites import Sites, change_of_sites
from cavity.solvers import solve

if TYPE_CHECKING:
    from cavity.inference.base import Method

_PATIENCE = 10
"""Steps for each one that Newton's method is allowed."""
_MEMORY = 10


class _SitePoint:
    """Sites, the posterior that belongs to them, its bound, and the sites that it asks for.

    Coordinates are τ K_ii and ν √K_ii: between two points on which a site has the same mean ν/τ,
    it has that mean, too.
    """

    def __init__(self, equations: Equations, x: Array) -> None:
        method, likelihood, rows, _ = equations
        prior: Any = equations.coupling
        self.merit, self.residual, self._next = -float("inf"), float("inf"), x
        try:
            self.posterior = prior.condition(_sites(x, prior.diag))
            self.local = self.posterior.local()
        except NotPositiveDefiniteError:
            return
        q, self.lam = self.local.q, method.variance(self.local, rows.weight)
        moments, new = method.respond(likelihood, rows, q.mean, self.local.alpha, self.lam)
        terms = method.terms(rows, self.local, self.lam, moments)
        # μᵀK⁻¹μ below zero: what is left of the bound is rounding, and may look enormous.
        if float(namespace(terms).sum(self.local.alpha * q.mean)) >= 0.0:
            self.merit = float(namespace(terms).sum(terms) - self.posterior.half_log_det)
        self.residual = change_of_sites(new, self.posterior.sites, q.variance)
        self._next = _coordinates(new, prior.diag)

    def target(self) -> Array:
        """Where a plain step leads."""
        return self._next


def _coordinates(sites: Sites, diag: Array) -> Array:
    xp = namespace(diag)
    return xp.concat([sites.tau * diag, sites.nu * xp.sqrt(diag)])


def _sites(x: Array, diag: Array) -> Sites:
    xp = namespace(x)
    n = diag.shape[0]
    return Sites(clip(x[:n], low=0.0) / diag, x[n:] / xp.sqrt(diag))


def ascend(method: Method, problem: Problem, start: WarmStart | None = None) -> Fit:
    """Raise the bound until the sites are those that the posterior asks for."""
    equations = equations_of(method, problem)
    diag = problem.prior.diag
    zero = namespace(diag).zeros_like(diag)
    first = Sites(zero, zero) if start is None else start.sites
    found = solve(
        partial(_SitePoint, equations),
        _coordinates(first, diag),
        tol=method.tol,
        max_iter=_PATIENCE * method.max_iter,
        memory=_MEMORY,
    )
    point = found.state
    if not found.converged:
        # Raises the error that stopped it, if it was a matrix that could not be factored.
        problem.prior.condition(_sites(point.target(), diag)).local()
    report = report_of(found.converged, found.n_iter, found.residual, "steps")
    end = WarmStart(point.posterior.sites, point.lam)
    return dense_fit(equations, problem, point.posterior, point.local, point.lam, report, end)


def solve_or_ascend(method: Method, problem: Problem, start: WarmStart | None = None) -> Fit:
    """Find variances that the posterior gives back; ascend where that meets a singular matrix.

    The first sites for rates e^f under a wide prior are that large.
    """
    try:
        return self_consistent(method, problem, start)
    except NotPositiveDefiniteError:
        return ascend(method, problem, start)
