"""What has to hold for a likelihood before learning curves can be made with it."""

import numpy as np
from numpy.testing import assert_allclose

from cavity.arrays import Array
from cavity.inference import EP, Mixture, Problem
from cavity.likelihoods import Likelihood
from cavity.priors import DensePrior
from cavity.resampling import LAWS, Averages, Pool, SizeSolution
from cavity.resampling.averaged import prior_cavities, solve_averages
from cavity.resampling.theories import cavity_theory
from cavity.sites import Marginals

_TOL = 1e-9
_SAME = 1e-6
# The response of a bound needs fields that differ by a hundredth of a deviation.
_SAME_OF_BOUND = 1e-4
# Nodes of the slow reference, more than enough if the theory's own are too few.
_NODES = 60


def check_curve(likelihood: Likelihood, K: Array, y: Array) -> None:
    """Check the cavity theory of learning curves for a likelihood on a small pool.

    With nothing learned the result is the prior; with everything learned it is EP's, with its
    leave-one-out cavities; the average posterior variance falls with the size; an example's
    effective site gives the same average posterior as summing over occupations and fields.

    Parameters
    ----------
    likelihood : Likelihood
        One with tilted moments.
    K : array of shape (n, n)
        Covariance of the latent values.
    y : array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.likelihoods import Probit
    >>> from cavity.testing import check_curve
    >>> check_curve(Probit(), np.eye(4) + 0.5, np.array([1.0, -1.0, 1.0, 1.0]))
    """
    pool = Pool(DensePrior(K), y, likelihood, np.full(len(y), 1.0 / len(y)))
    # The sites of a mixture are those of its bound, whose average no quadrature tells.
    concave = likelihood.concave
    for law in LAWS if concave else ["subsample"]:
        _check_little(_solve(pool, law, 1e-7), pool)
        found = [_solve(pool, law, share * len(y), tol=1e-3) for share in (0.1, 0.6)]
        variances = [np.mean(solution.pool.G) for solution in found]
        assert np.all(np.diff(variances) < 0.0), f"{law}: more examples do not lower the variance"
        if concave:
            _check_sites(pool, law)
    _check_everything(_solve(pool, "subsample", len(y)), pool)


def _solve(pool: Pool, law: str, size: float, tol: float = _TOL) -> SizeSolution:
    theory = cavity_theory(pool, LAWS[law](size * pool.share))
    found = solve_averages(pool, theory, prior_cavities(pool.prior), tol=tol, max_iter=1000)
    assert found.converged, f"{law} at size {size}: residual {found.residual:.1e}"
    return found


def _check_little(found: SizeSolution, pool: Pool) -> None:
    scale = np.sqrt(pool.prior.diag)
    assert_allclose(found.held_out.G, pool.prior.diag, rtol=_SAME, err_msg="prior variance")
    assert_allclose(found.held_out.R / scale, 0.0, atol=1e-5, err_msg="prior mean")


def _check_everything(found: SizeSolution, pool: Pool) -> None:
    problem = Problem.of(pool.likelihood, pool.prior, pool.y, np.ones_like(pool.y))
    method = EP(tol=_TOL) if pool.likelihood.concave else Mixture(tol=_TOL)
    fit = method.fit(problem)
    v, same = fit.cavities.variance, _SAME if pool.likelihood.concave else _SAME_OF_BOUND
    # The mean of EP's cavities; where the mean responds otherwise than by EP's variance, so here.
    m = fit.posterior.mean - found.held_out.response * fit.posterior.alpha
    assert_allclose(found.held_out.G, v, rtol=same, err_msg="leave-one-out variance")
    assert_allclose(found.held_out.R, m, atol=same * np.sqrt(np.max(v)), err_msg="and mean")
    assert_allclose(found.held_out.V / v, 0.0, atol=same, err_msg="nothing is left to vary")
    assert_allclose(found.pool.R, fit.posterior.mean, atol=same * np.sqrt(np.max(v)))


def _check_sites(pool: Pool, law: str) -> None:
    """Compare G' = E v_s, R' = E μ_s and V' = Var μ_s with what the effective sites make them."""
    prior = pool.prior.diag
    c = Averages(0.6 * prior, 0.3 * np.sqrt(prior) * pool.y, 0.3 * prior)
    occupancy = LAWS[law](np.full(len(prior), 0.7))
    u, gamma, w, _ = cavity_theory(pool, occupancy)(c)
    G = 1.0 / (1.0 / c.G + u)
    R, V = G * (gamma + c.R / c.G), G**2 * (w + c.V / c.G**2)
    truth = _average_posterior(pool, c, occupancy.s, occupancy.probability)
    # Sites of several draws are matched one by one, as in EP, which is not quite their product.
    exact = law == "subsample" or pool.likelihood.quadratic
    rtol = 1e-5 if exact else 0.03
    for name, got, want in zip("GRV", (G, R, V), truth, strict=True):
        assert_allclose(got, want, rtol=rtol, err_msg=f"{law}: {name}")


def _average_posterior(
    pool: Pool, c: Averages, occupations: Array, probability: Array
) -> tuple[Array, Array, Array]:
    """Return the averages with p(y|f)^s taken as one likelihood."""
    x, weight = np.polynomial.hermite_e.hermegauss(_NODES)
    h = c.R + np.sqrt(c.V) * x[:, None]
    p = (weight / weight.sum())[:, None]
    never = 1.0 - probability.sum(axis=0)
    G, first, second = never * c.G, never * c.R, never * (c.R**2 + c.V)
    for s, often in zip(occupations, probability, strict=True):
        _, d1, d2 = pool.likelihood.power(float(s)).tilted(pool.y, Marginals(h, c.G))
        mean = h + c.G * d1
        G = G + often * np.sum(p * (c.G + c.G**2 * d2), axis=0)
        first = first + often * np.sum(p * mean, axis=0)
        second = second + often * np.sum(p * mean**2, axis=0)
    return G, first, second - first**2
