"""The multinomial probit of one example: moments and class probabilities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from cavity.likelihoods.multinomial import (
    class_log_proba,
    class_log_z,
    differences,
    orthant,
)
from cavity.likelihoods.quadrant import by_angle, by_quadrature
from cavity.sites import ClassMarginals, contrasts


def random_classes(n_classes, n, seed, scale=1.0):
    """Gaussians over class values with full covariances, and labels."""
    rng = np.random.default_rng(seed)
    R = rng.standard_normal((n, n_classes, n_classes))
    q = ClassMarginals(2.0 * rng.standard_normal((n, n_classes)), scale * R @ R.swapaxes(1, 2))
    return rng.integers(n_classes, size=n), q


def class_tilted(codes, q):
    """The log evidence, mean and covariance that a label gives to the values of all classes."""
    m, V = q
    A = contrasts(codes, m.shape[1])
    found = orthant(*differences(A, q))
    # The label's pull alpha on the differences and its precision R; f moves by V A' of them.
    tau, nu = found.sites
    alpha = nu - tau * found.mean
    R = tau[:, :, None] * (np.eye(tau.shape[1]) - found.covariance * tau[:, None, :])
    VA = V @ A.swapaxes(1, 2)
    mean = m + (VA @ alpha[:, :, None])[:, :, 0]
    return found.log_z, ClassMarginals(mean, V - VA @ R @ VA.swapaxes(1, 2))


def exact_log_z(codes, q, abseps=1e-9):
    """Orthant probabilities by SciPy's numerical integration."""
    g = differences(contrasts(codes, q.mean.shape[1]), q)
    eye = np.eye(g.mean.shape[1])
    each = zip(g.mean, g.covariance, strict=True)
    return np.log([multivariate_normal.cdf(h, cov=G + eye, abseps=abseps) for h, G in each])


@pytest.mark.parametrize(("n_classes", "scale"), [(2, 1.0), (3, 0.1), (3, 5.0)])
def test_small_orthants_are_exact(n_classes, scale):
    """For two and three classes log Z is the orthant probability."""
    codes, q = random_classes(n_classes, 30, 0, scale)
    truth = exact_log_z(codes, q)
    seen = truth > -12.0  # SciPy's own absolute error is 1e-9
    assert np.sum(seen) > 15
    assert_allclose(class_log_z(codes, q)[seen], truth[seen], rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("n_classes", [3, 4, 6])
def test_tilted_evidence_is_close(n_classes):
    """The small expectation propagation gives orthant probabilities to a few hundredths."""
    codes, q = random_classes(n_classes, 20, 1, 0.5)
    truth = exact_log_z(codes, q, 1e-4)
    error = np.abs(class_tilted(codes, q)[0] - truth)[truth > -4.0]
    # The error of expectation propagation, for strongly correlated values.
    assert np.median(error) < 0.01
    assert np.max(error) < 0.1


def test_independent_values_by_quadrature():
    """With independent values the probability is one integral over the label's own value."""
    mean, variance = np.array([0.3, -1.0, 0.8, 0.1, -4.0]), np.array([1.0, 0.2, 3.0, 0.5, 2.0])
    q = ClassMarginals(mean[None], np.diag(variance)[None])
    truth = []
    for c in range(5):
        own, others = np.sqrt(1.0 + variance[c]), np.delete(np.arange(5), c)
        sd = np.sqrt(1.0 + variance[others])

        def integrand(x, c=c, own=own, others=others, sd=sd):
            return norm.pdf(x) * np.prod(norm.cdf((mean[c] + own * x - mean[others]) / sd))

        truth.append(quad(integrand, -9.0, 9.0, epsabs=1e-13)[0])
    assert_allclose(np.sum(truth), 1.0, rtol=1e-10)
    # The error of expectation propagation; normalising removes most of it.
    assert_allclose(np.exp(class_log_proba(q))[0], truth, atol=5e-3)
    assert_allclose(class_log_proba(q)[0], np.log(truth), atol=2e-2)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_tilted_moments_are_derivatives(n_classes):
    """The tilted mean is m + V ∂log Z/∂m, and the covariance V + V ∂²log Z V of the same log Z."""
    codes, q = random_classes(n_classes, 6, 2)
    (_, found), step = class_tilted(codes, q), 1e-4

    def along(e):
        up, down = (class_tilted(codes, q._replace(mean=q.mean + s * e)) for s in (step, -step))
        return (up[0] - down[0]) / (2 * step), (up[1].mean - down[1].mean) / (2 * step)

    slopes, changes = zip(*map(along, np.eye(n_classes)), strict=True)
    d1 = np.stack(slopes, axis=1)
    mean = q.mean + np.einsum("ncd,nd->nc", q.covariance, d1)
    # Central differences of a smooth function: 1e-8, times the size of V.
    assert_allclose(found.mean, mean, atol=2e-6)
    if n_classes == 2:
        # ∂mean/∂m = 1 + V ∂²log Z; with more sites these move with the mean, which EP leaves out.
        jacobian = np.stack(changes, axis=2)
        covariance = np.einsum("ncd,nde->nce", jacobian, q.covariance)
        assert_allclose(found.covariance, covariance, atol=2e-6)


@pytest.mark.parametrize("mean", [1.0, 1e8])
@pytest.mark.parametrize("variance", [0.0, 1e-12, 1e6, 1e100])
def test_hostile_values(mean, variance):
    """Whatever the scale, with equal values or separate ones, probabilities are numbers."""
    m = mean * np.array([[0.0, 1.0, -1.0, 2.0, 0.5]])
    for n_classes in (3, 5):
        for V in (np.eye(n_classes), np.ones((n_classes, n_classes))):
            q = ClassMarginals(m[:, :n_classes], variance * V[None])
            log_p, found = class_log_proba(q), class_tilted(np.array([1]), q)
            assert np.all(np.isfinite(log_p))
            assert_allclose(np.sum(np.exp(log_p)), 1.0, rtol=1e-12)
            assert np.isfinite(found[0])
            assert all(np.all(np.isfinite(part)) for part in found[1])


def test_far_tails_keep_their_logarithm():
    """The log probability of a hopeless class is that of one integral, summed in log scale."""
    q = ClassMarginals(np.array([[0.0, 1.0, -40.0]]), np.eye(3)[None])
    x = np.linspace(0.0, 60.0, 60_001)
    logs = [norm.logcdf((-40.0 - m + np.sqrt(2.0) * x) / np.sqrt(2.0)) for m in (0.0, 1.0)]
    truth = logsumexp(norm.logpdf(x) + sum(logs)) + np.log(x[1])
    # Of the trapezoidal rule.
    assert_allclose(class_log_proba(q)[0, 2], truth, rtol=1e-10)


@pytest.mark.parametrize("size", [1.0, 5.0, 300.0])
def test_quadrants_in_two_ways(size):
    """Both ways to two correlated Gaussians give the same, also in the tails and near ±1."""
    rng = np.random.default_rng(4)
    n = 600
    h = rng.choice([-1.0, 1.0], (n, 2)) * np.exp(rng.uniform(-5.0, np.log(size) + 1.0, (n, 2)))
    near = np.sign(rng.uniform(-1.0, 1.0, n)) * (1.0 - 10.0 ** rng.uniform(-9.0, 0.0, n))
    rho = np.where(rng.random(n) < 0.5, rng.uniform(-1.0, 1.0, n), near)
    quick, same = by_angle(h, rho)
    # Where the two rules of the quick way agree, which is not everywhere at such correlations.
    assert np.mean(same) > 0.3
    assert_allclose(quick[same], by_quadrature(h, rho)[same], rtol=1e-10, atol=1e-12)


def test_rounded_covariances_of_classes():
    """Under a huge prior differences of classes may have variances below zero: rounding."""
    mean = 1e5 * np.array([[2.425, 1.055, 1.071, -5.619, 1.069]])
    covariance = 1e10 * np.array(
        [
            [2.59300008, 2.58760274, 2.58734844, 2.58385242, 2.58734867],
            [2.58760274, 2.58799893, 2.58901621, 2.58551716, 2.58901558],
            [2.58734844, 2.58901621, 2.58876200, 2.58526309, 2.58876114],
            [2.58385242, 2.58551716, 2.58526309, 2.59925862, 2.58526321],
            [2.58734867, 2.58901558, 2.58876114, 2.58526321, 2.58876228],
        ]
    )
    q = ClassMarginals(mean, covariance[None])
    assert np.min(np.linalg.eigvalsh(covariance)) < 0.0
    with np.errstate(all="raise", under="ignore"):
        proba = np.exp(class_log_proba(q))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert proba.argmax() == mean.argmax()


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_correlations_rounded_beyond_one(sign):
    """A correlation may be rounded to more than one: it counts as one."""
    z, rho = np.array([[0.3, 0.8]]), np.array([sign])
    assert np.abs(np.nextafter(rho, 2.0 * sign)) > 1.0
    found = by_angle(z, np.nextafter(rho, 2.0 * sign))[0]
    np.testing.assert_array_equal(found, by_angle(z, rho)[0])
    assert np.all(np.isfinite(found))


def test_quadrants_of_classes_need_no_quadrature():
    """For class values that vary alike, the quick way serves nearly all."""
    codes, q = random_classes(3, 3000, 5, 0.3)
    g = differences(contrasts(codes, 3), ClassMarginals(q.mean, q.covariance + np.eye(3)))
    sd = np.sqrt(np.diagonal(g.covariance, axis1=1, axis2=2) + 1.0)
    assert np.mean(by_angle(g.mean / sd, g.covariance[:, 0, 1] / np.prod(sd, axis=1))[1]) > 0.99
