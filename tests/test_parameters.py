"""Parameters of likelihoods, offsets and trends, tuned with the kernel's hyperparameters."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from cavity.arrays.differences import slope
from cavity.evidence import Evidence, LogNormal, tune
from cavity.inference import EP, Laplace, Naive, Variational
from cavity.kernels import rule
from cavity.likelihoods import Gaussian, Likelihood, Logit, Powered, Probit, Shifted, Trend
from cavity.priors import InducingPrior
from cavity.rows import MemoryBlocks
from cavity.sites import Marginals, Rows
from cavity.testing import check_likelihood

RNG = np.random.default_rng(3)
X = RNG.normal(size=(9, 2))
Y = np.where(X[:, 0] + RNG.normal(size=9) > 0.0, 1.0, -1.0)
OFFSET = RNG.normal(size=9)
WEIGHT = 1.0 + np.arange(9) % 2
KERNEL = 2.0 * RBF([1.0, 2.0])


@dataclass(frozen=True)
class Sharp(Likelihood):
    """A probit with a steepness, as a user would write it."""

    steepness: float = 1.3
    steepness_bounds: tuple[float, float] | str = (0.1, 10.0)

    tunes = ("steepness",)

    @property
    def _probit(self):
        return Probit(self.steepness**-2)

    def log_prob(self, y, f):
        return self._probit.log_prob(y, f)

    def derivatives(self, y, f):
        return self._probit.derivatives(y, f)

    def tilted(self, y, c):
        return self._probit.tilted(y, c)

    def sample(self, f, rng):
        return self._probit.sample(f, rng)


def evidence(likelihood, method, couple=None, rows=None):
    found = Evidence.of(rule(KERNEL), X, [Y], likelihood, method, WEIGHT)
    return found if couple is None else replace(found, couple=couple, rows=[rows or found.rows[0]])


def differences(ev, theta):
    """Return the slopes of an evidence by differences of fourth order."""
    along = [partial(lambda e, h: ev.at(theta + h * e).value, e) for e in np.eye(len(theta))]
    return [slope(value, 1e-3) for value in along]


METHODS = [EP(tol=1e-11), Laplace(), Variational(tol=1e-11), Naive()]
SHIFTED = Shifted.rows(Sharp(), X, OFFSET, Trend.of(X))


@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{m.name}{getattr(m, 'power', '')}")
def test_slopes_in_a_likelihoods_parameters(method):
    """The gradient in kernel, likelihood and trend is the slope of the evidence."""
    ev = evidence(SHIFTED, method)
    theta = ev.theta + 0.1
    # Differences keep about nine digits of evidences of order ten.
    assert_allclose(ev.at(theta).gradient, differences(ev, theta), rtol=1e-6, atol=2e-7)


@pytest.mark.parametrize("method", [EP(tol=1e-11), Laplace(tol=1e-11)], ids=lambda m: m.name)
def test_slopes_with_inducing_points_in_blocks(method):
    """So it is with inducing points, with rows in blocks that take their own offsets."""
    couple = partial(InducingPrior.of, Z=X[:4])
    blocks = MemoryBlocks(Rows(Y, WEIGHT, X), 4)
    ev, whole = (evidence(SHIFTED, method, couple, rows) for rows in (blocks, None))
    theta = ev.theta + 0.1
    found = ev.at(theta)
    assert_allclose(found.gradient, differences(ev, theta), rtol=1e-6, atol=1e-6)
    # Both iterate to a residual of 1e-11.
    assert_allclose(found.value, whole.at(theta).value, rtol=1e-9)


def test_names_and_bounds_follow_the_kernels():
    """Hyperparameters are the kernel's, then the likelihood's, then the trend's."""
    ev = evidence(SHIFTED, EP())
    assert ev.names[3:] == [
        "likelihood__steepness",
        "mean__intercept",
        "mean__slope[0]",
        "mean__slope[1]",
    ]
    assert ev.theta.shape == (7,)
    assert ev.bounds.shape == (7, 2)
    moved = ev.with_theta(np.arange(7.0))
    assert_allclose(moved.theta, np.arange(7.0), rtol=1e-12)
    assert LogNormal({"steepness": (3.0, 0.5)}).of(ev).mean[3] == pytest.approx(np.log(3.0))


def test_fixed_parameters_stay():
    """A parameter whose bounds are "fixed" is none of the hyperparameters."""
    fixed = Sharp(2.0, "fixed")
    assert fixed.names == []
    assert evidence(fixed, EP()).theta.shape == (3,)


def test_tuning_finds_the_maximum_in_all_parameters():
    """Where tuning ends, the evidence has no slope in any parameter that is free."""
    y = X @ np.array([1.0, -2.0]) + 3.0 + 0.1 * RNG.normal(size=9)
    likelihood = Shifted.rows(Gaussian(0.01), X, 0.0, Trend.of(X))
    ev = Evidence.of(rule(RBF(1.0) + WhiteKernel(0.1)), X, [y], likelihood, EP(), np.ones(9))
    [best] = tune([ev])
    steps = np.abs(ev.at(best.theta).gradient)
    inside = np.all(np.abs(best.theta[:, None] - ev.bounds) > 1e-3, axis=1)
    # The search stops at a slope of 2e-4 in its own coordinates, or a tiny gain.
    assert np.all(steps[inside] < 0.05)
    trend = ev.with_theta(best.theta).likelihood.trend
    # Least squares on a noise of 0.1 and nine rows.
    assert_allclose(trend.slopes, [1.0, -2.0], atol=0.2)


def test_a_shift_moves_the_latent_values():
    """A shifted likelihood is the likelihood itself at f plus the shift, for every question."""
    base, moved = Logit(), Shifted(Logit(), OFFSET)
    c = Marginals(X[:, 0], np.exp(X[:, 1]))
    there = Marginals(c.mean + OFFSET, c.variance)
    for name in ("tilted", "expected", "cumulants"):
        pairs = zip(getattr(moved, name)(Y, c), getattr(base, name)(Y, there), strict=True)
        for got, truth in pairs:
            assert_allclose(got, truth, rtol=1e-14)
    part = moved.subset(slice(3, 6))
    assert_allclose(part.log_prob(Y[3:6], c.mean[3:6]), moved.log_prob(Y, c.mean)[3:6])
    assert_allclose(moved.power(0.5).log_prob(Y, c.mean), 0.5 * moved.log_prob(Y, c.mean))
    assert Shifted(Probit(), OFFSET).with_noise(1.0).base == Probit(2.0)
    assert moved.bare == base


def test_an_offset_is_a_known_mean_of_the_target():
    """With Gaussian noise an offset is the same as subtracting it from the targets."""
    shifted, plain = Shifted(Gaussian(0.3), OFFSET), Gaussian(0.3)
    a = Evidence.of(rule(KERNEL), X, [Y], shifted, EP(), np.ones(9)).at(rule(KERNEL).theta)
    b = Evidence.of(rule(KERNEL), X, [Y - OFFSET], plain, EP(), np.ones(9)).at(rule(KERNEL).theta)
    # The same solution by two sums.
    assert_allclose(a.value, b.value, rtol=1e-12)
    assert_allclose(a.gradient, b.gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("lik", [Shifted(Probit(), 0.7), Shifted(Sharp(), -0.4)])
def test_contract_of_shifted_likelihoods(lik):
    """A likelihood with one offset keeps the public contract."""
    check_likelihood(lik)


def test_a_power_keeps_the_parameters():
    """A powered likelihood has the parameters of its base."""
    powered = Powered(Sharp(), 0.5)
    assert powered.names == ["likelihood__steepness"]
    assert powered.with_theta(np.log([2.0])).base.steepness == pytest.approx(2.0)
