"""Newton's method for the posterior means, shared by every method that iterates.

Each method says how an example *responds*: given its posterior mean μ_i and weight α_i, which
moments (log z, d1, d2) and which site belong to it. The means are found when α_i = w_i d1_i for
all i. Matching or expanding the sites and reading off the posterior's α is exactly one Newton step
on these equations: their Jacobian is diag(1 + d2 λ)(I + T K), T the matched precisions.
"""

from collections.abc import Callable

from cavity.arrays import Array, namespace
from cavity.fixed_point import Solution, solve
from cavity.inference.base import Problem
from cavity.krylov import conjugate_gradients
from cavity.priors import DensePosterior, DensePrior
from cavity.sites import Marginals, Moments, Sites, expand, match

__all__ = [
    "MeansState",
    "Response",
    "Steps",
    "cavity_moments",
    "cavity_response",
    "expected_response",
    "solve_means",
]

Response = Callable[[Array, Array], tuple[Moments, Sites]]
"""From means μ and weights α to moments and sites."""

_ROUNDING = 16.0
# Newton's method forgives an inexact step; backtracking guards what is left.
_CG_RTOL = 1e-4
# Beyond so many products a factorisation is the cheaper step.
_CG_PATIENCE = 30
_CG_LIMIT = 1000


def cavity_response(problem: Problem, variance: Array) -> Response:
    """Respond through a cavity of given variance λ: m_i = μ_i − λ_i α_i/w_i (TAP)."""
    likelihood, _, y, copies = problem

    def respond(mu: Array, alpha: Array) -> tuple[Moments, Sites]:
        c = Marginals(mu - variance * alpha / copies, variance)
        moments = likelihood.tilted(y, c)
        return moments, match(c, moments, copies)

    return respond


def cavity_moments(problem: Problem, posterior: DensePosterior, variance: Array) -> Moments:
    """Return the moments of the cavities that respond to a posterior's own means."""
    return cavity_response(problem, variance)(posterior.mean, posterior.alpha)[0]


def expected_response(problem: Problem, variance: Array) -> Response:
    """Respond through averages over the marginal N(μ_i, v_i) itself."""
    likelihood, _, y, copies = problem

    def respond(mu: Array, alpha: Array) -> tuple[Moments, Sites]:
        moments = likelihood.expected(y, Marginals(mu, variance))
        return moments, expand(mu, moments.d1, moments.d2, copies)

    return respond


class MeansState:
    """A point of the Newton iteration: α, and what follows from it."""

    def __init__(self, problem: Problem, alpha: Array, respond: Response, steps: "Steps") -> None:
        prior, copies = problem.prior, problem.copies
        xp = namespace(alpha)
        self.alpha = alpha
        self.mean = prior.product(alpha)
        self.moments, self.sites = respond(self.mean, alpha)
        self._steps = steps
        error = xp.abs(alpha - copies * self.moments.d1)
        # Errors of α count against the posterior's own spread, which K and 1/τ both bound.
        scale = xp.sqrt(prior.diag / (1.0 + self.sites.tau * prior.diag))
        scaled = (error - _rounding(prior, alpha, copies * self.moments.d2)) * scale
        self.residual = max(0.0, float(xp.max(scaled)))
        self.merit = -float(xp.sqrt(xp.sum((error * scale) ** 2)))

    def target(self) -> Array:
        """Where Newton's method would go."""
        return self._steps(self)


def _rounding(prior: DensePrior, alpha: Array, slope: Array) -> Array:
    """How far α and w d1(Kα) may differ by the rounding of the product K α alone."""
    xp = namespace(alpha)
    sd = xp.sqrt(prior.diag)
    unit = _ROUNDING * float(xp.finfo(alpha.dtype).eps)
    return unit * (xp.abs(alpha) + xp.abs(slope) * sd * xp.sum(sd * xp.abs(alpha)))


class Steps:
    """Newton steps by conjugate gradients, helped by the last posterior that was factored.

    A step solves (I + T K) δ = ν − α − τ μ in its symmetric form, with B = I + S K S. Products
    with K cost next to nothing beside a factorisation, and the factor of a posterior nearby makes
    a few of them enough. Where they are not, B is factored, unless that is forbidden.

    Parameters
    ----------
    prior : DensePrior
    may_factor : bool
        Whether to factor B when conjugate gradients are slow.
    """

    def __init__(self, prior: DensePrior, *, may_factor: bool = True) -> None:
        self.prior = prior
        self.may_factor = may_factor
        self.nearby: DensePosterior | None = None

    def __call__(self, state: MeansState) -> Array:
        """Return the α that a Newton step leads to."""
        tau, nu = state.sites
        s = namespace(tau).sqrt(tau)
        product = self.prior.product
        missing = nu - state.alpha - tau * state.mean
        z, converged = conjugate_gradients(
            lambda v: v + s * product(s * v),
            s * product(missing),
            rtol=_CG_RTOL,
            max_iter=_CG_PATIENCE if self.may_factor else _CG_LIMIT,
            precondition=None if self.nearby is None else self.nearby.solve,
        )
        if converged or not self.may_factor:
            return state.alpha + missing - s * z
        self.nearby = self.prior.condition(state.sites)
        return self.nearby.alpha


def solve_means(
    problem: Problem,
    respond: Response,
    alpha: Array,
    steps: Steps,
    *,
    tol: float,
    max_iter: int,
) -> Solution[MeansState]:
    """Solve α = w d1 by Newton's method with backtracking on the residual."""
    return solve(
        lambda a: MeansState(problem, a, respond, steps), alpha, tol=tol, max_iter=max_iter
    )
