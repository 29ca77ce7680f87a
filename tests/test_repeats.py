"""Examples drawn several times, and how the pool responds to effective sites."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessClassifier, learning_curve, simulate_learning_curve
from cavity.inference import EP, Problem
from cavity.likelihoods import Logit, Probit
from cavity.priors import DensePrior
from cavity.resampling import LAWS, Averages, BinaryScores, EffectiveSites, Pool
from cavity.resampling.averaged import AveragedPosterior, prior_cavities, solve_averages
from cavity.resampling.pool import Examples
from cavity.resampling.repeats import RepeatedSites
from cavity.resampling.theories import cavity_theory, nodes_enough
from cavity.sites import Marginals, Sites


def _pool(n=40, amplitude=5.0, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    K = amplitude * np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    return Pool(DensePrior(K), y, Probit(), np.full(n, 1.0 / n))


@pytest.mark.parametrize("variance", [1.0, 30.0, 1e4])
@pytest.mark.parametrize("likelihood", [Probit(), Logit()])
def test_repeated_sites_are_those_of_inference(likelihood, variance):
    """EP of one latent value with s equal examples has the same slope and variance."""
    y = np.ones(1)
    repeats = RepeatedSites(likelihood, y, np.arange(1.0, 7.0), tol=1e-10)
    cavity = Marginals(np.zeros(1), np.array([variance]))
    prior = DensePrior(np.array([[variance]]))
    for s, (slope, curvature) in enumerate(repeats(cavity), start=1):
        fit = EP(tol=1e-10).fit(Problem.of(likelihood, prior, y, np.array([float(s)])))
        # EP's own tolerance, through a contraction that is slow for wide priors.
        assert_allclose(slope, fit.posterior.alpha, rtol=1e-6)
        assert_allclose(
            variance * (1.0 + variance * curvature), fit.posterior.local().q.variance, rtol=1e-6
        )


def test_repeats_go_on_from_the_last_call():
    """A second call gives the same answer, whatever was asked before."""
    y = np.ones(3)
    asked = Marginals(np.array([-1.0, 0.0, 2.0]), np.full(3, 9.0))
    before = Marginals(np.array([3.0, -2.0, 0.5]), np.full(3, 4.0))
    fresh, used = (RepeatedSites(Probit(), y, np.arange(1.0, 5.0), tol=1e-10) for _ in "12")
    list(used(before))
    for a, b in zip(fresh(asked), used(asked), strict=True):
        assert_allclose(a, b, rtol=1e-7)


def test_excess_response_moves_the_cavity():
    """The slope is that of a cavity whose mean has moved by the excess response times the slope."""
    y, G, excess = np.ones(3), np.full(3, 9.0), np.array([0.5, 1.0, 2.0])
    h, s = np.array([-2.0, 0.0, 1.0]), np.arange(1.0, 4.0)
    found = RepeatedSites(Probit(), y, s, tol=1e-11)(Marginals(h, G), excess)
    for k, (slope, curvature) in enumerate(found):
        moved = Marginals(h + excess * slope, G)
        plain = list(RepeatedSites(Probit(), y, s, tol=1e-11)(moved))
        assert_allclose(slope, plain[k][0], rtol=1e-8)
        assert_allclose(curvature, plain[k][1], rtol=1e-8)


@pytest.mark.parametrize("likelihood", [Probit(), Probit(0.01), Logit()])
@pytest.mark.parametrize("excess", [None, 0.5])
def test_wrong_signs_of_repeats(likelihood, excess):
    """The sign is wrong below the field at which the posterior mean is zero, by bisection."""
    rng = np.random.default_rng(0)
    G, y = np.array([0.05, 1.0, 4.0, 60.0]), np.array([1.0, -1.0, 1.0, -1.0])
    R, V, s = np.sqrt(G) * rng.normal(size=4), 0.5 * G, np.arange(1.0, 4.0)
    c = Averages(G, R, V, None if excess is None else (1.0 + excess) * G)
    got = list(BinaryScores([Examples(y, likelihood)]).wrong([c], s))[1:]
    low, high = np.tile(-200.0, (3, 4)), np.tile(200.0, (3, 4))
    for _ in range(60):
        # One field for each number of draws.
        h = 0.5 * (low + high)
        each = [RepeatedSites(likelihood, y, s[k : k + 1], tol=1e-12) for k in range(3)]
        found = [f(Marginals(y * x, G), c.excess_response) for f, x in zip(each, h, strict=True)]
        mean = h + c.response * y * np.array([next(slopes)[0] for slopes in found])
        low, high = np.where(mean > 0.0, low, h), np.where(mean > 0.0, h, high)
    want = ndtr((low - y * R) / np.sqrt(V))
    # Draws that are solved to 1e-12, under a slope that may be as small as a hundredth.
    assert_allclose(got, want, atol=1e-7)


@pytest.mark.parametrize("amplitude", [0.05, 1.0, 20.0])
def test_few_nodes_are_enough(amplitude):
    """Sites from as few nodes as the fields ask for are those of forty nodes."""
    rng = np.random.default_rng(1)
    G = amplitude * np.exp(rng.normal(size=200))
    V = (G + 1.0) * np.exp(rng.uniform(-7.0, -1.6, size=200))
    c = Averages(G, np.sqrt(G + V) * rng.normal(size=200), V)
    examples = Examples(np.where(rng.random(200) < 0.5, 1.0, -1.0), Probit())
    nodes, law = nodes_enough(Probit(), c), LAWS["bootstrap"](np.full(200, 0.8))
    assert set(nodes) >= {4, 5, 6, 8}
    exact = cavity_theory(examples, law, 1e-10, 40)(c)
    for count in set(nodes):
        few, same = cavity_theory(examples, law, 1e-10, int(count))(c), nodes == count
        for a, b, unit in zip(few, exact, (1.0 / G, G**-0.5, 1.0 / G, 1.0 / G), strict=True):
            # A thousandth of the tolerance of curves.
            assert np.max(np.abs(a - b)[same] / unit[same]) < 1e-6


def test_other_sources_give_a_product_with_the_covariance():
    """Under other sources the means are Σ ν, for sites of any strength."""
    prior = _pool().prior
    rng = np.random.default_rng(0)
    tau, nu = rng.exponential(size=40) * np.logspace(-7, 3, 40), rng.standard_normal(40)
    posterior = prior.condition(Sites(tau, np.zeros(40)))
    assert_allclose(posterior.under(Sites(tau, nu)).mean, posterior.covariance() @ nu, atol=1e-9)


def test_first_order_of_other_sites():
    """The error of the cavities' variances and means falls with the square of the step."""
    pool = _pool()
    rng = np.random.default_rng(1)
    u, gamma, w, du, dgamma = rng.exponential(size=(5, 40))
    posterior = AveragedPosterior(pool.prior, EffectiveSites(u, gamma, w))
    errors = []
    for step in (1e-2, 1e-3):
        sites = EffectiveSites(u + step * du, gamma + step * dgamma, w)
        found, truth = posterior.first_order(sites), AveragedPosterior(pool.prior, sites).held_out
        errors.append([np.max(np.abs(found.G - truth.G)), np.max(np.abs(found.R - truth.R))])
    assert np.all(np.array(errors[1]) < 0.02 * np.array(errors[0]))


def test_without_repeats_response_is_variance():
    """Where no example is drawn twice the two precisions are one, and no second one is solved."""
    pool = _pool()
    for law, is_one in (("subsample", True), ("bootstrap", False)):
        theory = cavity_theory(pool, LAWS[law](np.full(40, 0.5)))
        found = solve_averages(pool, theory, prior_cavities(pool.prior), tol=1e-7, max_iter=200)
        assert found.converged
        assert (found.held_out.chi is None) is is_one
    # Repeats sharpen the posterior more than they hold its mean.
    assert np.all(found.held_out.chi > found.held_out.G)


def test_spread_over_bootstraps_under_a_wide_prior():
    """Predictions vary from bootstrap to bootstrap as they do over refits.

    Under a wide prior the response to repeats is not the posterior variance: without the
    difference the spread comes out a quarter too low.
    """
    rng = np.random.default_rng(2)
    X = rng.standard_normal((80, 6))
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] > 0.0, 1.0, -1.0)
    clf = GaussianProcessClassifier(1e4 * RBF(3.0), optimizer=None).fit(X, y)
    about = {"train_sizes": [160], "resampling": "bootstrap"}
    theory = learning_curve(clf, X, y, **about)
    refits = simulate_learning_curve(clf, X, y, n_repeats=300, random_state=0, **about)
    seen = np.isfinite(refits.point_variance[0])
    ratio = np.mean(theory.point_variance[0][seen]) / np.mean(refits.point_variance[0][seen])
    # Some 40 held-out predictions of each example: 3 % by chance, and the theory's own error.
    assert abs(ratio - 1.0) < 0.1
