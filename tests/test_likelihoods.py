"""The contract over the registry, and what else the likelihoods promise."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import gammaln

from cavity.arrays import to_numpy
from cavity.likelihoods import (
    REGISTRY,
    Gaussian,
    Likelihood,
    Logit,
    Powered,
    Probit,
    Step,
    likelihood,
    numerical,
)
from cavity.sites import Marginals, Moments
from cavity.testing import check_likelihood, targets

M, V = (x.ravel() for x in np.meshgrid([-40.0, -2.0, 0.0, 0.7, 9.0], [1e-3, 1.0, 50.0]))
C = Marginals(M, V)


@dataclass(frozen=True)
class Logistic(Likelihood):
    """Regression with logistic noise: no more than a user would write."""

    support = "reals"

    def log_prob(self, y, f):
        return Logit().log_prob(1.0, y - f) + Logit().log_prob(-1.0, y - f)

    def derivatives(self, y, f):
        e = np.tanh(0.5 * (y - f))
        return e, 0.5 * (e**2 - 1.0), 0.5 * e * (e**2 - 1.0)

    def sample(self, f, rng):
        return f + rng.logistic(size=f.shape)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_contract(name):
    """Every likelihood of the registry keeps the public contract."""
    check_likelihood(likelihood(name))


@pytest.mark.parametrize("lik", [Probit(0.09), Gaussian(4.0), Logistic()])
def test_contract_of_others(lik):
    """So do other parameters, and a likelihood that a user brings, on given targets and others."""
    check_likelihood(lik)
    check_likelihood(lik, [-1.0, 1.0])


@pytest.mark.parametrize("wrong", ["derivatives", "tilted", "expected", "sample", "cumulants"])
def test_contract_notices(wrong):
    """The contract fails for a likelihood with any one method off by a percent or so."""

    class Broken(Logit):
        pass

    def method(self, *args):
        result = getattr(Logit, wrong)(self, *args)
        if wrong == "sample":
            return np.where(args[1].random(result.shape) < 0.1, 1.0, result)
        scaled = [1.01 * part for part in result]
        return Moments(*scaled) if wrong in {"tilted", "expected"} else scaled

    setattr(Broken, wrong, method)
    with pytest.raises(AssertionError):
        check_likelihood(Broken())


def answers(lik, y, c):
    """Everything that a likelihood has to say about some labels and Gaussians."""
    parts = [*lik.tilted(y, c), *lik.cumulants(y, c), lik.log_prob(y, c.mean)]
    if "derivatives" in lik.offers:
        parts += lik.derivatives(y, c.mean)
    if "expected" in lik.offers:
        parts += lik.expected(y, c)
    return parts


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
@pytest.mark.parametrize("lik", [*map(likelihood, REGISTRY), Logit().power(0.5)], ids=repr)
def test_other_arrays(lik, library):
    """Every answer is the same, and an array of the same library, for every array library."""
    xp = pytest.importorskip(library)
    y = targets(lik.support, M.size, np.random.default_rng(2))
    other = answers(lik, xp.asarray(y), Marginals(xp.asarray(M), xp.asarray(V)))
    for got, truth in zip(other, answers(lik, y, C), strict=True):
        assert type(got) is type(xp.asarray(M))
        # Sums in another order, and special functions by other authors.
        assert_allclose(to_numpy(got), truth, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_extremes(name):
    """Nothing warns or turns into NaN for means and variances of any size."""
    lik = likelihood(name)
    # The logarithm of a rate cannot be of any size: its exponential overflows.
    largest = 1e150 if lik.support in {"signs", "reals"} else 100.0
    sizes = np.array([1e-150, 1e-6, 1.0, 1e3, 1e150])
    sizes = sizes[sizes <= largest]
    m, v = (x.ravel() for x in np.meshgrid(np.concatenate([-sizes, [0.0], sizes]), sizes))
    for y in np.unique(targets(lik.support, 9, np.random.default_rng(3))):
        assert np.all(np.isfinite(lik.tilted(y, Marginals(m, v))))
        if "expected" in lik.offers:
            assert np.all(np.isfinite(lik.expected(y, Marginals(m, v))))
            assert np.all(np.isfinite(lik.derivatives(y, m)))
    for f in (-1e4 * largest, 1e4 * largest):
        with np.errstate(over="ignore"):
            moments = lik.tilted(1.0, Marginals(np.array([f]), np.array([1e-6])))
        assert not np.any(np.isnan(moments))


@pytest.mark.parametrize("lik", [Probit(), Logit(), Gaussian(), Logistic()], ids=repr)
def test_no_variance(lik):
    """Under a Gaussian of no width the moments are the log density and its derivatives."""
    point = Marginals(M, 0.0 * M)
    truth = (lik.log_prob(1.0, M), *lik.derivatives(1.0, M)[:2])
    for moments in (lik.tilted(1.0, point), lik.expected(1.0, point)):
        for got, true in zip(moments, truth, strict=True):
            # The defaults multiply the slope's rounding at M = −40 by itself.
            assert_allclose(got, true, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("name", ["probit", "logit", "step"])
def test_probabilities_sum_to_one(name):
    """The two labels' predictive probabilities are complementary."""
    p = sum(np.exp(likelihood(name).tilted(y, C).log_z) for y in (-1.0, 1.0))
    assert_allclose(p, 1.0, rtol=1e-14)


def test_any_shape():
    """Marginals may have any shape, and one label may serve for all."""
    for lik in (Probit(), Logit(), Logistic()):
        grid = Marginals(M.reshape(3, 5), V.reshape(3, 5))
        for flat, shaped in zip(answers(lik, 1.0, C), answers(lik, 1.0, grid), strict=True):
            assert shaped.shape == (3, 5)
            assert_allclose(shaped.ravel(), flat, rtol=1e-13)


def test_latent_noise():
    """A probit is a step on a latent value with its noise added; logit and step have none."""
    s2 = Probit(0.3).noise_variance
    assert_array_equal(Step().tilted(1.0, Marginals(M, V + s2)), Probit(0.3).tilted(1.0, C))
    assert Gaussian(0.3).noise_variance == 0.3
    assert Logit().noise_variance == Step().noise_variance == 0.0


def test_subset():
    """Parameters that differ between examples follow them; powers do, too."""
    noise, eta = np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.6, 0.7])
    y, q, one = np.array([1.0, -1.0, 1.0]), Marginals(M[:3], V[:3]), slice(1, 2)
    for lik in (Gaussian(noise), Gaussian(0.2), Powered(Probit(), eta), Logit()):
        whole = lik.tilted(y, q).log_z[one]
        part = lik.subset(one).tilted(y[one], Marginals(*(part[one] for part in q))).log_z
        assert_allclose(part, whole, rtol=1e-12)


def test_symmetric_likelihoods_are():
    """What claims to be symmetric gives flipped labels and latent values equal probabilities."""
    for lik in (Probit(), Logit(), Step()):
        assert lik.symmetric
        assert_array_equal(lik.tilted(-1.0, Marginals(-M, V)).log_z, lik.tilted(1.0, C).log_z)
    assert not Gaussian().symmetric


def test_support():
    """A likelihood names what its targets are, a power passes it on; other names are refused."""
    assert {name: likelihood(name).support for name in ("probit", "logit", "step")} == {
        "probit": "signs",
        "logit": "signs",
        "step": "signs",
    }
    assert Gaussian().support == Gaussian().power(0.5).support == "reals"
    assert Powered(Logistic(), 0.5).support == "reals"
    with pytest.raises(ValueError, match="'counts', 'positive', 'reals', got 'labels'"):
        targets("labels", 3, np.random.default_rng(0))


@dataclass(frozen=True)
class Rates(Likelihood):
    """Counts with rate e^f."""

    support = "counts"

    def log_prob(self, y, f):
        return y * f - np.exp(f) - gammaln(y + 1.0)

    def derivatives(self, y, f):
        return y - np.exp(f), -np.exp(f), -np.exp(f)

    def sample(self, f, rng):
        return rng.poisson(np.exp(f)).astype(float)


@dataclass(frozen=True)
class Exponential(Likelihood):
    """Waiting times with rate e^f."""

    support = "positive"

    def log_prob(self, y, f):
        return f - y * np.exp(f)

    def derivatives(self, y, f):
        return 1.0 - y * np.exp(f), -y * np.exp(f), -y * np.exp(f)

    def sample(self, f, rng):
        return rng.exponential(np.exp(-f))


@pytest.mark.parametrize("lik", [Rates(), Exponential()])
def test_contract_of_rates(lik):
    """Likelihoods of counts and of positive numbers keep the contract with nothing but defaults."""
    check_likelihood(lik)


def test_contract_notices_a_wrong_support():
    """What is sampled has to be what the support says."""

    class Wrong(Rates):
        support = "positive"

    with pytest.raises(AssertionError, match="not positive"):
        check_likelihood(Wrong())


def test_powers():
    """A power scales the log density, powers multiply, and closed forms agree with the wrapper."""
    half = Logit().power(0.5)
    assert_allclose(half.log_prob(1.0, M), 0.5 * Logit().log_prob(1.0, M), rtol=1e-15)
    assert half.power(3.0) == Powered(Logit(), 1.5)
    assert Step().power(0.5) == Step()
    for got, truth in zip(
        answers(Gaussian(0.3).power(0.4), 0.7, C),
        answers(Powered(Gaussian(0.3), 0.4), 0.7, C),
        strict=True,
    ):
        # The Gaussian's cumulants vanish; those of the wrapper are rounding, of order v².
        assert_allclose(got, truth, rtol=1e-9, atol=1e-9)


def test_powers_of_half_make_a_whole():
    """Two halves of a Gaussian density, one after the other, give the evidence of the whole."""
    lik = Gaussian(0.3).power(0.5)
    m, v = np.array([0.2]), np.array([1.7])
    first = numerical.tilted(lik, 0.7, Marginals(m, v))
    second = numerical.tilted(lik, 0.7, Marginals(m + v * first.d1, v + v**2 * first.d2))
    whole = Gaussian(0.3).tilted(0.7, Marginals(m, v)).log_z
    assert_allclose(first.log_z + second.log_z, whole, rtol=1e-9)


def test_refusals():
    """What a likelihood cannot do, it refuses with the reason."""
    with pytest.raises(ValueError, match=r"step.*jumps.*probit"):
        Step().derivatives(1.0, M)
    with pytest.raises(ValueError, match=r"step.*jumps.*probit"):
        Step().expected(1.0, C)
    with pytest.raises(ValueError, match="not normalised"):
        Powered(Logit(), 0.5).sample(M, np.random.default_rng(0))


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("make", [Probit, Gaussian, Logit().power, Gaussian().power])
def test_parameters(make, value):
    """Variances and powers must be positive and finite; a probit without noise is the step."""
    if make is Probit and value == 0.0:
        assert make(value) == Step()
        return
    with pytest.raises(ValueError, match="positive and finite"):
        make(value)


def test_resolver():
    """Names and objects resolve; anything else is told the names."""
    assert likelihood("probit") == Probit()
    lik = Gaussian(0.2)
    assert likelihood(lik) is lik
    assert repr(Probit(0.5)) == "Probit(noise_variance=0.5)"
    for unknown in ("probti", 3, None):
        with pytest.raises(ValueError, match=r"'gaussian', .*'probit'.*got"):
            likelihood(unknown)
