"""Moments and derivatives against slow truths in forty digits."""

from functools import cache
from itertools import pairwise, product

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cavity.likelihoods import Gaussian, Likelihood, Logit, Poisson, Probit, numerical, quadrature
from cavity.sites import Marginals

DIGITS = 40
MEANS = [-1000.0, -37.0, -2.0, 0.0, 0.5, 10.0, 120.0, 1000.0]
VARIANCES = [1e-6, 0.1, 10.0, 1e3, 1e6]
GRID = list(product(MEANS, VARIANCES))
# The bar for every number; what double precision cannot hold may come out as zero.
RELATIVE, UNDERFLOW = 1e-9, 1e-300


@cache
def rule(q=20):
    """Gauss–Legendre nodes and weights to 40 digits, polished by Newton's method."""
    nodes = []
    with mp.workdps(DIGITS):
        for x in map(mp.mpf, np.polynomial.legendre.leggauss(q)[0].tolist()):
            for _ in range(3):
                a, b = mp.mpf(1), x
                for k in range(1, q):
                    a, b = b, ((2 * k + 1) * x * b - k * a) / (k + 1)
                slope = q * (x * b - a) / (x * x - 1)
                x = x - b / slope
            nodes.append((x, 2 / ((1 - x * x) * slope**2)))
    return nodes


class Rates(Likelihood):
    """Counts with rate e^f: a density that overflows far out, and no closed forms."""

    support = "counts"

    def log_prob(self, y, f):
        return y * f - np.exp(f)

    def derivatives(self, y, f):
        return y - np.exp(f), -np.exp(f), -np.exp(f)

    def sample(self, f, rng):
        return rng.poisson(np.exp(f)).astype(float)


def gaussian_average(values, m, v):
    """Averages under N(m, v), on panels graded around zero and of two deviations around m."""
    m, v = mp.mpf(m), mp.mpf(v)
    sd = mp.sqrt(v)
    edges = {m + 2 * k * sd for k in range(-22, 23)} | {mp.mpf(0)}
    edges |= {sign * mp.mpf(2) ** k for k in range(-1, 16) for sign in (-1, 1)}
    total = [mp.mpf(0)] * len(values(m))
    for a, b in pairwise(sorted(e for e in edges if abs(e - m) <= 44 * sd)):
        for x, w in rule():
            f = (a + b) / 2 + (b - a) / 2 * x
            n = (b - a) / 2 * w * mp.exp(-((f - m) ** 2) / (2 * v))
            total = [t + n * value for t, value in zip(total, values(f), strict=True)]
    return [t / mp.sqrt(2 * mp.pi * v) for t in total]


def logistic_parts(f):
    e = mp.exp(-abs(f))
    big, small = 1 / (1 + e), e / (1 + e)
    s, rest = (big, small) if f > 0 else (small, big)
    bend = s * rest
    return [s, s * s, s**3, rest, bend, bend * (rest - s), min(f, mp.mpf(0)) - mp.log1p(e)]


@cache
def logit_truth(m, v):
    """Tilted and expected moments for the label +1."""
    with mp.workdps(DIGITS):
        s1, s2, s3, rest, slope, bend, log = gaussian_average(logistic_parts, m, v)
        log_z = mp.log(s1) if s1 < 0.5 else mp.log1p(-rest)
        e2, e3 = s2 / s1, s3 / s1
        # Either form cancels on the side of the other.
        d2 = 2 * e3 - e2 - e2**2 if m < 0 else bend / s1 - (slope / s1) ** 2
        return (log_z, slope / s1, d2), (log, rest, -slope)


def probit_parts(z, digits=60):
    """Log Φ and its first three derivatives by their definitions, with digits to burn."""
    with mp.workdps(digits):
        log = mp.log1p(-mp.ncdf(-z)) if z > 0 else mp.log(mp.ncdf(z))
        h = mp.npdf(z) / mp.exp(log)
        return log, h, -h * (z + h), h * ((z + h) * (z + 2 * h) - 1)


@cache
def probit_expected_truth(m, v):
    with mp.workdps(DIGITS):
        return gaussian_average(lambda f: probit_parts(f)[:3], m, v)


def assert_matches(moments, truths, y=1.0):
    """Compare to the truths for the label +1, of which the odd derivatives change sign with y."""
    for k, (got, *truth) in enumerate(zip(moments, *truths, strict=True)):
        expected = np.array([float(t) for t in truth]) * (y if k % 2 else 1.0)
        assert_allclose(got, expected, rtol=RELATIVE, atol=UNDERFLOW, err_msg=f"number {k}")


def marginals(grid, y=1.0):
    m, v = np.array(grid).T
    return Marginals(y * m, v)


@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_logit_against_mpmath(y):
    """Closed forms and defaults of the logit are exact from tiny to huge means and variances."""
    lik, c = Logit(), marginals(GRID, y)
    tilted, expected = zip(*(logit_truth(*point) for point in GRID), strict=True)
    assert_matches(lik.tilted(y, c), tilted, y)
    assert_matches(lik.expected(y, c), expected, y)
    assert_matches(numerical.tilted(lik, y, c), tilted, y)
    assert_matches(numerical.expected(lik, y, c), expected, y)


@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_probit_against_mpmath(y):
    """So are those of the probit; its expectations are sought on a part of the grid."""
    lik, c, few = Probit(), marginals(GRID, y), GRID[::4]
    truth = []
    for m, v in GRID:
        s = mp.sqrt(1 + mp.mpf(v))
        truth.append([d / s**k for k, d in enumerate(probit_parts(m / s)[:3])])
    assert_matches(lik.tilted(y, c), truth, y)
    assert_matches(numerical.tilted(lik, y, c), truth, y)
    expected = [probit_expected_truth(*point) for point in few]
    assert_matches(lik.expected(y, marginals(few, y)), expected, y)


@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_derivatives_against_mpmath(y):
    """Three derivatives of log σ and log Φ hold their relative accuracy into both tails."""
    f = np.concatenate([np.linspace(-12.0, 12.0, 49), [-1e3, -300.0, -37.0, 37.0, 300.0, 1e3]])
    points = [mp.mpf(x) for x in f.tolist()]
    probit = [probit_parts(x) for x in points]
    assert_matches((Probit().log_prob(y, y * f), *Probit().derivatives(y, y * f)), probit, y)
    logit = []
    for x in points:
        _, _, _, rest, slope, bend, log = logistic_parts(x)
        logit.append((log, rest, -slope, -bend))
    assert_matches((Logit().log_prob(y, y * f), *Logit().derivatives(y, y * f)), logit, y)


@cache
def cumulant_truth(m, v):
    """Third and fourth tilted cumulants of the logit and of the probit, in units of √v."""
    with mp.workdps(DIGITS):
        powers = gaussian_average(lambda f: [logistic_parts(f)[0] * f**k for k in range(5)], m, v)
        a, b, c, d = (p / powers[0] for p in powers[1:])
        fourth = d - 4 * c * a - 3 * b**2 + 12 * b * a**2 - 6 * a**4
        logit = (c - 3 * a * b + 2 * a**3) / mp.sqrt(v) ** 3, fourth / v**2
        s = mp.sqrt(1 + mp.mpf(v))
        third, fourth = (mp.diff(lambda z: mp.log(mp.ncdf(z)), m / s, k) for k in (3, 4))
        return logit, (third * (mp.sqrt(v) / s) ** 3, fourth * (mp.sqrt(v) / s) ** 4)


def test_cumulants_against_mpmath():
    """Tilted cumulants are those of the tilted density, and derivatives of log Z."""
    grid = list(product([-20.0, 0.5, 6.0], [0.1, 200.0]))
    truths = zip(*(cumulant_truth(*point) for point in grid), strict=True)
    c = marginals(grid)
    for lik, truth in zip((Logit(), Probit()), truths, strict=True):
        for k, got in zip((3, 4), lik.cumulants(1.0, c), strict=True):
            true = [float(t[k - 3]) for t in truth]
            # Central moments lose what the cumulant falls short of √v to the same power.
            assert_allclose(got / np.sqrt(c.variance) ** k, true, rtol=1e-9, atol=1e-12)


@cache
def poisson_truth(y, m, v):
    def values(f):
        p = mp.exp(y * f - mp.exp(f))
        return p, p * (y - mp.exp(f))

    with mp.workdps(DIGITS):
        z, slope = gaussian_average(values, m, v)
        return mp.log(z), slope / z


@pytest.mark.parametrize("y", [0.0, 3.0])
def test_default_against_mpmath(y):
    """The numerical default is exact for a density that overflows within its reach."""
    grid = list(product([-20.0, 0.5, 5.0], [0.01, 1.0, 100.0]))
    moments = Rates().tilted(y, marginals(grid))
    assert_matches(moments[:2], [poisson_truth(y, *point) for point in grid])


def test_gaussian_against_mpmath():
    """The Gaussian's closed forms are averages of its density and of its logarithm."""
    grid, y, noise = list(product([-20.0, 0.5, 6.0], [0.1, 200.0])), 0.7, mp.mpf(0.3)
    tilted, expected = [], []
    for m, v in grid:
        r, total = mp.mpf(y) - m, noise + v
        tilted.append((mp.log(mp.npdf(r, 0, mp.sqrt(total))), r / total, -1 / total))
        log_p = mp.log(mp.npdf(r, 0, mp.sqrt(noise))) - v / (2 * noise)
        expected.append((log_p, r / noise, -1 / noise))
    for lik in (Gaussian(0.3), Gaussian(np.full(len(grid), 0.3))):
        assert_matches(lik.tilted(y, marginals(grid)), tilted)
        assert_matches(numerical.tilted(lik, y, marginals(grid)), tilted)
        assert_matches(lik.expected(y, marginals(grid)), expected)
        assert_matches(numerical.expected(lik, y, marginals(grid)), expected)


def test_rounding_is_not_refined(monkeypatch):
    """Integrals of rates far below one take few panels; before, all of 80 rounds."""
    rounds, halve = [], quadrature._halve_worst
    monkeypatch.setattr(quadrature, "_halve_worst", lambda *a: rounds.append(1) or halve(*a))
    y, m, v = np.array([0.0, 1.0, 9.0]), np.array([-25.0, -34.0, -19.0]), np.full(3, 0.3)
    found = Poisson().tilted(y, Marginals(m, v))
    assert len(rounds) < 20
    # The rate within these cavities, e^(m + y v) and less than 3e-7, is all there is beside y.
    rate = np.exp(m + (y + 0.5) * v)
    # Relative to that the tilted density changes by the rate times the variance, 1e-7 at most.
    assert_allclose(found.d1, y - rate, rtol=1e-10)
    assert_allclose(found.d2, -rate, rtol=1e-5)
