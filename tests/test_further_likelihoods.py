"""Likelihoods of counts, positive numbers, ordered classes and contaminated data."""

import json
import math
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance
from test_likelihood_moments import rule

from cavity.arrays.differences import slope
from cavity.estimators.validation import check_offers
from cavity.inference import METHODS, Mixture, Problem, Variational, method
from cavity.likelihoods import (
    REGISTRY,
    Censored,
    Gamma,
    Gaussian,
    Likelihood,
    Logit,
    NegativeBinomial,
    NoisyProbit,
    Ordinal,
    Poisson,
    Probit,
    Step,
    StudentT,
    likelihood,
    numerical,
    quantiles,
)
from cavity.priors import DensePrior
from cavity.sites import Marginals
from cavity.storage import StorageError
from cavity.storage.codecs import likelihood_from_json, likelihood_to_json
from cavity.testing import check_inference, check_likelihood, targets

POINTS = [(-40.0, 1e-8), (-3.0, 0.3), (0.5, 1e-8), (0.5, 1.0), (4.0, 30.0), (40.0, 1e4)]
Q = Marginals(*np.array(POINTS).T)


def truth(log_p, m, v, places):
    """Log Z, d1 and d2 in forty digits, on panels graded about m and about other places."""
    m, v = mp.mpf(m), mp.mpf(v)
    sd = mp.sqrt(v)
    edges = {m + sign * sd * k for sign in (-1, 1) for k in (0, 1, 2, 3, 5, 8, 12, 18, 26, 36, 44)}
    edges |= {
        c + s * w * mp.mpf(2) ** k for c, w in places for s in (-1, 0, 1) for k in range(-2, 24)
    }
    edges = sorted(e for e in edges if abs(e - m) <= 44 * sd)
    z, first, second = mp.mpf(0), mp.mpf(0), mp.mpf(0)
    for a, b in pairwise(edges):
        for x, w in rule():
            f = (a + b) / 2 + (b - a) / 2 * x
            t = (f - m) / sd
            p = (b - a) / 2 * w * mp.exp(log_p(f) - t * t / 2)
            z, first, second = z + p, first + p * t, second + p * t * t
    mean = first / z
    return mp.log(z / sd / mp.sqrt(2 * mp.pi)), mean / sd, (second / z - mean**2 - 1) / v


def student(y, nu, sigma):
    nu, sigma = mp.mpf(nu), mp.mpf(sigma)
    c = mp.loggamma((nu + 1) / 2) - mp.loggamma(nu / 2) - mp.log(nu * mp.pi) / 2 - mp.log(sigma)
    return lambda f: c - (nu + 1) / 2 * mp.log1p(((y - f) / sigma) ** 2 / nu)


def interval(low, high):
    def log_p(f):
        a, b = low - f, high - f
        a, b = (-b, -a) if a + b > 0 else (a, b)
        with mp.workdps(60):
            return mp.log((mp.erfc(-b / mp.sqrt(2)) - mp.erfc(-a / mp.sqrt(2))) / 2)

    return log_p


def noisy(y, e):
    return lambda f: mp.log(e + (1 - 2 * mp.mpf(e)) * mp.erfc(-y * f / mp.sqrt(2)) / 2)


def negative_binomial(y, k):
    y, k = mp.mpf(y), mp.mpf(k)
    c = mp.loggamma(y + k) - mp.loggamma(k) - mp.loggamma(y + 1)
    return lambda f: c + y * f + k * mp.log(k) - (y + k) * mp.log(k + mp.exp(f))


CASES = [
    (StudentT(4.0, 0.1), 10.0, student(10.0, 4.0, 0.1), [(mp.mpf(10), mp.mpf("0.1"))]),
    (StudentT(1.0, 0.01), 0.7, student(0.7, 1.0, 0.01), [(mp.mpf(0.7), mp.mpf("0.01"))]),
    (StudentT(300.0), 20.0, student(20.0, 300.0, 1.0), [(mp.mpf(20), mp.mpf(1))]),
    (Ordinal((-0.5, 0.5)), 1.0, interval(mp.mpf("-0.5"), mp.mpf("0.5")), [(mp.mpf(0), mp.mpf(1))]),
    (Ordinal((0.0, 1e-3)), 1.0, interval(mp.mpf(0), mp.mpf(1e-3)), [(mp.mpf(0), mp.mpf(1))]),
    (NoisyProbit(1e-6), -1.0, noisy(-1, 1e-6), [(mp.mpf(0), mp.mpf(1))]),
    (NegativeBinomial(0.3), 3.0, negative_binomial(3, 0.3), [(mp.log(3), mp.mpf(1))]),
]


@pytest.mark.parametrize(("lik", "y", "log_p", "places"), CASES, ids=lambda x: str(x)[:20])
def test_tilted_against_mpmath(lik, y, log_p, places):
    """Tilted moments are right to nine digits for narrow, wide and contradicting cavities."""
    with mp.workdps(40):
        truths = [truth(log_p, m, v, places) for m, v in POINTS]
    for k, got in enumerate(lik.tilted(y, Q)):
        true = np.array([float(t[k]) for t in truths])
        # A slope that vanishes by symmetry is a difference of numbers of order one over σ.
        assert_allclose(got, true, rtol=1e-9, atol=1e-11, err_msg=f"number {k}")


def test_two_classes_in_order_are_a_probit():
    """Two classes in order are a probit with a threshold."""
    lik, c = Ordinal((0.7,)), Marginals(*(x.ravel() for x in np.meshgrid([-30.0, 0, 9], [1e-6, 3])))
    shifted = Marginals(c.mean - 0.7, c.variance)
    for code, y in ((0.0, -1.0), (1.0, 1.0)):
        for got, true in zip(lik.tilted(code, c), Probit().tilted(y, shifted), strict=True):
            assert_allclose(got, true, rtol=1e-12)
        for got, true in zip(lik.cumulants(code, c), Probit().cumulants(y, shifted), strict=True):
            assert_allclose(got, true, rtol=1e-10)


F = np.linspace(-3.0, 4.0, 8)
SCIPY = [
    (Poisson(), 3.0, stats.poisson(np.exp(F))),
    (NegativeBinomial(2.5), 3.0, stats.nbinom(2.5, 2.5 / (2.5 + np.exp(F)))),
    (Gamma(0.7), 1.3, stats.gamma(0.7, scale=np.exp(F) / 0.7)),
    (StudentT(3.0, 0.5), 0.4, stats.t(3.0, F, 0.5)),
    (Gaussian(0.25), 0.4, stats.norm(F, 0.5)),
]


@pytest.mark.parametrize(("lik", "y", "law"), SCIPY, ids=lambda x: str(x)[:20])
def test_laws_of_scipy(lik, y, law):
    """Densities, moments, distribution functions and quantiles at known f are SciPy's."""
    log_p = law.logpmf(y) if lik.support == "counts" else law.logpdf(y)
    assert_allclose(lik.log_prob(y, F), log_p, rtol=1e-12)
    assert_allclose(lik.cdf(y, F), law.cdf(y), rtol=1e-11)
    assert_allclose(lik.mean(F), law.mean(), rtol=1e-12)
    assert_allclose(lik.variance(F), law.var(), rtol=1e-12)
    levels = np.array([0.01, 0.5, 0.975])
    found = quantiles(lik, Marginals(F, np.full(8, 1e-30)), levels)
    assert_allclose(found, [law.ppf(p) for p in levels], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["poisson", "negative_binomial", "gamma", "student_t", "gaussian"])
def test_quantiles_invert_the_averaged_distribution(name):
    """Below a quantile lies its level; of counts at least, and less than it one below."""
    lik, levels = likelihood(name), np.array([1e-3, 0.3, 0.999])
    q = Marginals(np.array([-2.0, 0.0, 3.0]), np.array([0.01, 1.0, 9.0]))
    y = quantiles(lik, q, levels)

    def below(y):
        wide = Marginals(*(part + 0.0 * y for part in q))
        return numerical.averages(lambda f: [lik.cdf(y, f)], wide)[0]

    if lik.support == "counts":
        assert_array_equal(y, np.round(y))
        assert np.all(below(y) >= levels[:, None])
        assert np.all(below(y - 1.0) < levels[:, None])
    else:
        # In units of the rarer side, of which a quantile of relative error 1e-8 keeps seven digits.
        assert_allclose(below(y), levels[:, None] + 0.0 * y, atol=1e-10)


def test_quantiles_refuse():
    """Levels outside of (0, 1), and targets that have no order."""
    q = Marginals(F, 0.0 * F + 1.0)
    for levels in (0.0, 1.0, [0.5, np.nan], "half"):
        with pytest.raises(ValueError, match=r"levels|convert"):
            quantiles(Poisson(), q, levels)
    with pytest.raises(ValueError, match="distributed"):
        quantiles(Probit(), q, 0.5)


def test_many_shapes_make_a_poisson():
    """As the shape grows the negative binomial becomes the Poisson, digit by digit."""
    c = Marginals(np.array([-5.0, 0.0, 3.0]), np.array([0.1, 1.0, 2.0]))
    for y in (0.0, 7.0):
        for k, bar in ((1e6, 1e-3), (1e13, 1e-9)):
            for got, true in zip(
                NegativeBinomial(k).tilted(y, c), Poisson().tilted(y, c), strict=True
            ):
                assert_allclose(got, true, rtol=bar)
            got, true = NegativeBinomial(k).log_prob(y, c.mean), Poisson().log_prob(y, c.mean)
            assert_allclose(got, true, rtol=bar)


def test_responses_beyond_floats_are_infinite():
    """A mean rate that no float can hold is infinite, without a warning; zero stays zero."""
    q = Marginals(np.array([0.0, 800.0, -800.0]), np.array([2000.0, 1.0, 1.0]))
    for lik in (Poisson(), NegativeBinomial(2.0), Gamma(2.0)):
        mean, variance = lik.response(q)
        assert_array_equal(np.isinf(mean), [True, True, False])
        assert_array_equal(np.isinf(variance), [True, True, False])
        assert not np.any(np.isnan(mean + variance))
    narrow = Poisson().response(Marginals(np.array([2.0]), np.array([1e-14])))
    assert_allclose(narrow.variance, np.exp(2.0) + np.exp(4.0) * 1e-14, rtol=1e-14)


def test_deviances():
    """They are scikit-learn's, and twice the gap to the saturated model."""
    rng = np.random.default_rng(0)
    mean = rng.gamma(2.0, size=50)
    y = rng.poisson(mean).astype(float)
    assert_allclose(Poisson().deviance(y, mean).mean(), mean_poisson_deviance(y, mean))
    positive = rng.gamma(2.0, mean)
    assert_allclose(Gamma().deviance(positive, mean).mean(), mean_gamma_deviance(positive, mean))
    lik, counts = NegativeBinomial(1.7), y + 1.0
    gap = lik.log_prob(counts, np.log(counts)) - lik.log_prob(counts, np.log(mean))
    assert_allclose(lik.deviance(counts, mean), 2.0 * gap, rtol=1e-9, atol=1e-12)
    assert np.all(lik.deviance(0.0 * mean, mean) > 0.0)
    assert_allclose(Gaussian().deviance(y, mean), (y - mean) ** 2)
    assert Probit().deviance(y, mean) is None


@pytest.mark.parametrize(
    ("lik", "y", "message"),
    [
        (
            Poisson(),
            [1.0, -1.0, 2.5],
            r"loss 'Poisson'.*and row 1 has -1.0 \(and 1",
        ),
        (Gamma(), [1.0, 0.0], "loss 'Gamma'.*positive numbers, and row 1 has 0.0"),
        (Ordinal((0.0, 1.0)), [0.0, 3.0], "loss 'Ordinal'.*from 0 to 2.*row 1 has 3.0"),
        (Logit(), [0.0, 1.0], "labels -1 or \\+1, and row 0"),
        (Censored(), [np.inf], "finite numbers"),
        (Poisson().power(0.5), [np.nan], "loss 'Poisson'"),
    ],
)
def test_targets_are_checked(lik, y, message):
    """The first wrong target is named, and what is expected."""
    with pytest.raises(ValueError, match=message):
        lik.check_targets(np.array(y))


def test_taken_from_the_targets():
    """Ordinal takes its thresholds from the shares, censored its limits from what piles up."""
    y = np.array([0.0, 0.0, 1.0, 3.0])
    found = Ordinal().fitted_to(y)
    assert found.n_classes == 4
    assert_allclose(found.cuts[0], stats.norm.ppf(2.0 / 4.5))
    assert found.fitted_to(np.array([0.0, 1.0])) == found
    weighted = Ordinal().fitted_to(np.array([0.0, 1.0]), np.array([3.0, 1.0]))
    assert_allclose(weighted.cuts, stats.norm.ppf([0.75]))
    with pytest.raises(ValueError, match="two or more classes"):
        Ordinal().fitted_to(np.zeros(3))
    assert Censored().fitted_to(np.array([0.0, 0.0, 1.0, 2.0])) == Censored(1.0, 0.0, math.inf)
    assert Censored(upper=1.5).fitted_to(np.array([0.0, 0.0, 3.0])) == Censored(1.0, 0.0, 1.5)
    assert Poisson().fitted_to(y) == Poisson()


@pytest.mark.parametrize("lik", [StudentT(3.0, 0.5), Censored(0.3, -1.0, 2.0)], ids=repr)
def test_other_units(lik):
    """Of rescaled targets and latent values it says the same, up to the density's own scale."""
    origin, scale, f = 5.0, 10.0, np.array([-2.0, 0.3, 4.0])
    moved = lik.in_units(origin, scale)
    assert_allclose(moved.bounds, lik.bounds - [[math.log(scale) * k] for k in powers(lik)])
    for y, density in ((0.7, 1.0), (-1.0, 0.0 if isinstance(lik, Censored) else 1.0)):
        got = moved.log_prob((y - origin) / scale, (f - origin) / scale)
        assert_allclose(got, lik.log_prob(y, f) + density * math.log(scale), rtol=1e-12)


def powers(lik):
    """Of the unit, in the parameters that are tuned."""
    return [2.0] if isinstance(lik, Censored) else [0.0, 1.0]


@pytest.mark.parametrize("wrong", [(1.0, 1.0), (2.0, 1.0), (math.nan,), (), 3.0, ("a",)])
def test_thresholds_must_increase(wrong):
    """Thresholds that are no increasing numbers are refused."""
    with pytest.raises(ValueError, match=r"thresholds|convert"):
        Ordinal(wrong)


def test_wrong_parameters():
    """Limits in the wrong order, too much label noise, and shapes that are not positive."""
    with pytest.raises(ValueError, match="less than upper"):
        Censored(lower=1.0, upper=1.0)
    for wrong in (0.0, 0.5, math.nan):
        with pytest.raises(ValueError, match="between 0 and 1/2"):
            NoisyProbit(wrong)
    for make in (NegativeBinomial, Gamma, StudentT, lambda x: StudentT(4.0, x), Censored):
        with pytest.raises(ValueError, match="positive and finite"):
            make(-1.0)


@pytest.mark.parametrize(
    "lik",
    [
        Censored(0.5, -0.4, 0.6),
        Ordinal((-1.0, 0.2, 0.9)),
        StudentT(2.5, 0.3),
    ],
    ids=repr,
)
def test_contract_of_other_parameters(lik):
    """The contract holds away from the defaults, and for rows at limits."""
    check_likelihood(lik)


def test_other_methods_refuse_what_is_not_log_concave():
    """Only the mixture serves it; the error names the remedy."""
    for lik in (StudentT(), NoisyProbit()):
        assert [name for name, cls in METHODS.items() if cls.serves(lik)] == ["mixture"]
        for name in set(METHODS) - {"mixture"}:
            with pytest.raises(ValueError, match=r"log-concave.*inference='mixture'"):
                check_offers(lik, method(name))
        with pytest.raises(ValueError, match="mixture"):
            lik.expected(1.0, Q)
        with pytest.raises(ValueError, match="not log-concave"):
            lik.power(0.5).tilted(1.0, Q)
    # A log-concave likelihood is a mixture of one part; the step is not smooth enough for it.
    check_offers(Gaussian(), Mixture())
    with pytest.raises(ValueError, match=r"mixture.*does not have"):
        check_offers(Step(), Mixture())


def hostile(seed):
    """A wide or narrow prior, gross outliers or wrong labels, and weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 40))
    x = rng.uniform(0.0, 5.0, n)
    amplitude, ell = 10 ** rng.uniform(-1.0, 3.0), 10 ** rng.uniform(-0.7, 0.7)
    K = amplitude**2 * (np.exp(-0.5 * (x[:, None] - x) ** 2 / ell**2) + 1e-6 * np.eye(n))
    f, weight = 3.0 * np.sin(2.0 * x), rng.choice([1.0, 2.0, 0.5, 10.0], n)
    if seed % 2:
        y = f + np.where(rng.random(n) < 0.2, rng.choice([5.0, 1e4]), 0.1 * rng.standard_t(2, n))
        lik = StudentT(float(rng.choice([1.0, 4.0, 30.0])), 10 ** rng.uniform(-2.0, 0.5))
    else:
        y = np.where(rng.random(n) < 0.1, -1.0, 1.0) * np.where(f > 0.0, 1.0, -1.0)
        lik = NoisyProbit(float(rng.choice([1e-5, 0.01, 0.2])))
    return Problem.of(lik, DensePrior(K), y, weight)


@pytest.mark.parametrize("seed", range(8))
def test_mixture_converges_on_hostile_problems(seed):
    """Wide priors, outliers of any size and wrong labels: it converges, and its slope is right."""
    problem = hostile(seed)
    fit = Mixture(tol=1e-9).fit(problem)
    assert fit.report.converged, fit.report.message
    K = problem.prior.K

    def value(h):
        moved = problem._replace(prior=DensePrior(K * np.exp(h)))
        return Mixture(tol=1e-9).fit(moved, fit.start).log_evidence

    terms = fit.grad_K() * K
    # Differences of fourth order over a residual of 1e-9.
    assert abs(terms.sum() - slope(value, 1e-3)) <= 1e-5 * np.abs(terms).sum()
    assert np.all(fit.start.sites.tau >= 0.0)


def test_mixture_forgives_an_outlier():
    """Moved ever further away, an outlier loses its say; its trust and label say so."""
    x = np.linspace(0.0, 4.0, 21)
    K = np.exp(-0.5 * (x[:, None] - x) ** 2)
    y = np.sin(x)
    clean = Mixture().fit(Problem.of(StudentT(4.0, 0.1), DensePrior(K), y)).posterior.mean
    y[10] += 1e3
    fit = Mixture().fit(Problem.of(StudentT(4.0, 0.1), DensePrior(K), y))
    trust = StudentT(4.0, 0.1).trust(y, fit.posterior.local().q)
    assert np.argmin(trust) == 10
    assert trust[10] < 1e-5
    assert_allclose(fit.posterior.mean, clean, atol=0.05)
    labels = np.where(x > 2.1, 1.0, -1.0)
    labels[3] = 1.0
    lik = NoisyProbit(0.05)
    fit = Mixture().fit(Problem.of(lik, DensePrior(25.0 * K), labels))
    wrong = lik.mislabelled(labels, fit.posterior.local().q)
    assert np.argmax(wrong) == 3
    assert wrong[3] > 0.9


def test_a_student_of_many_degrees_is_gaussian():
    """With ever more degrees of freedom the bound tends to the Gaussian evidence."""
    x = np.linspace(0.0, 4.0, 9)
    K, y = np.exp(-0.5 * (x[:, None] - x) ** 2), np.sin(x)
    exact = method("exact").fit(Problem.of(Gaussian(0.04), DensePrior(K), y)).log_evidence
    found = Mixture().fit(Problem.of(StudentT(1e8, 0.2), DensePrior(K), y)).log_evidence
    assert_allclose(found, exact, rtol=1e-6)


def test_variational_rates_under_a_wide_prior():
    """Where the first sites would be e^32, the bound is found by steps that raise it."""
    rng = np.random.default_rng(0)
    x = np.repeat(rng.standard_normal(5), 3)
    K = 64.0 * np.exp(-0.5 * (x[:, None] - x) ** 2)
    y = targets("counts", 15, rng)
    fit = Variational().fit(Problem.of(Poisson(), DensePrior(K), y))
    assert fit.report.converged
    assert np.isfinite(fit.log_evidence)


def test_censored_rows_count_in_every_method():
    """The contract of the methods holds with rows at the limits."""
    A = np.random.default_rng(0).standard_normal((6, 6))
    y = np.array([-0.5, 0.2, 0.7, 0.7, 0.0, -0.5])
    for name in ("ep", "laplace", "variational"):
        check_inference(method(name), Censored(0.5, -0.5, 0.7), A @ A.T + np.eye(6), y)


@pytest.mark.parametrize(
    "lik",
    [
        *(REGISTRY[name]() for name in REGISTRY),
        Ordinal((-1.0, 0.5)),
        Censored(0.5, 0.0, math.inf, "fixed"),
        StudentT(3.0, scale_bounds="fixed"),
    ],
    ids=repr,
)
def test_storage(lik):
    """Every likelihood comes back from JSON as it was."""
    found = likelihood_from_json(json.loads(json.dumps(likelihood_to_json(lik))))
    assert repr(found) == repr(lik)


@pytest.mark.parametrize(
    "parameters",
    [
        {"thresholds": [1.0, 0.0]},
        {"thresholds": ["a"]},
        {"thresholds": "fixed"},
        {"thresholds_bounds": 3.0},
        {"thresholds_bounds": "free"},
        {"thresholds_bounds": [2.0, 1.0]},
        {"thresholds_bounds": [1.0]},
        {"shape": 1.0},
    ],
)
def test_stored_nonsense_is_refused(parameters):
    """Parameters of the wrong kind or order are refused when they are read."""
    with pytest.raises(StorageError):
        likelihood_from_json({"likelihood": "ordinal", "parameters": parameters})


def test_unknown_means_are_said_to_be():
    """A likelihood that does not say how its targets respond says that."""

    class Silent(Likelihood):
        support = "reals"

        def log_prob(self, y, f):
            return -((y - f) ** 2)

        def derivatives(self, y, f):
            return 2.0 * (y - f), 0.0 * f - 2.0, 0.0 * f

        def sample(self, f, rng):
            return f

    for what in (Silent().mean, Silent().variance, lambda f: Silent().cdf(0.0, f)):
        with pytest.raises(ValueError, match="does not say"):
            what(F)
