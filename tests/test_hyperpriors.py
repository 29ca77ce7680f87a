"""Prior densities of hyperparameters, the integrated evidence, and tuning without a row."""

import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, WhiteKernel

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.estimators import process
from cavity.evidence import (
    Evidence,
    Hierarchy,
    Hyperprior,
    LogNormal,
    NormalPrior,
    integrate,
    integrated,
    posterior_at,
    respond,
    tied,
    tune,
)
from cavity.evidence.ladder import climb
from cavity.evidence.objective import Objective
from cavity.evidence.response import _slopes
from cavity.inference import EP, Exact
from cavity.kernels import rule
from cavity.likelihoods import Gaussian, Probit
from cavity.sites import Marginals


class Cauchy(Hyperprior):
    """A density of a user's own."""

    def log_density(self, theta):
        return float(-np.sum(np.log1p(theta**2)))

    def gradient(self, theta):
        return -2.0 * theta / (1.0 + theta**2)

    def curvature(self, theta):
        return np.diag(2.0 * (1.0 - theta**2) / (1.0 + theta**2) ** 2)


def table(n=40, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.where(np.sin(2.0 * X[:, 0]) + 0.7 * rng.standard_normal(n) > 0, 1.0, -1.0)


def evidence(kernel=None, n=40, d=2):
    X, y = table(n, d)
    kernel = 2.0 * RBF(np.ones(d)) if kernel is None else kernel
    return Evidence.of(rule(kernel), X, [y], Probit(), EP(tol=1e-9), np.ones(n))


PRIORS = [
    NormalPrior(np.array([0.3, -0.2]), np.array([[1.0, 0.5, 0.0], [1.0, 0.0, 0.5]])),
    LogNormal({"length_scale": (2.0, 0.7)}).of(rule(1.0 * RBF(1.0))),
    Hierarchy.of(rule(RBF([1.0, 1.0])), np.array([1.0, 3.0]), 4.0).at(0.4),
    Cauchy(),
]


@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: type(prior).__name__)
def test_gradient_and_curvature_are_derivatives(prior):
    """Gradient and curvature of every density agree with differences of its logarithm."""
    theta, h = np.array([0.8, -0.5]), 1e-4
    steps = h * np.eye(2)
    slope = [(prior.log_density(theta + s) - prior.log_density(theta - s)) / (2 * h) for s in steps]
    curve = [(prior.gradient(theta - s) - prior.gradient(theta + s)) / (2 * h) for s in steps]
    # Central differences of smooth functions: an error of order h².
    np.testing.assert_allclose(prior.gradient(theta), slope, atol=1e-6)
    np.testing.assert_allclose(prior.curvature(theta), curve, atol=1e-6)


def test_normal_density_is_normalised():
    """The density of correlated hyperparameters integrates to one."""
    prior, x = PRIORS[0], np.linspace(-9.0, 9.0, 181)
    total = sum(np.exp(prior.log_density(np.array([a, b]))) for a in x for b in x)
    assert total * (x[1] - x[0]) ** 2 == pytest.approx(1.0, abs=1e-6)


def test_spread_zero_ties_length_scales():
    """At spread zero all length scales move together, in units of their inputs."""
    hierarchy = Hierarchy.of(rule(RBF([1.0, 1.0, 1.0])), np.array([1.0, 10.0, 0.1]), 1.0)
    prior = hierarchy.at(0.0)
    assert prior.factor.shape == (3, 1)
    moved = np.exp(prior.theta(np.array([0.7])))
    np.testing.assert_allclose(moved / moved[0], [1.0, 10.0, 0.1])


def test_integrated_evidence_is_the_integral():
    """Laplace's method agrees with a sum over a grid of amplitude and length scale."""
    found = evidence(2.0 * RBF(1.0), n=60)
    hierarchy = Hierarchy.of(found.rule, np.ones(2), 4.0)
    tuned = tied(found, hierarchy)
    prior = hierarchy.at(0.0)
    z = np.linspace(-3.5, 3.5, 29)
    with np.errstate(all="ignore"):  # far out, the inference may overflow on its way
        values = [[found.at(prior.theta(np.array([a, b]))).value for a in z] for b in z]
    weight = np.exp(-0.5 * (z[:, None] ** 2 + z**2)) / (2.0 * np.pi) * (z[1] - z[0]) ** 2
    exact = np.log(np.sum(np.exp(np.array(values) - tuned.log_evidence) * weight))
    # The posterior of two hyperparameters from 60 labels is skewed: a fifth of a nat.
    assert abs(exact) < 0.2


def test_curvature_is_the_second_derivative():
    """H agrees with second differences of the log evidence."""
    found = evidence()
    theta, h = np.log([3.0, 1.0, 2.0]), 0.02
    H = posterior_at(found.at(theta), NormalPrior(theta, np.eye(3))).curvature
    steps = h * np.eye(3)
    value = {}
    for i in range(3):
        for j in range(3):
            corners = [
                a * b * found.at(theta + a * steps[i] + b * steps[j]).value
                for a in (1, -1)
                for b in (1, -1)
            ]
            value[i, j] = -sum(corners) / (4 * h * h)
    # One-sided differences of gradients: an error of order h.
    expected = np.array([[value[i, j] for j in range(3)] for i in range(3)])
    np.testing.assert_allclose(H, expected, atol=0.03 * np.abs(expected).max())


def test_response_is_that_of_tuning_without_the_row():
    """Leave-one-out after tuning agrees with tuning again without each row."""
    n = 60
    X, y = table(n)
    whole = Evidence.of(rule(2.0 * RBF(np.ones(2))), X, [y], Probit(), EP(), np.ones(n))
    hierarchy = Hierarchy.of(whole.rule, np.ones(2), 4.0)
    prior = hierarchy.at(0.0)
    found = respond(tied(whole, hierarchy).posterior)
    said = Probit().tilted(y, found.cavities[0]).log_z
    fixed = tied(whole, hierarchy).posterior.evaluation.fits[0].loo_log_prob()
    truth = []
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        part = Evidence.of(whole.rule, X[rest], [y[rest]], Probit(), EP(), np.ones(n - 1))
        fit = tied(part, Hierarchy(hierarchy.names, prior.mean)).posterior.evaluation.fits[0]
        truth.append(Probit().tilted(y[i : i + 1], fit.posterior.at(X[i : i + 1])).log_z[0])
    optimism = np.mean(fixed) - np.mean(truth)
    assert optimism > 0.0
    # The first order removes most of the optimism, and the rows agree one by one.
    assert abs(np.mean(said) - np.mean(truth)) < 0.4 * optimism + 1e-3
    assert np.corrcoef(said - fixed, np.array(truth) - fixed)[0, 1] > 0.9


def test_many_irrelevant_inputs_are_found_out():
    """With one real input among twenty, the spread grows and the real input is the shortest."""
    X, y = table(120, 20, seed=3)
    found = Evidence.of(rule(2.0 * RBF(np.ones(20))), X, [y], Probit(), EP(), np.ones(120))
    tuned = integrate(found, Hierarchy.of(found.rule, X.std(axis=0), 4.0))
    assert tuned.spread > 0.3
    assert np.argmin(tuned.posterior.theta[1:]) == 0
    assert tuned.log_evidence == max(tried.log_evidence for tried in tuned.tried)


@pytest.mark.parametrize(
    "kernel", [1.0 * Matern([1.0, 1.0], nu=1.5), 1.0 * DotProduct(), RBF(1.0) + WhiteKernel()]
)
@pytest.mark.parametrize("prior", ["hierarchical", LogNormal({"noise_level": (0.1, 1.0)})])
def test_estimators_take_hyperpriors(kernel, prior):
    """Both estimators tune under a hyperprior, whatever the kernel."""
    X, y = table()
    clf = GaussianProcessClassifier(kernel, hyperprior=prior).fit(X, y)
    reg = GaussianProcessRegressor(kernel, alpha=0.1, hyperprior=prior).fit(X, X[:, 0] + 0.1 * y)
    assert clf.loo_proba_.shape == (40, 2)
    assert np.isfinite(reg.loo_std_).all()


def test_own_density_is_added_to_the_evidence():
    """With a user's own density, tuning ends where the sum's gradient vanishes."""
    X, y = table()
    prior = Cauchy()
    clf = GaussianProcessClassifier(1.0 * RBF(1.0), hyperprior=prior).fit(X, y)
    theta = clf.kernel_.theta
    _, slope = clf.log_marginal_likelihood(theta, eval_gradient=True)
    # The search stops at a gain of about 1e-6.
    np.testing.assert_allclose(slope + prior.gradient(theta), 0.0, atol=0.01)


def test_hyperprior_and_weights():
    """A row of weight two is a row given twice, under the hierarchical prior too."""
    X, y = table(30)
    options = {"kernel": 1.0 * RBF([1.0, 1.0]), "hyperprior": "hierarchical"}
    weight = np.where(np.arange(30) < 5, 2.0, 1.0)
    weighted = GaussianProcessClassifier(**options).fit(X, y, weight)
    twice = GaussianProcessClassifier(**options).fit(np.r_[X, X[:5]], np.r_[y, y[:5]])
    # The spread of the inputs, the centre of the prior, is that of the distinct rows.
    np.testing.assert_allclose(weighted.predict_proba(X), twice.predict_proba(X), atol=1e-3)


def test_several_targets_share_the_response():
    """Targets that share a kernel are left out of its tuning together."""
    X, _ = table()
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1]]) + 0.1
    reg = GaussianProcessRegressor(1.0 * RBF(1.0), alpha=0.05, hyperprior="hierarchical")
    assert reg.fit(X, Y).loo_mean_.shape == (40, 2)


def test_averaging_over_hyperparameters():
    """Averaged predictions are less certain than those at the best hyperparameters."""
    X, y = table(25)
    kernel = 1.0 * RBF(1.0)
    options = {"hyperprior": "hierarchical", "random_state": 0}
    plain = GaussianProcessClassifier(kernel, **options).fit(X, y)
    mixed = GaussianProcessClassifier(kernel, average_hyperparameters=8, **options).fit(X, y)
    _, before = plain.latent_mean_and_variance(X + 0.1)
    _, after = mixed.latent_mean_and_variance(X + 0.1)
    assert np.mean(after) > np.mean(before)
    assert mixed.loo_proba_.shape == (25, 2)


def test_averaged_regression():
    """Mean, deviation and covariance of averaged predictions fit together."""
    X, _ = table(25)
    options = {"alpha": 0.1, "hyperprior": "hierarchical", "average_hyperparameters": 4}
    reg = GaussianProcessRegressor(1.0 * RBF(1.0), random_state=0, **options)
    mean, std = reg.fit(X, np.sin(X[:, 0])).predict(X[:5], return_std=True)
    again, cov = reg.predict(X[:5], return_cov=True)
    np.testing.assert_allclose(mean, again)
    np.testing.assert_allclose(std**2, np.diag(cov), rtol=1e-8)


def test_fixed_kernel_has_nothing_to_correct():
    """Without tuning, leave-one-out is that at the fixed kernel."""
    X, y = table()
    clf = GaussianProcessClassifier(2.0 * RBF(1.0), optimizer=None).fit(X, y)
    np.testing.assert_array_equal(clf.loo_proba_, clf.fixed_kernel_loo_proba_)
    assert clf.loo_is_believable_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "auto", "optimizer": None}, "own search"),
        ({"kernel": "auto", "hyperprior": LogNormal({})}, "hierarchical prior"),
        (
            {"kernel": RBF(1.0), "hyperprior": "hierarchical", "optimizer": lambda *a, **k: None},
            "own search",
        ),
        ({"kernel": RBF(1.0), "hyperprior": LogNormal({"length_scale": (0, 1)})}, "positive"),
        ({"kernel": RBF(1.0), "hyperprior": "flat"}, "hyperprior"),
        ({"kernel": RBF(1.0), "average_hyperparameters": -1}, "average_hyperparameters"),
    ],
)
def test_contradictions_are_refused(options, message):
    """Parameters that contradict each other get an error that says what to do."""
    X, y = table()
    with pytest.raises(ValueError, match=message):
        GaussianProcessClassifier(**options).fit(X, y)


@pytest.mark.filterwarnings("ignore:The optimal value")
def test_thousands_of_hyperparameters_are_not_looked_along_one_by_one(monkeypatch):
    """Beyond the limit leave-one-out says that it is too good, and the rest says why not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 6))
    y = (X[:, 0] + rng.normal(size=25) > 0).astype(int)
    count, at = [], Evidence.at
    monkeypatch.setattr(integrated, "MOST_DIRECTIONS", 4)
    monkeypatch.setattr(process, "MOST_DIRECTIONS", 4)
    model = GaussianProcessClassifier(1.0 * RBF([1.0] * 6)).fit(X, y)
    monkeypatch.setattr(Evidence, "at", lambda *args: (count.append(1), at(*args))[1])
    with pytest.warns(UserWarning, match="too many of them"):
        loo = model.loo_proba_
    np.testing.assert_array_equal(loo, model.fixed_kernel_loo_proba_)
    assert not count
    tied = GaussianProcessClassifier(1.0 * RBF([1.0] * 6), hyperprior="hierarchical").fit(X, y)
    scales = tied.kernel_.k2.length_scale / X.std(axis=0)
    np.testing.assert_allclose(scales, scales[0], rtol=1e-6)
    assert np.all(np.isfinite(tied.loo_proba_))
    with pytest.raises(ValueError, match="6 hyperparameters takes an evaluation"):
        GaussianProcessClassifier(1.0 * RBF([1.0] * 6), average_hyperparameters=4).fit(X, y)


def test_integrated_evidence_under_a_density_of_ones_own():
    """Laplace's method agrees with a sum over a grid of length scales, whatever the prior."""
    whole, prior = evidence(RBF(1.0), n=60), Cauchy()
    theta = np.linspace(-4.0, 4.0, 401)
    heights = [whole.at(np.array([t])).value + prior.log_density(np.array([t])) for t in theta]
    at = whole.at(theta[[np.argmax(heights)]])
    exact = np.log(np.sum(np.exp(np.array(heights) - np.max(heights))) * 0.02) + np.max(heights)
    # The posterior of a length scale from 60 labels is skewed: a tenth of a nat.
    assert posterior_at(at, prior).log_evidence == pytest.approx(exact, abs=0.1)


def test_one_length_scale_has_no_spread():
    """Only length scales that can differ have an own part; one moves with its level alone."""
    one = Hierarchy.of(rule(RBF(1.0)), None, 1.0)
    assert not one.has_spread
    assert one.at(0.5).factor.shape == one.at(0.0).factor.shape == (1, 1)
    several = Hierarchy.of(rule(RBF([1.0, 1.0])), np.ones(2), 1.0)
    assert several.has_spread
    assert several.at(0.5).factor.shape == (2, 3)


def test_what_is_usable():
    """An inference that stopped near a solution may guide a search; one that is far off may not."""
    at = evidence().at(np.log([2.0, 1.0, 1.0]))
    for converged, residual, usable in (
        (True, 0.0, True),
        (True, 1.0, True),
        (False, 1e-3, True),
        (False, 1.0, False),
    ):
        report = at.fits[0].report._replace(converged=converged, residual=residual)
        fits = [replace(at.fits[0], report=report)]
        assert replace(at, fits=fits).usable is usable


def test_climbing_ends_at_a_bound():
    """From elsewhere a climb finds the optimum within the bounds, says at which, and how long."""
    whole = evidence(2.0 * RBF(1.0, length_scale_bounds=(0.1, 0.3)), n=60)
    begin = time.perf_counter()
    found = climb(whole, np.log([2.0, 0.2]), np.eye(2))
    assert 0.0 < found.seconds <= time.perf_counter() - begin
    assert found.theta[1] == np.log(0.3)
    assert len(found.at_bounds) == 1
    assert found.trusted
    best = max(whole.at(np.array([a, np.log(0.3)])).value for a in np.linspace(-3.0, 5.0, 161))
    # Nats that are not worth another evaluation.
    assert found.value == pytest.approx(best, abs=0.02)


def test_a_search_of_which_nothing_is_usable():
    """Where no inference comes near a solution the best of them is kept, and not trusted."""
    X, y = table(40)
    kernel = rule(1e4 * RBF([1.0, 1.0]))
    short = Evidence.of(kernel, X, [y], Probit(), EP(tol=1e-9, max_iter=1), np.ones(40))
    search = Objective(short, None)
    search(kernel.theta)
    assert search.succeeded
    assert not search.best.usable
    np.testing.assert_array_equal(search.best.theta, kernel.theta)


def test_weights_take_part_in_the_tuning_as_copies():
    """Without one copy of a row, tuning moves as without one of so many equal rows."""
    X, y = table(30)
    weight = np.where(np.arange(30) < 6, 3.0, 1.0)
    rows = np.repeat(np.arange(30), weight.astype(int))
    one = Evidence.of(rule(2.0 * RBF(1.0)), X, [y], Probit(), EP(tol=1e-10), weight)
    many = Evidence.of(one.rule, X[rows], [y[rows]], Probit(), EP(tol=1e-10), np.ones(len(rows)))
    theta = np.log([2.0, 1.2])
    prior = NormalPrior(theta, np.eye(2))
    found, whole = (respond(posterior_at(e.at(theta), prior)) for e in (one, many))
    # Equal sites, each solved to the tolerance, divided by a step of .02.
    np.testing.assert_allclose(found.leverage[rows], whole.leverage, rtol=1e-5)
    for part, other in zip(found.cavities[0], whole.cavities[0], strict=True):
        np.testing.assert_allclose(part[rows], other, rtol=1e-5, atol=1e-6)


def test_covariance_is_the_inverse_curvature():
    """Of θ, given a share of the rows: the inverse of their curvature and the prior's."""
    [best] = tune([evidence(2.0 * RBF(1.0), n=60)])
    prior = NormalPrior(best.theta, np.diag([1.0, 0.5]))
    found = posterior_at(evidence(2.0 * RBF(1.0), n=60).at(best.theta), prior)
    assert found.whitened[0][0] > 0.0
    precision = np.diag([1.0, 4.0])
    for share in (1.0, 0.25):
        exact = np.linalg.inv(share * found.curvature + precision)
        np.testing.assert_allclose(found.covariance(share), exact, rtol=1e-9)


def test_slopes_of_a_gaussian_row():
    """Slopes of log p(y) in its cavity's mean and log variance, and their bends, by differences."""
    X, y = table(12)
    fit = (
        Evidence.of(rule(2.0 * RBF(1.0)), X, [y], Gaussian(0.3), Exact(), np.ones(12))
        .at(np.log([2.0, 1.0]))
        .fits[0]
    )
    a, W = _slopes(fit)
    c, h = fit.cavities, 1e-3

    def log_p(m, v):
        return Gaussian(0.3).tilted(y, Marginals(c.mean + m, c.variance * np.exp(v))).log_z

    steps = [(h, 0.0), (0.0, h)]
    up, down = ([log_p(s * m, s * v) for m, v in steps] for s in (1.0, -1.0))
    np.testing.assert_allclose(a.T, (np.array(up) - down) / (2.0 * h), rtol=1e-5, atol=1e-6)
    bend = np.maximum((2.0 * log_p(0.0, 0.0) - up - down) / h**2, 0.0)
    # Differences of differences: rounding over the square of the step.
    np.testing.assert_allclose(np.einsum("nkk->kn", W), bend, rtol=1e-3, atol=1e-5)
