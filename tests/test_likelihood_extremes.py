"""Counts, amounts, ranks and outliers far out: moments and derivatives in many digits."""

from functools import cache
from inspect import signature
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_likelihood_moments import probit_parts, rule

from cavity.likelihoods import (
    Censored,
    Gamma,
    Gaussian,
    Logit,
    NegativeBinomial,
    NoisyProbit,
    Ordinal,
    Poisson,
    Probit,
    StudentT,
    numerical,
)
from cavity.likelihoods.normal import _excess_ratios
from cavity.likelihoods.scale_mixture import _Precision
from cavity.sites import Marginals, match

DIGITS = 50
# The bar for every number; what is smaller than this beside its kind may come out as zero.
RELATIVE, ABSOLUTE = 1e-9, 1e-30


def marginals(points):
    return Marginals(*np.array(points).T)


def assert_matches(found, truths, atol=ABSOLUTE, err_msg=""):
    """Compare each of several numbers at each point with its truth."""
    for k, (got, *truth) in enumerate(zip(found, *truths, strict=True)):
        true = np.array([float(t) for t in truth])
        assert np.all(np.isfinite(got)), f"{err_msg}, number {k}: not finite"
        assert_allclose(got, true, rtol=RELATIVE, atol=atol, err_msg=f"{err_msg}, number {k}")


def peak(slope, m, sd):
    """The point where a concave log density has no slope, by bisection."""
    step = sd * (mp.sign(slope(m)) or 1)
    a, b = m, m + step
    while slope(b) * step > 0:
        step *= 2
        a, b = b, m + step
    for _ in range(150):
        c = (a + b) / 2
        a, b = (c, b) if slope(c) * step > 0 else (a, c)
    return (a + b) / 2


def truth(log_p, d_log_p, dd_log_p, bend, m, v):
    """Log Z, d1 and d2 of a log-concave density that bends near one place, by panels."""
    m, v = mp.mpf(m), mp.mpf(v)
    sd = mp.sqrt(v)
    top = peak(lambda f: d_log_p(f) - (f - m) / v, m, sd)
    width = 1 / mp.sqrt(1 / v - dd_log_p(top))
    edges = {top + width * k for k in range(-36, 37)} | {m + sd * k for k in range(-24, 25)}
    edges |= {bend + mp.mpf(k) / 2 for k in range(-80, 81)}
    edges = sorted(e for e in edges if abs(e - m) <= 24 * sd or abs(e - top) <= 36 * width)

    def psi(f):
        return log_p(f) - (f - m) ** 2 / (2 * v)

    high, sums = psi(top), [mp.mpf(0)] * 3
    for a, b in pairwise(edges):
        if max(psi(a), psi(b), psi((a + b) / 2)) < high - 100:
            continue
        for x, w in rule():
            f = (a + b) / 2 + (b - a) / 2 * x
            p = (b - a) / 2 * w * mp.exp(psi(f) - high)
            sums = [s + p * (f - top) ** k for k, s in enumerate(sums)]
    mean, square = sums[1] / sums[0], sums[2] / sums[0]
    log_z = high + mp.log(sums[0]) - mp.log(2 * mp.pi * v) / 2
    return log_z, (top - m + mean) / v, ((square - mean**2) / v - 1) / v


def poisson(y):
    y = mp.mpf(y)
    return (
        lambda f: y * f - mp.exp(f) - mp.loggamma(y + 1),
        lambda f: y - mp.exp(f),
        lambda f: -mp.exp(f),
        lambda f: -mp.exp(f),
    )


def negative_binomial(y, k):
    with mp.workdps(DIGITS):
        y, k = mp.mpf(y), mp.mpf(k)
        constant = mp.loggamma(y + k) - mp.loggamma(k) - mp.loggamma(y + 1)

    def share(f):
        return 1 / (1 + k * mp.exp(-f))

    def bend(f):
        return -(y + k) * share(f) * (1 - share(f))

    return (
        lambda f: constant + y * (f - mp.log(k)) - (y + k) * mp.log1p(mp.exp(f) / k),
        lambda f: y - (y + k) * share(f),
        bend,
        lambda f: bend(f) * (1 - 2 * share(f)),
    )


def gamma(y, k):
    with mp.workdps(DIGITS):
        y, k = mp.mpf(y), mp.mpf(k)
        constant = k * mp.log(k) + (k - 1) * mp.log(y) - mp.loggamma(k)

    def rest(f):
        return k * y * mp.exp(-f)

    return (
        lambda f: constant - k * f - rest(f),
        lambda f: rest(f) - k,
        lambda f: -rest(f),
        rest,
    )


RATES = [
    *((Poisson(), y, poisson(y)) for y in (0.0, 1.0, 1e4, 1e9, 1e12)),
    *(
        (NegativeBinomial(k), y, negative_binomial(y, k))
        for k, y in ((0.01, 0.0), (0.01, 1e9), (1.0, 7.0), (1.0, 1e9), (1e4, 3.0), (1e4, 1e9))
    ),
    *((Gamma(k), y, gamma(y, k)) for k, y in ((0.01, 1.3), (1.0, 1e-12), (1.0, 1e9), (1e4, 1e9))),
]
IDS = [f"{type(lik).__name__} {getattr(lik, 'shape', '')} {y:g}" for lik, y, _ in RATES]
# A variance far below the rounding of the mean itself cannot be told apart from none.
POINTS = [(-300.0, 1.0), (-20.0, 1e-3), (-20.0, 1e4), (3.0, 1e-4), (3.0, 1.0), (30.0, 100.0)]


def place_of(lik, y):
    """Where the log density bends."""
    bend = np.log(getattr(lik, "shape", 1.0)) if lik.support == "counts" and y == 0.0 else 0.0
    return mp.mpf(float(np.log(y))) if y > 0.0 else mp.mpf(float(bend))


@pytest.mark.parametrize(("lik", "y", "parts"), RATES, ids=IDS)
def test_tilted_of_rates(lik, y, parts):
    """Log Z and its slopes hold for no count and for 10^12, and for targets far from the mean."""
    with mp.workdps(DIGITS):
        truths = [truth(*parts[:3], place_of(lik, y), m, v) for m, v in POINTS]
    # Slopes of counts near their mean are differences of terms of that size.
    assert_matches(lik.tilted(y, marginals(POINTS)), truths, atol=1e-12)


@pytest.mark.parametrize(("lik", "y", "parts"), RATES, ids=IDS)
def test_derivatives_of_rates(lik, y, parts):
    """Log p and three derivatives, relative to the terms that they are made of."""
    f = np.array([-300.0, -20.0, -1.0, 0.3, 5.0, 20.0, 27.6, 100.0, 300.0])
    with mp.workdps(DIGITS):
        truths = [[part(mp.mpf(x)) for part in parts] for x in f.tolist()]
    found = lik.log_prob(y, f), *lik.derivatives(y, f)
    # Where e^f is a count, y − e^f has the rounding of f, f ε, times either.
    near = 1e-13 * y if lik.support == "counts" else 0.0
    for k, (got, *true) in enumerate(zip(found, *truths, strict=True)):
        want = np.array([float(t) for t in true])
        assert_allclose(got, want, rtol=RELATIVE, atol=ABSOLUTE + near * (k == 1), err_msg=str(k))


EXPECTED = [(-300.0, 1.0), (-20.0, 30.0), (0.3, 1e-6), (3.0, 1.0), (20.7, 1e-9), (20.7, 4.0)]


def average(log_p, d_log_p, dd_log_p, m, v):
    """E log p and its slopes under a Gaussian, by panels of half a deviation."""
    m, sd, sums = mp.mpf(m), mp.sqrt(mp.mpf(v)), [mp.mpf(0)] * 3
    for k in range(-48, 48):
        for x, w in rule():
            t = (mp.mpf(k) + (1 + x) / 2) / 2
            p = w / 4 * mp.npdf(t)
            f = m + sd * t
            values = log_p(f), d_log_p(f), dd_log_p(f)
            sums = [s + p * value for s, value in zip(sums, values, strict=True)]
    return sums


@pytest.mark.parametrize(("lik", "y", "parts"), RATES[::2], ids=IDS[::2])
def test_expected_of_rates(lik, y, parts):
    """E log p and its slopes, for counts of up to 10^12."""
    with mp.workdps(30):
        truths = [average(*parts[:3], m, v) for m, v in EXPECTED]
    found = lik.expected(y, marginals(EXPECTED))
    near = 1e-13 * y if lik.support == "counts" else 0.0
    assert_matches(found[:1], [t[:1] for t in truths], atol=1e-12)
    assert_matches(found[1:], [t[1:] for t in truths], atol=ABSOLUTE + near)


def phi(z):
    return mp.npdf(z)


def interval_truth(low, high, m, v):
    """Log[Φ(z₁) − Φ(z₂)] and three slopes in m by their definitions, in the lower tail."""
    s = mp.sqrt(1 + mp.mpf(v))
    ends = [None if end is None else (mp.mpf(end) - m) / s for end in (low, high)]
    a, b = ends
    sign = -1
    if b is None or (a is not None and a + b > 0):
        a, b, sign = (None if b is None else -b), -a, 1
    with mp.workdps(150):
        tail = mp.ncdf(b) - (mp.ncdf(a) if a is not None else 0)
        log = mp.log(tail) if b < 5 else mp.log1p(-mp.ncdf(-b) - (1 - tail - mp.ncdf(-b)))
        d = (phi(b) - (phi(a) if a is not None else 0)) / tail
        second = -b * phi(b) + (a * phi(a) if a is not None else 0)
        third = (b * b - 1) * phi(b) - ((a * a - 1) * phi(a) if a is not None else 0)
        dd = second / tail - d * d
        ddd = third / tail - 3 * d * dd - d**3
        return log, sign * d / s, dd / s**2, sign * ddd / s**3


THRESHOLDS = [(-0.5, 0.5), (0.0, 1e-3), (3.0, 3.0 + 1e-9), (-1.0, 50.0), (1e3, 1e3 + 1), (0, 3e-12)]
MEANS, VARIANCES = [-1e6, -1e3, -37.0, -3.0, 0.1, 40.0, 1e3, 1e8], [1e-12, 0.5, 1e4, 1e12]


@pytest.mark.parametrize("thresholds", THRESHOLDS, ids=str)
def test_ranks(thresholds):
    """Classes of any width, down to a trillionth part of the noise, and far in the tails."""
    lik, points = Ordinal(thresholds), [(m, v) for m in MEANS for v in VARIANCES]
    ends = [None, *lik.cuts.tolist(), None]
    for y in range(3):
        with mp.workdps(150):
            truths = [interval_truth(ends[y], ends[y + 1], mp.mpf(m), v) for m, v in points]
            at_f = [interval_truth(ends[y], ends[y + 1], mp.mpf(m), 0) for m in MEANS]
        found = lik.tilted(float(y), marginals(points))
        # What the rounding of the mean, of the size of the deviation, leaves of a slope.
        assert_matches(found, [t[:3] for t in truths], atol=1e-13, err_msg=f"class {y}")
        f = np.array(MEANS)
        found = lik.log_prob(float(y), f), *lik.derivatives(float(y), f)
        # The third derivative is negligible beside the cube of the first.
        assert_matches(found, at_f, atol=1e-12, err_msg=f"class {y} at f")


def noisy_truth(e, m, v):
    s, e = mp.sqrt(1 + mp.mpf(v)), mp.mpf(e)
    z = mp.mpf(m) / s
    with mp.workdps(150):
        p = e + (1 - 2 * e) * mp.ncdf(z)
        rest = e + (1 - 2 * e) * mp.ncdf(-z)
        slope = (1 - 2 * e) * phi(z)
        d = slope / p
        dd = -z * d - d * d
        ddd = (z * z - 1) * d - 3 * d * dd - d**3
        return (mp.log1p(-rest) if z > 0 else mp.log(p)), d / s, dd / s**2, ddd / s**3


@pytest.mark.parametrize("e", [1e-300, 1e-15, 1e-6, 0.01, 0.4999999, 0.5 - 1e-15])
def test_wrong_labels(e):
    """From no label noise at all to coin flips, for the surest predictions and contradictions."""
    lik, points = NoisyProbit(e), [(m, v) for m in (*MEANS, -9.0, 7.0) for v in VARIANCES]
    with mp.workdps(80):
        truths = [noisy_truth(e, m, v) for m, v in points]
        at_f = [noisy_truth(e, m, 0) for m in MEANS]
    for y in (-1.0, 1.0):
        c = marginals(points)
        log_z, d1, d2 = lik.tilted(y, c._replace(mean=y * c.mean))
        assert_matches((log_z, y * d1, d2), [t[:3] for t in truths])
        f = y * np.array(MEANS)
        d1, d2, d3 = lik.derivatives(y, f)
        assert_matches((lik.log_prob(y, f), y * d1, d2, y * d3), at_f)


def test_the_bound_of_wrong_labels():
    """The bound of a mixture is log[(1 − ε) e^{E log Φ} + ε e^{E log Φ(−·)}] far out, too."""
    points = [(-1e3, 0.1), (-8.0, 9.0), (0.5, 1e-6), (40.0, 0.3)]

    def averaged(m, v, sign):
        parts = cache(lambda f: probit_parts(sign * f, 30))
        return average(*(lambda f, k=k: parts(f)[k] for k in range(3)), m, v)[0]

    with mp.workdps(30):
        both = [[averaged(m, v, sign) for sign in (1, -1)] for m, v in points]
        for e in (1e-12, 0.3):
            bound, _, d2 = NoisyProbit(e).mixture(1.0, marginals(points))
            assert np.all(d2 <= 0.0)
            true = [mp.log((1 - mp.mpf(e)) * mp.exp(a) + e * mp.exp(b)) for a, b in both]
            assert_allclose(bound, np.array(true, dtype=float), rtol=RELATIVE)


def student_truth(y, nu, sigma, m, v):
    """Log Z, d1 and d2 of a Student t, on panels about its centre, the cavity's, and all peaks."""
    y, nu, sigma, m, v = map(mp.mpf, (y, nu, sigma, m, v))
    constant = mp.loggamma((nu + 1) / 2) - mp.loggamma(nu / 2)
    constant -= mp.log(nu * mp.pi) / 2 + mp.log(sigma)

    def psi(f):
        return (
            constant - (nu + 1) / 2 * mp.log1p(((y - f) / sigma) ** 2 / nu) - (f - m) ** 2 / v / 2
        )

    sd, wide, d = mp.sqrt(v), sigma * mp.sqrt(nu), y - m
    cubic = [1, d, nu * sigma**2 + (nu + 1) * v, d * nu * sigma**2]
    # From version 1.4 on mpmath wants to be told the order of the coefficients.
    order = {"asc": False} if "asc" in signature(mp.polyroots).parameters else {}
    roots = mp.polyroots(cubic, 500, extraprec=400, **order)
    real = [y + mp.re(r) for r in roots if abs(mp.im(r)) < mp.mpf(10) ** -20 * (1 + abs(r))]
    top = max(real, key=psi)
    scales = (sd, wide, 1 / mp.sqrt(1 / v + 1 / sigma**2))
    steps = [w * mp.mpf(2) ** k for w in scales for k in range(-3, 30)]
    edges = {c + s * step for c in (*real, m, y) for s in (-1, 1) for step in steps} | set(real)
    edges = sorted(e for e in edges if min(real) - 60 * sd <= e <= max(real) + 60 * sd)
    sums = [mp.mpf(0)] * 3
    for a, b in pairwise(edges):
        if max(psi(a), psi(b), psi((a + b) / 2)) < psi(top) - 90:
            continue
        for x, w in rule():
            f = (a + b) / 2 + (b - a) / 2 * x
            p = (b - a) / 2 * w * mp.exp(psi(f) - psi(top))
            sums = [s + p * (f - top) ** k for k, s in enumerate(sums)]
    mean, square = sums[1] / sums[0], sums[2] / sums[0]
    log_z = psi(top) + mp.log(sums[0]) - mp.log(2 * mp.pi * v) / 2
    return log_z, (top - m + mean) / v, ((square - mean**2) / v - 1) / v


@pytest.mark.parametrize(
    ("nu", "sigma", "y"), [(1.0, 1e-3, 10.0), (0.05, 1.0, 3.0), (1e3, 1.0, 50.0), (2.0, 1e-8, 0.3)]
)
def test_outliers(nu, sigma, y):
    """Tails without a mean, nearly Gaussian ones, and noise far narrower than the cavity."""
    points = [(-1e6, 1.0), (-30.0, 1e-6), (0.0, 1.0), (0.7, 1e8)]
    with mp.workdps(30):
        truths = [student_truth(y, nu, sigma, m, v) for m, v in points]
    assert_matches(StudentT(nu, sigma).tilted(y, marginals(points)), truths)


def test_derivatives_of_outliers():
    """Log p and three derivatives, from the centre to a trillion deviations out."""
    f = np.concatenate([[-1e12, -1e3, -3.0, 0.0, 1e-9, 0.5, 40.0, 1e12]])
    for nu, sigma in ((0.05, 1.0), (4.0, 1e-3), (1e6, 10.0)):
        z2 = [(mp.mpf(0.25) - mp.mpf(x)) / mp.mpf(sigma) for x in f.tolist()]
        with mp.workdps(DIGITS):
            n = mp.mpf(nu)
            constant = mp.loggamma((n + 1) / 2) - mp.loggamma(n / 2)
            constant -= mp.log(n * mp.pi) / 2 + mp.log(sigma)
            truths = []
            for z in z2:
                q = n + z * z
                log = constant - (n + 1) / 2 * mp.log(q / n)
                d1, d2 = (n + 1) * z / q, (n + 1) * (z * z - n) / q**2
                d3 = -2 * (n + 1) * z * (3 * n - z * z) / q**3
                truths.append((log, d1 / sigma, d2 / mp.mpf(sigma) ** 2, d3 / mp.mpf(sigma) ** 3))
        lik = StudentT(nu, sigma)
        assert_matches((lik.log_prob(0.25, f), *lik.derivatives(0.25, f)), truths)


def test_limits_are_gaussian_rows_and_probits():
    """Censored rows are Gaussian between the limits and probits there, for any noise."""
    c = marginals([(m, v) for m in (-1e8, -37.0, 0.3, 1e3) for v in (1e-12, 1.0, 1e12)])
    for noise in (1e-12, 0.3, 1e12):
        lik = Censored(noise, -0.5, 2.0)
        inside, at = lik.tilted(0.7, c), lik.tilted(2.0, c)
        shifted = Marginals(c.mean - 2.0, c.variance)
        for got, true in zip(inside, Gaussian(noise).tilted(0.7, c), strict=True):
            assert_allclose(got, true, rtol=1e-14)
        for got, true in zip(at, Probit(noise).tilted(1.0, shifted), strict=True):
            assert_allclose(got, true, rtol=1e-14)
        assert np.all(np.isfinite(np.concatenate([*lik.expected(-0.5, c), *lik.cumulants(2.0, c)])))
        mean, variance = lik.response(c)
        # At most a quarter of the squared range, which cancels in a million times its deviation.
        assert np.all((mean >= -0.5) & (mean <= 2.0) & (variance >= 0.0) & (variance < 1.5626))


@pytest.mark.parametrize("lik", [Poisson(), NegativeBinomial(0.5), Gamma(2.0)], ids=repr)
def test_rates_beyond_floats(lik):
    """Where E e^f is no float it is infinite; log Z and its slopes stay finite."""
    q = marginals([(800.0, 1.0), (0.0, 3000.0), (-800.0, 1.0)])
    mean, variance = lik.response(q)
    assert np.isinf(mean).tolist() == [True, True, False]
    assert np.isinf(variance).tolist() == [True, True, False]
    for y in (1.0, 1e9):
        assert np.all(np.isfinite(np.concatenate(lik.tilted(y, q))))
        assert not np.any(np.isnan(np.concatenate(lik.expected(y, q))))


def test_what_is_sharp_in_a_wide_cavity():
    """The default's slope is right where log p changes by billions within the cavity."""
    lik, c = Poisson(), Marginals(np.array([0.0]), np.array([1e6]))
    _, d1, d2 = numerical.tilted(lik, 1e9, c)
    # The tilted mean is log y, up to one part in 10^9.
    assert_allclose(d1, np.log(1e9) / 1e6, rtol=1e-7)
    assert_allclose(d2, -1e-6, rtol=1e-9)


@pytest.mark.parametrize("variance", [1e3, 1.9e8, 1e14])
def test_a_logit_is_never_sharper_than_its_steepest_place(variance):
    """However far out, a label takes no more than a precision of 1/4: rounding must not either."""
    mean = np.linspace(-3000.0, 3000.0, 101) * np.sqrt(variance)
    c = Marginals(mean, np.full_like(mean, variance))
    tau = match(c, Logit().tilted(np.ones_like(mean), c)).tau
    assert np.all(tau >= 0.0)
    # What 1 + d2 v, down to 4/v, keeps of its digits.
    assert np.all(tau <= 0.25 * (1.0 + 1e-15 * variance))


@pytest.mark.parametrize(("m", "v"), [(-2.5e7, 3.3e7), (-7e7, 9.5e7), (-2e5, 1e6), (-3e7, 1e9)])
def test_sites_of_labels_under_enormous_cavities(m, v):
    """A site's precision is what the tilted variance, a millionth of the cavity's, leaves."""
    peak = mp.findroot(lambda f: (m - f) / v + 1 / (1 + mp.exp(f)), 0.0)

    def density(f):
        return mp.exp((peak - m) ** 2 / (2 * v) - (f - m) ** 2 / (2 * v)) / (1 + mp.exp(-f))

    ends = [peak + k for k in (-2000, -400, -100, -30, -10, 0, 10, 30, 100, 400, 2000)]
    with mp.workdps(DIGITS):
        z, first, second = (mp.quad(lambda f: f**k * density(f), ends) for k in range(3))  # noqa: B023
        variance = second / z - (first / z) ** 2
        tau = float(1 / variance - 1 / mp.mpf(v))
    c = marginals([(m, v)])
    site = match(c, Logit().tilted(np.array([1.0]), c))
    # The first order in the ratio of the variances.
    assert_allclose(site.tau[0], tau, rtol=1e-5)


@pytest.mark.parametrize(("t", "depth", "rtol"), [(4.0, 30, 3e-14), (10.0, 12, 1e-12)])
def test_ratios_of_the_excess(t, depth, rtol):
    """Ratios of the moments of what exceeds t, where the tail begins, beside mpmath's."""
    with mp.workdps(40):
        moments = [
            mp.quad(lambda s, k=k: s**k * mp.exp(-t * s - s * s / 2), [0, 1, 4, mp.inf])
            for k in range(5)
        ]
        truth = [float(moments[k] / (k * moments[k - 1])) for k in range(1, 5)]
    # The fourth is worst: it is what the fixed point leaves after so many terms.
    assert_allclose(_excess_ratios(np.array(t), depth), truth, rtol=rtol)


@pytest.mark.parametrize("nu", [0.5, 2.0, 4.0, 30.0, 300.0])
def test_the_peak_of_a_student_is_its_highest(nu):
    """Nowhere on a grid of precisions is the density of log λ higher than at the peak found."""
    d, v = (grid.ravel() for grid in np.meshgrid(10.0 ** np.arange(-2, 5.5, 0.25), [1e-6, 1, 1e3]))
    over = _Precision(d, Marginals(0.0 * d, v), nu, 1.0)
    heights = [over.log_density(u + 0.0 * d) for u in np.linspace(-25.0, 8.0, 1651)]
    # Bisections stop within 1e-12 of where the slope changes sign.
    assert np.all(np.max(heights, axis=0) <= over.peak + 1e-9)
