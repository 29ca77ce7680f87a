"""Sites, cavities and moments turn into one another as the Gaussian identities say."""

import numpy as np
import pytest
from scipy import integrate, stats

from cavity.likelihoods import Logit, Probit
from cavity.sites import Local, Marginals, Moments, Sites, cavity, expand, match


def random_local(n=6, seed=0):
    """Marginals with sites inside them, and the cavities that were there before the sites."""
    rng = np.random.default_rng(seed)
    c = Marginals(rng.normal(size=n), rng.uniform(0.2, 3.0, n))
    sites = Sites(rng.uniform(0.1, 5.0, n), rng.normal(size=n))
    v = 1.0 / (1.0 / c.variance + sites.tau)
    q = Marginals(v * (c.mean / c.variance + sites.nu), v)
    return c, Local(q, sites, sites.nu - sites.tau * q.mean, 1.0 - sites.tau * v, c.variance)


def test_cavity_takes_the_site_out():
    """Multiplying a site into a Gaussian and taking it out again gives the Gaussian back."""
    c, local = random_local()
    got = cavity(local)
    np.testing.assert_allclose(got.mean, c.mean, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(got.variance, c.variance, rtol=1e-13)


@pytest.mark.parametrize("copies", [1.0, 2.0, 3.5, np.arange(1.0, 7.0)])
def test_cavity_takes_out_one_copy(copies):
    """With w copies the cavity lacks 1/w of the site: 1/v = 1/Σ − τ/w, m/v = μ/Σ − ν/w."""
    _, local = random_local()
    got = cavity(local, copies)
    precision = 1.0 / local.q.variance - local.sites.tau / copies
    mean = (local.q.mean / local.q.variance - local.sites.nu / copies) / precision
    np.testing.assert_allclose(1.0 / got.variance, precision, rtol=1e-13)
    np.testing.assert_allclose(got.mean, mean, rtol=1e-12, atol=1e-13)


def test_cavity_of_a_dominant_site():
    """A site 1e15 times sharper than its cavity is taken out without loss, thanks to ``rest``."""
    tau, nu, m, v = 1e15, 3e14, 0.7, 1.0
    rest = 1.0 / (1.0 + tau * v)
    q = Marginals(np.array([(m / v + nu) * v * rest]), np.array([v * rest]))
    alpha = np.array([(nu - tau * m) * rest])
    local = Local(q, Sites(np.array([tau]), np.array([nu])), alpha, np.array([rest]), q.variance)
    got = cavity(local)
    np.testing.assert_allclose([got.mean[0], got.variance[0]], [m, v], rtol=1e-14)


@pytest.mark.parametrize("lik", [Probit(0.5), Logit()])
def test_match_reproduces_the_tilted_moments(lik):
    """Cavity times matched site has the mean and variance of the tilted density."""
    m, v, y = 0.4, 1.7, -1.0
    c = Marginals(np.array([m]), np.array([v]))
    tau, nu = (float(x[0]) for x in match(c, lik.tilted(np.array([y]), c)))

    def raw(k):
        def density(f):
            return f**k * np.exp(lik.log_prob(y, np.array([f]))[0]) * stats.norm.pdf(f, m, v**0.5)

        return integrate.quad(density, -20.0, 20.0, epsabs=1e-13, epsrel=1e-12, limit=200)[0]

    mean = raw(1) / raw(0)
    variance = raw(2) / raw(0) - mean**2
    # Twice the accuracy asked of quad.
    np.testing.assert_allclose(1.0 / (1.0 / v + tau), variance, rtol=1e-10)
    np.testing.assert_allclose((m / v + nu) / (1.0 / v + tau), mean, rtol=1e-10)


def test_match_of_copies_adds_up():
    """The sites of w copies are w times that of one."""
    c = Marginals(np.array([0.3]), np.array([2.0]))
    moments = Probit().tilted(1.0, c)
    one, three = match(c, moments), match(c, moments, 3.0)
    np.testing.assert_allclose(np.array(three), 3.0 * np.array(one), rtol=1e-15)


def test_expand_has_the_slope_and_curvature():
    """The expanded site ν f − τ f²/2 has the given first two derivatives at f, times the copies."""
    f, d1, d2, w = np.array([0.3, -2.0]), np.array([1.1, -0.4]), np.array([-0.5, -2.0]), 2.0
    sites = expand(f, d1, d2, w)
    np.testing.assert_allclose(sites.nu - sites.tau * f, w * d1, rtol=1e-15)
    np.testing.assert_allclose(-sites.tau, w * d2, rtol=1e-15)


def test_moments_of_nothing_make_an_empty_site():
    """A likelihood that says nothing leaves the cavity as it is."""
    zero = np.zeros(2)
    sites = match(Marginals(zero, zero + 1.0), Moments(zero, zero, zero))
    np.testing.assert_array_equal(sites.tau, zero)
    np.testing.assert_array_equal(sites.nu, zero)
