"""Newton's method for the posterior means, shared by every method that iterates.

Each method says how a row *responds*: given its posterior mean μ_i and weight α_i, which moments
(log z, d1, d2) and which site belong to it. The means are found when α_i = w_i d1_i for all i.
Matching or expanding the sites and reading off the posterior's α is exactly one Newton step on
these equations: their Jacobian is diag(1 + d2 λ)(I + T K), T the matched precisions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cavity.arrays import Array, clip, namespace
from cavity.likelihoods import Likelihood
from cavity.priors import Coupling, RowsPosterior
from cavity.sites import Rows, Sites
from cavity.solvers import Solution, conjugate_gradients, solve

if TYPE_CHECKING:
    from cavity.inference.base import Method

_ROUNDING = 16.0
# If rounding alone can violate an equation by more than this, it is not solved.
FORGIVEN = 1e-5
# Nor if what it does to the evidence is more than half the square of this.
_NATS = 0.01
# Newton's method tolerates inexact steps, especially far away; backtracking catches bad ones.
_CG_RTOL, _CG_ROUGH = 1e-4, 1e-2
# Beyond this many products a factorisation is cheaper.
_CG_PATIENCE = 20
_CG_LIMIT = 1000
# After this many steps without any progress, only rounding remains.
_PATIENCE = 5


class Equations(NamedTuple):
    """One method's equations for all rows under one prior."""

    method: Method
    likelihood: Likelihood
    rows: Rows
    coupling: Coupling


class Means:
    """A point of the Newton iteration: α, and what follows from it."""

    def __init__(self, equations: Equations, lam: Array, alpha: Array, steps: Steps) -> None:
        method, likelihood, rows, coupling = equations
        self.alpha = alpha
        self.mean = coupling.product(alpha)
        self.moments, self.sites = method.respond(likelihood, rows, self.mean, alpha, lam)
        self._steps = steps
        error = namespace(alpha).abs(alpha - rows.weight * self.moments.d1)
        self.residual = self._residual(equations, error, lam)
        self.merit = self._potential(rows) if method.concave else -_norm(coupling, error)

    def _residual(self, equations: Equations, error: Array, lam: Array) -> float:
        """Errors of α count against the posterior's own spread, which K and 1/τ both bound."""
        xp = namespace(error)
        K_ii = equations.coupling.diag
        # Where α itself is kept it also counts against the cavity's, far wider at a sharp site.
        d2 = equations.rows.weight * self.moments.d2
        precision = self.sites.tau if equations.method.volume else -d2
        scale = xp.sqrt(K_ii / (1.0 + precision * K_ii))
        lost = rounding(self.alpha, xp.abs(d2) * size_of_product(K_ii, self.alpha))
        forgiven = clip(lost * scale, high=FORGIVEN)
        if not equations.method.volume:
            # An error e of a kept α moves the evidence by up to ½ λ (1 + τ λ) e².
            most = lam * (1.0 + self.sites.tau * lam)
            forgiven = xp.minimum(forgiven, _NATS * scale / xp.sqrt(most))
        return not_rounding(float(xp.max(error * scale - forgiven)))

    def _potential(self, rows: Rows) -> float:
        xp = namespace(self.alpha)
        fit = xp.sum(rows.weight * self.moments.log_z)
        return float(fit - 0.5 * xp.sum(self.alpha * self.mean))

    def target(self) -> Array:
        """Where Newton's method would go."""
        return self._steps(self)


def _norm(coupling: Coupling, error: Array) -> float:
    xp = namespace(error)
    return float(xp.sqrt(xp.sum(coupling.diag * error**2)))


def not_rounding(residual: float) -> float:
    """Return what is left of a residual whose rounding is taken off; what is no number stays."""
    return 0.0 if residual < 0.0 else residual


def size_of_product(K_ii: Array, alpha: Array) -> Array:
    """Return how much is added up, at most, in the product K α: so much of it is rounded."""
    sd = namespace(alpha).sqrt(K_ii)
    return sd * namespace(alpha).sum(sd * namespace(alpha).abs(alpha))


def rounding(alpha: Array, moved: Array) -> Array:
    """How far α and w d1(Kα) may differ by rounding, if the whole product moves that by so much."""
    xp = namespace(alpha)
    return _ROUNDING * float(xp.finfo(alpha.dtype).eps) * (xp.abs(alpha) + moved)


class Steps:
    """Newton steps by conjugate gradients, preconditioned with a posterior factored before.

    A step solves (I + T K) δ = ν − α − τ μ in its symmetric form, with B = I + S K S. Products
    with K cost little compared with a factorisation, and with a factor from nearby a few of them
    are enough (whole fits at n = 800: the cost of 139 instead of 215 factorisations). If they are
    not enough, B is factored, unless that is forbidden.

    Parameters
    ----------
    coupling : Coupling
    may_factor : bool, default True
        Whether to factor B when conjugate gradients are slow.
    preconditioner : RowsPosterior, optional
    """

    def __init__(
        self,
        coupling: Coupling,
        *,
        may_factor: bool = True,
        preconditioner: RowsPosterior | None = None,
    ) -> None:
        self.coupling = coupling
        self.may_factor = may_factor
        self.preconditioner = preconditioner

    def begin(self, sites: Sites) -> Array:
        """Return α of the posterior that given sites lead to under the present prior, roughly."""
        return self._solve(sites, 0.0, sites.nu, _CG_ROUGH)

    def __call__(self, means: Means) -> Array:
        """Return the α that a Newton step leads to."""
        tau, nu = means.sites
        rtol = min(_CG_ROUGH, max(_CG_RTOL, 0.1 * means.residual))
        return self._solve(means.sites, means.alpha, nu - means.alpha - tau * means.mean, rtol)

    def _solve(self, sites: Sites, alpha: Array | float, missing: Array, rtol: float) -> Array:
        """Return the posterior's α, given an α so far and what its equation is still missing.

        With δ = b − S z and B z = S K b, the residual of (I + T K) δ = b is S times the residual of
        z's own equation; conjugate gradients therefore have to make that product small.
        """
        if self.may_factor and self.coupling.factors_cheaply:
            return self.coupling.condition(sites).alpha
        xp = namespace(missing)
        s = xp.sqrt(sites.tau)
        product = self.coupling.product
        z, converged = conjugate_gradients(
            lambda v: v + s * product(s * v),
            s * product(missing),
            weight=s,
            atol=rtol * float(xp.sqrt(xp.sum(missing**2))),
            max_iter=_CG_PATIENCE if self.may_factor else _CG_LIMIT,
            precondition=None if self.preconditioner is None else self.preconditioner.solve,
        )
        if converged or not self.may_factor:
            return alpha + missing - s * z
        # Freed before a new one is made.
        self.preconditioner = None
        self.preconditioner = self.coupling.condition(sites)
        return self.preconditioner.alpha


def solve_means(
    equations: Equations, lam: Array, alpha: Array, steps: Steps, *, tol: float, max_iter: int
) -> Solution[Means]:
    """Solve α = w d1 by Newton's method with backtracking on the residual."""
    return solve(
        lambda a: Means(equations, lam, a, steps),
        alpha,
        tol=tol,
        max_iter=max_iter,
        patience=_PATIENCE,
    )
