"""The posterior under Gaussian sites against textbook formulas with explicit inverses."""

import mpmath
import numpy as np
import pytest

from cavity.arrays import NotPositiveDefiniteError, to_numpy
from cavity.priors import DensePrior
from cavity.sites import Sites, Slope, cavity

N = 6


def covariance(n=N, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    r2 = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    return 2.0 * np.exp(-0.5 * r2) + 0.1 * np.eye(n)


def sites(n=N, low=0.2, high=5.0, seed=1):
    rng = np.random.default_rng(seed)
    return Sites(np.exp(rng.uniform(np.log(low), np.log(high), n)), rng.normal(size=n))


class Textbook:
    """Σ = (K⁻¹ + T)⁻¹ and what follows, in sixty digits."""

    def __init__(self, K, tau, nu):
        with mpmath.workdps(60):
            self.K = mpmath.matrix(K.tolist())
            self.T = mpmath.diag([mpmath.mpf(float(t)) for t in tau])
            nu = mpmath.matrix([mpmath.mpf(float(x)) for x in nu])
            precision = self.K**-1 + self.T
            covariance = precision**-1
            mean = covariance * nu
            self.covariance = plain(covariance)
            self.variance = np.diag(self.covariance)
            self.mean = plain(mean)[:, 0]
            self.alpha = plain(self.K**-1 * mean)[:, 0]
            self.R = plain(self.K**-1 - self.K**-1 * covariance * self.K**-1)
            eye = mpmath.eye(len(K))
            self.half_log_det = float(mpmath.log(mpmath.det(eye + self.K * self.T)) / 2)
            rest = eye - self.T * covariance
            self.rest = np.array([float(rest[i, i]) for i in range(len(K))])


def plain(M):
    return np.array(M.tolist(), dtype=float).reshape(M.rows, M.cols)


def check(K, s, rtol):
    truth = Textbook(K, *s)
    post = DensePrior(K).condition(s)
    local = post.local()
    np.testing.assert_allclose(local.q.variance, truth.variance, rtol=rtol)
    scale = np.abs(truth.mean).max()
    np.testing.assert_allclose(local.q.mean, truth.mean, rtol=rtol, atol=rtol * scale)
    scale = np.abs(truth.alpha).max()
    np.testing.assert_allclose(local.alpha, truth.alpha, rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(local.rest, truth.rest, rtol=rtol)
    # It is added to log probabilities: absolute digits count.
    np.testing.assert_allclose(post.half_log_det, truth.half_log_det, rtol=rtol, atol=1e-14)


def test_textbook():
    """Means, variances, α, 1 − τΣ and the log determinant are those of explicit inverses."""
    # The condition number of K is about 1e2.
    check(covariance(), sites(), 1e-12)


def test_empty_sites():
    """Where τ = 0 nothing was observed: with all empty the posterior is the prior."""
    tau, nu = sites()
    some = Sites(np.where(np.arange(N) % 2, tau, 0.0), np.where(np.arange(N) % 2, nu, 0.0))
    check(covariance(), some, 1e-12)
    post = DensePrior(covariance()).condition()
    np.testing.assert_allclose(post.local().q.variance, np.diag(covariance()), rtol=1e-15)
    np.testing.assert_array_equal(post.local().q.mean, np.zeros(N))
    np.testing.assert_array_equal(post.half_log_det, 0.0)


def test_slope_without_precision():
    """A site may push (ν ≠ 0) without sharpening (τ = 0)."""
    tau, nu = sites()
    check(covariance(), Sites(np.where(np.arange(N) % 2, tau, 0.0), nu), 1e-12)


@pytest.mark.parametrize("tiny", [1e-12, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3])
def test_weak_sites(tiny):
    """Variances keep nine digits however little the sites say, alone or beside strong ones."""
    K = covariance()
    weak = sites(low=0.5 * tiny / 2.1, high=tiny / 2.1)
    check(K, weak, 1e-9)
    mixed = Sites(np.where(np.arange(N) < 3, weak.tau, 2.0), weak.nu)
    check(K, mixed, 1e-9)


@pytest.mark.parametrize("huge", [1e6, 1e9, 1e12])
def test_strong_sites(huge):
    """Sites a million million times sharper than the prior cost no digits of α or the variance."""
    tau, f = np.full(N, huge), np.random.default_rng(2).normal(size=N)
    check(covariance(), Sites(tau, tau * f), 1e-9)


def test_strong_beside_weak_sites():
    """Site precisions may span twenty-four orders of magnitude in one posterior."""
    tau = np.array([1e12, 1e-12, 1.0, 1e6, 0.0, 1e-6])
    check(covariance(), Sites(tau, tau * np.array([1.0, -2.0, 0.3, 0.4, 0.0, 5.0])), 1e-9)


def test_singular_prior():
    """Repeated rows make K singular; the posterior is that of a prior with a whisper of noise."""
    K = np.ones((3, 3)) * 2.0
    s = sites(3)
    post = DensePrior(K).condition(s)
    truth = 1.0 / (0.5 + s.tau.sum())
    np.testing.assert_allclose(post.local().q.variance, np.full(3, truth), rtol=1e-13)
    np.testing.assert_allclose(post.mean, np.full(3, truth * s.nu.sum()), rtol=1e-13)


def test_zero_prior():
    """A prior that is certain of zero stays so."""
    post = DensePrior(np.zeros((3, 3))).condition(sites(3))
    assert np.all(post.local().q.variance > 0.0)
    assert np.all(post.local().q.variance < 1e-300)
    np.testing.assert_array_equal(post.mean, np.zeros(3))


def test_matrices():
    """Covariance, R = (K + T⁻¹)⁻¹ and M = ½(ααᵀ − R) are those of explicit inverses."""
    K, s = covariance(), sites()
    post, truth = DensePrior(K).condition(s), Textbook(K, *s)
    np.testing.assert_allclose(post.covariance(), truth.covariance, rtol=1e-11, atol=1e-13)
    R = -2.0 * post.slope_matrix(Slope()) + np.outer(truth.alpha, truth.alpha)
    np.testing.assert_allclose(R, truth.R, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(truth.R, np.linalg.inv(K + np.diag(1.0 / s.tau)), rtol=1e-9)
    M = 0.5 * (np.outer(truth.alpha, truth.alpha) - truth.R)
    np.testing.assert_allclose(post.slope_matrix(Slope()), M, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("order", ["marginals first", "prediction first"])
def test_answers_do_not_depend_on_the_order_asked(order):
    """The factor is inverted in place on the way; every answer comes out before and after."""
    K, s = covariance(), sites()
    post = DensePrior(K).condition(s)
    if order == "marginals first":
        _ = post.local()
    truth = Textbook(K, *s)
    np.testing.assert_allclose(post.alpha, truth.alpha, rtol=1e-12)
    np.testing.assert_allclose(post.half_log_det, truth.half_log_det, rtol=1e-12)
    predicted = post.predict(K, np.diag(K))
    np.testing.assert_allclose(predicted.variance, truth.variance, rtol=1e-11)
    np.testing.assert_allclose(post.covariance(), truth.covariance, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(post.local().q.variance, truth.variance, rtol=1e-12)
    assert post.half_log_det == post.half_log_det


def test_predictions():
    """Predictions at new inputs are those of the joint Gaussian."""
    joint, m = covariance(N + 3), 3
    K, K_star, K_new = joint[:N, :N], joint[N:, :N], joint[N:, N:]
    s = sites()
    post = DensePrior(K).condition(s)
    weight = K_star @ np.linalg.inv(K + np.diag(1.0 / s.tau))
    mean, covariance_ = weight @ (s.nu / s.tau), K_new - weight @ K_star.T
    got = post.predict(K_star, np.diag(K_new))
    np.testing.assert_allclose(got.mean, mean, rtol=1e-11)
    np.testing.assert_allclose(got.variance, np.diag(covariance_), rtol=1e-11)
    full = post.predict_covariance(K_star, K_new)
    np.testing.assert_allclose(full, covariance_, rtol=1e-11, atol=1e-13)
    assert full.shape == (m, m)


def test_predicted_variance_never_reaches_zero():
    """Where the data pin a value down, rounding leaves a positive variance."""
    K = covariance() - 0.1 * np.eye(N)
    got = DensePrior(K).condition(Sites(np.full(N, 1e17), np.zeros(N))).predict(K, np.diag(K))
    assert np.all(got.variance > 0.0)


def test_cavities_are_leave_one_out():
    """Each cavity is the prediction of an example by all the other sites."""
    K, s = covariance(), sites()
    c = cavity(DensePrior(K).condition(s).local())
    for i in range(N):
        others = np.arange(N) != i
        rest = Sites(s.tau[others], s.nu[others])
        post = DensePrior(K[np.ix_(others, others)]).condition(rest)
        got = post.predict(K[i : i + 1, others], K[i : i + 1, i])
        np.testing.assert_allclose(c.mean[i], got.mean[0], rtol=1e-11)
        np.testing.assert_allclose(c.variance[i], got.variance[0], rtol=1e-11)


def test_nothing_is_factored_before_it_is_needed():
    """Conditioning costs nothing; with α known, means cost a product and no factor."""
    K, s = covariance(), sites()
    post = DensePrior(K).condition(s)
    assert "_factor" not in vars(post)
    given = DensePrior(K).condition(s, alpha=post.alpha)
    np.testing.assert_allclose(given.mean, post.mean, rtol=1e-11)
    assert "_factor" not in vars(given)


def test_prior_itself():
    """The prior's local view, diagonal, product and size are those of K."""
    K = covariance()
    prior, a = DensePrior(K), np.arange(N, dtype=float)
    assert prior.size == N
    np.testing.assert_array_equal(prior.condition().local().q.variance, np.diag(K))
    np.testing.assert_array_equal(prior.condition().local().rest, np.ones(N))
    np.testing.assert_allclose(prior.product(a), K @ a, rtol=1e-14)


def test_inverse_plus():
    """(K + noise)⁻¹ and half the log determinant, whichever noise was asked for before."""
    K = covariance()
    prior = DensePrior(K)
    for noise in (np.full(N, 0.5), np.linspace(0.1, 1.0, N), np.full(N, 0.5), np.full(N, 0.5)):
        inverse, half_log_det = prior.inverse_plus(noise)
        total = K + np.diag(noise)
        np.testing.assert_allclose(inverse, np.linalg.inv(total), rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(half_log_det, 0.5 * np.linalg.slogdet(total)[1], rtol=1e-12)


def test_solve():
    """B⁻¹ v before and after the factor has been inverted in place."""
    K, s, v = covariance(), sites(), np.arange(N, dtype=float)
    post = DensePrior(K).condition(s)
    truth = np.linalg.solve(np.eye(N) + np.sqrt(s.tau)[:, None] * K * np.sqrt(s.tau), v)
    np.testing.assert_allclose(post.solve(v), truth, rtol=1e-11)
    _ = post.local()
    np.testing.assert_allclose(post.solve(v), truth, rtol=1e-11)


def test_inverse_of_a_singular_matrix_is_refused():
    """A matrix that is not positive definite is refused, not jittered."""
    with pytest.raises(NotPositiveDefiniteError):
        DensePrior(-np.eye(3)).inverse_plus(np.zeros(3))


@pytest.mark.parametrize("library", ["array_api_strict", "array_api_compat.torch"])
def test_other_array_libraries(library):
    """Every answer is NumPy's, weak and strong sites included."""
    pytest.importorskip("torch" if "torch" in library else library)
    xp = pytest.importorskip(library)
    K = covariance()
    s = Sites(np.array([1e12, 1e-12, 1.0, 3.0, 0.0, 1e-6]), np.ones(N))
    here = DensePrior(K).condition(s)
    there = DensePrior(xp.asarray(K)).condition(Sites(*(xp.asarray(x) for x in s)))
    pairs = [
        *zip(there.local().q, here.local().q, strict=True),
        (there.alpha, here.alpha),
        (there.local().rest, here.local().rest),
        (there.half_log_det, here.half_log_det),
        (there.slope_matrix(Slope()), here.slope_matrix(Slope())),
        (there.covariance(), here.covariance()),
    ]
    for got, truth in pairs:
        scale = np.max(np.abs(truth))
        np.testing.assert_allclose(to_numpy(got), truth, rtol=1e-9, atol=1e-11 * scale)


def test_a_posterior_that_is_gone_harms_no_answer():
    """What was read from a posterior stays right after it and its factor are gone."""
    rng = np.random.default_rng(5)
    A = rng.normal(size=(30, 30))
    prior = DensePrior(A @ A.T)
    sites = [Sites(rng.uniform(0.1, 3.0, 30), rng.normal(size=30)) for _ in range(3)]
    first = prior.condition(sites[0])
    known = [np.copy(part) for part in first.local().q]
    kept = first.local()
    del first
    second = prior.condition(sites[1])
    prior.condition(sites[2]).covariance()
    for found, part in zip(kept.q, known, strict=True):
        np.testing.assert_array_equal(found, part)
    expected = np.linalg.inv(np.linalg.inv(prior.K) + np.diag(sites[1].tau))
    # The matrix has a condition number of some thousands.
    np.testing.assert_allclose(second.covariance(), expected, atol=1e-9)


def test_predictions_without_a_copy():
    """New means and variances without one copy of a row are those of its smaller site alone."""
    X = np.random.default_rng(0).normal(size=(N + 4, 2))
    r2 = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    whole = 2.0 * np.exp(-0.5 * r2)
    K, K_star, own = whole[:N, :N] + 0.1 * np.eye(N), whole[N:, :N], np.diag(whole)[N:]
    all_of, weight = sites(), np.array([1.0, 2.0, 3.5, 1.0, 7.0, 1.5])
    post = DensePrior(K).condition(all_of)
    change, before = post.without(K_star, weight), post.predict(K_star, own)
    for i in range(N):
        left = np.where(np.arange(N) == i, 1.0 - 1.0 / weight[i], 1.0)
        after = DensePrior(K).condition(Sites(*(left * part for part in all_of)))
        found = after.predict(K_star, own)
        for was, is_now, moved in zip(before, found, change, strict=True):
            # The same numbers by another factorisation, of a matrix of condition 100.
            np.testing.assert_allclose(was + moved[i], is_now, rtol=1e-11, atol=1e-12)
