"""The stand-in of low rank: what it computes is right, and what it leads to is the same."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from cavity.evidence import Evidence
from cavity.inference import EP, Laplace, Variational
from cavity.kernels import rule
from cavity.likelihoods import Logit, Probit, Step
from cavity.priors import DensePrior, LowRankPrior, stand_in
from cavity.priors import inducing as low_rank
from cavity.sites import Sites

N, M = 12, 4


def low_rank_prior(seed=0):
    rng = np.random.default_rng(seed)
    P = rng.normal(size=(N, M))
    return LowRankPrior(P, np.sum(P * P, axis=1) + rng.uniform(0.1, 1.0, N))


def whole(prior):
    return prior.P @ prior.P.T + np.diag(prior.left)


def sites(seed=1):
    rng = np.random.default_rng(seed)
    return Sites(rng.uniform(0.2, 2.0, N), rng.normal(size=N))


def table(n, seed=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=n) > 0.0, 1.0, -1.0)


def evidence(method, likelihood, kernel, n=450):
    X, y = table(n)
    return Evidence.of(rule(kernel), X, [y], likelihood, method, np.ones(n))


@pytest.fixture
def without_stand_in(monkeypatch):
    """Return a way to switch the stand-in off."""
    return lambda: monkeypatch.setattr(low_rank, "_FEWEST", 10**9)


def test_posterior():
    """Marginals, weights and determinant are those of the same matrix held whole."""
    prior, s = low_rank_prior(), sites()
    got, want = prior.condition(s), DensePrior(whole(prior)).condition(s)
    # A dozen examples with B's condition number near a hundred.
    close = {"rtol": 1e-11, "atol": 1e-12}
    for a, b in zip(got.local().q, want.local().q, strict=True):
        np.testing.assert_allclose(a, b, **close)
    np.testing.assert_allclose(got.local().rest, want.local().rest, **close)
    np.testing.assert_allclose(got.alpha, want.alpha, **close)
    np.testing.assert_allclose(got.half_log_det, want.half_log_det, **close)


def test_posterior_under_empty_sites():
    """Variances under sites that say nothing come out of the direct formula."""
    prior, (tau, nu) = low_rank_prior(), sites()
    tau[::3] = 0.0
    got, want = prior.condition(Sites(tau, nu)), DensePrior(whole(prior)).condition(Sites(tau, nu))
    np.testing.assert_allclose(got.local().q.variance, want.local().q.variance, rtol=1e-11)


def test_products():
    """Products with K and with B⁻¹ are those of the whole matrices, for vectors and tables."""
    prior, V = low_rank_prior(), np.random.default_rng(3).normal(size=(N, 2))
    K, s = whole(prior), np.sqrt(sites().tau)
    factor, B = prior.factor(s), np.eye(N) + s[:, None] * K * s
    np.testing.assert_allclose(prior.product(V[:, 0]), K @ V[:, 0], rtol=1e-12)
    np.testing.assert_allclose(prior.columns(np.array([1, 5])), K[:, [1, 5]], rtol=1e-12)
    np.testing.assert_allclose(factor.solve(V), np.linalg.solve(B, V), rtol=1e-11)
    np.testing.assert_allclose(
        factor.quadratic(V), np.diag(V.T @ np.linalg.solve(B, V)), rtol=1e-11
    )


def test_a_smooth_kernel_is_nearly_kept():
    """What a smooth kernel's stand-in leaves over is next to nothing, and the diagonal is exact."""
    X, _ = table(600)
    prior = DensePrior(rule(4.0 * RBF(3.0)).matrix(X))
    got = stand_in(prior)
    assert got.P.shape[1] < 150
    np.testing.assert_allclose(np.sum(got.P**2, axis=1) + got.left, prior.diag, rtol=1e-12)
    # The pivots stop at 3e-5 of the largest variance; examples not asked have a little more left.
    assert np.linalg.norm(got.P @ got.P.T - prior.K, 2) < 1e-2 * np.linalg.norm(prior.K, 2)


def test_no_stand_in_where_it_does_not_pay():
    """Small tables have none, nor a prior without variance; a rough one has to be wanted."""
    X, _ = table(500)
    assert stand_in(DensePrior(rule(RBF(1.0)).matrix(X[:100]))) is None
    assert stand_in(DensePrior(np.zeros((500, 500)))) is None
    rough = DensePrior(rule(Matern(0.05, nu=0.5)).matrix(X))
    assert stand_in(rough, rough=False) is None
    assert stand_in(rough) is not None


@pytest.mark.parametrize(
    ("method", "likelihood"),
    [(EP(), Probit()), (EP(), Logit()), (Laplace(), Logit()), (Variational(), Logit())],
    ids=str,
)
@pytest.mark.parametrize("kernel", [9.0 * RBF(2.0), 2.0 * Matern(0.3, nu=0.5)], ids=str)
def test_same_solution(without_stand_in, method, likelihood, kernel):
    """Evidence and gradient are those that the iteration finds without a stand-in."""
    this = evidence(method, likelihood, kernel)
    theta = this.rule.theta
    here = this.at(theta)
    value, gradient = here.value, here.gradient
    without_stand_in()
    tight = replace(this, method=replace(method, tol=1e-9))
    there = tight.at(theta)
    truth, slope = there.value, there.gradient
    # The methods' own promise: eleven digits of a stationary evidence, six of its gradient.
    assert value == pytest.approx(truth, rel=1e-9)
    np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("method", [EP(), Variational(), Laplace()], ids=lambda m: m.name)
def test_a_step_is_cheaper_from_nearby(method):
    """After a step of 5 % in the hyperparameters the last fit saves iterations, not digits."""
    this = evidence(method, Probit(), 9.0 * RBF(2.0))
    theta = this.rule.theta
    (here,) = this.at(theta).fits
    (warm,) = this.at(theta + 0.05, [here.start]).fits
    (cold,) = this.at(theta + 0.05).fits
    assert warm.report.n_iter <= cold.report.n_iter
    assert warm.log_evidence == pytest.approx(cold.log_evidence, rel=1e-9)


def test_sharp_likelihood():
    """Noise-free labels, whose sites know no bound, are solved as well."""
    this = evidence(EP(), Step(), 4.0 * RBF(0.7), n=420)
    (fit,) = this.at(this.rule.theta).fits
    assert fit.report.converged
    assert np.isfinite(fit.log_evidence)
