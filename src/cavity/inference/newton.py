"""Newton's method for the posterior means, shared by every method that iterates.

Each method says how an example *responds*: given its posterior mean μ_i and weight α_i, which
moments (log z, d1, d2) and which site belong to it. The means are found when α_i = w_i d1_i for
all i. Matching or expanding the sites and reading off the posterior's α is exactly one Newton step
on these equations: their Jacobian is diag(1 + d2 λ)(I + T K), T the matched precisions.
"""

from collections.abc import Callable
from typing import NamedTuple

from cavity.arrays import Array, clip, namespace
from cavity.inference.base import Problem, Start, site_of
from cavity.priors import DensePosterior, DensePrior, Factor, LowRankFactor, LowRankPrior
from cavity.sites import Marginals, Moments, Sites, expand
from cavity.solvers.conjugate_gradients import conjugate_gradients
from cavity.solvers.fixed_point import Solution, solve

__all__ = [
    "MeansState",
    "Response",
    "Steps",
    "cavity_moments",
    "cavity_response",
    "expected_response",
    "solve_means",
]


class Response(NamedTuple):
    """How the examples respond to their means.

    ``respond`` maps means μ and weights α to moments and sites. Where the means maximise the
    ``concave`` function Σ w log z − ½ α·μ, its value is the measure of progress; elsewhere (the
    cavity equations are a saddle point) the norm of their residual is.
    """

    respond: Callable[[Array, Array], tuple[Moments, Sites]]
    concave: bool


_ROUNDING = 16.0
# An equation that rounding alone can miss by more than this is not solved.
_FORGIVEN = 1e-5
# Newton's method forgives an inexact step, the more so far away; backtracking guards what is left.
_CG_RTOL, _CG_ROUGH = 1e-4, 1e-2
# Beyond so many products a factorisation is the cheaper step.
_CG_PATIENCE = 20
_CG_LIMIT = 1000
# Steps without any progress after which only rounding is left.
_PATIENCE = 5


def cavity_response(problem: Problem, variance: Array) -> Response:
    """Respond through a cavity of given variance λ: m_i = μ_i − λ_i α_i/w_i (TAP)."""
    likelihood, _, y, copies = problem

    def respond(mu: Array, alpha: Array) -> tuple[Moments, Sites]:
        c = Marginals(mu - variance * alpha / copies, variance)
        return site_of(likelihood, y, c, copies)

    return Response(respond, concave=False)


def cavity_moments(problem: Problem, posterior: DensePosterior, variance: Array) -> Moments:
    """Return the moments of the cavities that respond to a posterior's own means."""
    respond = cavity_response(problem, variance).respond
    return respond(posterior.mean, posterior.alpha)[0]


def expected_response(problem: Problem, variance: Array) -> Response:
    """Respond through averages over the marginal N(μ_i, v_i) itself."""
    likelihood, _, y, copies = problem

    def respond(mu: Array, alpha: Array) -> tuple[Moments, Sites]:
        moments = likelihood.expected(y, Marginals(mu, variance))
        return moments, expand(mu, moments.d1, moments.d2, copies)

    return Response(respond, concave=True)


class MeansState:
    """A point of the Newton iteration: α, and what follows from it."""

    def __init__(self, problem: Problem, alpha: Array, response: Response, steps: "Steps") -> None:
        self.alpha = alpha
        self.mean = problem.prior.product(alpha)
        self.moments, self.sites = response.respond(self.mean, alpha)
        self._steps = steps
        error = namespace(alpha).abs(alpha - problem.copies * self.moments.d1)
        self.residual = self._residual(problem, error)
        self.merit = self._potential(problem) if response.concave else -_norm(problem, error)

    def _residual(self, problem: Problem, error: Array) -> float:
        """Errors of α count against the posterior's own spread, which K and 1/τ both bound."""
        xp = namespace(error)
        K_ii = problem.prior.diag
        scale = xp.sqrt(K_ii / (1.0 + self.sites.tau * K_ii))
        rounding = _rounding(problem.prior, self.alpha, problem.copies * self.moments.d2)
        forgiven = clip(rounding * scale, high=_FORGIVEN)
        return max(0.0, float(xp.max(error * scale - forgiven)))

    def _potential(self, problem: Problem) -> float:
        xp = namespace(self.alpha)
        fit = xp.sum(problem.copies * self.moments.log_z)
        return float(fit - 0.5 * xp.sum(self.alpha * self.mean))

    def target(self) -> Array:
        """Where Newton's method would go."""
        return self._steps(self)


def _norm(problem: Problem, error: Array) -> float:
    xp = namespace(error)
    return float(xp.sqrt(xp.sum(problem.prior.diag * error**2)))


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

    def __init__(self, prior: DensePrior | LowRankPrior, *, may_factor: bool = True) -> None:
        self.prior = prior
        self.may_factor = may_factor
        self.nearby: Factor | LowRankFactor | None = None
        self._holder: DensePosterior | None = None

    def lean_on(self, posterior: DensePosterior) -> None:
        """Let a posterior's factor help with the next steps."""
        self._holder, self.nearby = posterior, posterior.factor

    def begin(self, start: Start) -> Array:
        """Return the α of a fit nearby: what its sites make of the present prior."""
        self.nearby = start.nearby
        if start.sites is None:
            return start.alpha
        return self._solve(start.sites, 0.0, start.sites.nu, _CG_ROUGH)

    def __call__(self, state: MeansState) -> Array:
        """Return the α that a Newton step leads to."""
        tau, nu = state.sites
        rtol = min(_CG_ROUGH, max(_CG_RTOL, 0.1 * state.residual))
        return self._solve(state.sites, state.alpha, nu - state.alpha - tau * state.mean, rtol)

    def _solve(self, sites: Sites, alpha: Array | float, missing: Array, rtol: float) -> Array:
        """Return the posterior's α, of which α + K α so far leaves something missing.

        With δ = b − S z and B z = S K b, what (I + T K) δ = b still lacks is S times the residual
        of z's own equation, which is therefore what conjugate gradients have to make small.
        """
        if self.may_factor and self.prior.factors_cheaply:
            return self.prior.condition(sites).alpha
        xp = namespace(missing)
        s = xp.sqrt(sites.tau)
        product = self.prior.product
        z, converged = conjugate_gradients(
            lambda v: v + s * product(s * v),
            s * product(missing),
            weight=s,
            atol=rtol * float(xp.sqrt(xp.sum(missing**2))),
            max_iter=_CG_PATIENCE if self.may_factor else _CG_LIMIT,
            precondition=None if self.nearby is None else self.nearby.solve,
        )
        if converged or not self.may_factor:
            return alpha + missing - s * z
        return self._factor(sites)

    def _factor(self, sites: Sites) -> Array:
        """Take the step by a new factor, in the place of the one that did not help."""
        if self._holder is not None:
            self._holder.forget_factor()
        self._holder = self.nearby = None
        posterior = self.prior.condition(sites)
        self.nearby = posterior.factor
        return posterior.alpha


def solve_means(
    problem: Problem,
    response: Response,
    alpha: Array,
    steps: Steps,
    *,
    tol: float,
    max_iter: int,
) -> Solution[MeansState]:
    """Solve α = w d1 by Newton's method with backtracking on the residual."""
    return solve(
        lambda a: MeansState(problem, a, response, steps),
        alpha,
        tol=tol,
        max_iter=max_iter,
        patience=_PATIENCE,
    )
