"""Limits in which a method is exact, or equal to another, or has nothing to say."""

import math
import warnings

import mpmath as mp
import numpy as np
import pytest
from common import CLASSIFYING
from sklearn.gaussian_process import GaussianProcessRegressor as Theirs
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.datasets import load_pima
from cavity.evidence import Evidence
from cavity.inference import EP, Ensemble, Exact, Problem, Sequential, Variational, method
from cavity.kernels import rule
from cavity.likelihoods import Gaussian, Logit, Probit, Step
from cavity.priors import DensePrior

N = 15
KERNEL = ConstantKernel(2.0) * RBF([0.8, 1.3])
NOISE = 0.3


@pytest.fixture(scope="module")
def data():
    """Inputs, real targets, labels and test inputs."""
    rng = np.random.default_rng(0)
    X, X_test = rng.normal(size=(N, 2)), rng.normal(size=(8, 2))
    t = np.sin(2.0 * X[:, 0]) + 0.5 * rng.normal(size=N)
    return X, t, np.where(t > 0.2, 1.0, -1.0), X_test


def fit(how, lik, K, y):
    found = how.fit(Problem.of(lik, DensePrior(K), y, np.ones(len(y))))
    assert found.report.converged, found.report.message
    return found


@pytest.mark.parametrize("name", ["laplace", "ep", "variational", "sequential"])
def test_gaussian_noise_is_exact(name, data):
    """With Gaussian noise mean, deviation, evidence and gradient are scikit-learn's."""
    X, t, _, X_test = data
    truth = Theirs(KERNEL, alpha=NOISE, optimizer=None).fit(X, t)
    mean, sd = truth.predict(X_test, return_std=True)
    how = method(name, tol=1e-11)
    found = fit(how, Gaussian(NOISE), KERNEL(X), t)
    predicted = found.posterior.predict(KERNEL(X_test, X), KERNEL.diag(X_test))
    np.testing.assert_allclose(predicted.mean, mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(np.sqrt(predicted.variance), sd, rtol=1e-8)
    value, gradient = truth.log_marginal_likelihood(KERNEL.theta, eval_gradient=True)
    assert found.log_evidence == pytest.approx(value, rel=1e-8)
    evidence = Evidence.of(rule(KERNEL), X, [t], Gaussian(NOISE), how, np.ones(N))
    # Without a gradient of its own the method takes differences of step 1e-4.
    rtol = 1e-8 if how.has_gradient else 1e-6
    got = evidence.at(KERNEL.theta).gradient
    np.testing.assert_allclose(got, gradient, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", ["laplace", "ep", "variational"])
def test_unequal_gaussian_noise_is_exact(name, data):
    """The same holds where every example has noise of its own."""
    X, t, _, X_test = data
    noise = np.linspace(0.1, 2.0, N)
    truth = Theirs(KERNEL, alpha=noise, optimizer=None).fit(X, t)
    found = fit(method(name, tol=1e-11), Gaussian(noise), KERNEL(X), t)
    predicted = found.posterior.predict(KERNEL(X_test, X), KERNEL.diag(X_test))
    np.testing.assert_allclose(predicted.mean, truth.predict(X_test), rtol=1e-8, atol=1e-8)
    assert found.log_evidence == pytest.approx(truth.log_marginal_likelihood_value_, rel=1e-8)


@pytest.mark.parametrize("name", ["ep", "ensemble", "naive", "sequential"])
@pytest.mark.parametrize("c", [1e-6, 50.0, 1e6])
def test_step_ignores_the_scale(name, c, data):
    """K → cK changes neither the step's evidence nor the sign of any prediction."""
    X, _, y, X_test = data
    K = KERNEL(X) + 0.1 * np.eye(N)
    here = fit(method(name, tol=1e-11), Step(), K, y)
    there = fit(method(name, tol=1e-11), Step(), c * K, y)
    assert here.log_evidence == pytest.approx(there.log_evidence, abs=1e-8)
    K_test = KERNEL(X_test, X)
    np.testing.assert_array_equal(
        np.sign(K_test @ here.posterior.alpha), np.sign(K_test @ there.posterior.alpha)
    )
    # The latent values scale with √c.
    ratio = here.posterior.alpha / there.posterior.alpha
    np.testing.assert_allclose(ratio, math.sqrt(c), rtol=1e-7)


@pytest.mark.parametrize("name", ["ep", "ensemble", "naive", "sequential"])
@pytest.mark.parametrize("noise", [0.1, 1.0, 4.0])
def test_probit_is_a_step_with_noise(name, noise, data):
    """A probit of variance s² is the step with s² added to K: evidence, gradient, predictions."""
    X, _, y, X_test = data
    how = method(name, tol=1e-12)
    probit = fit(how, Probit(noise), KERNEL(X), y)
    step = fit(how, Step(), KERNEL(X) + noise * np.eye(N), y)
    assert probit.log_evidence == pytest.approx(step.log_evidence, abs=1e-8)
    K_test, prior_variance = KERNEL(X_test, X), KERNEL.diag(X_test)
    a = Probit(noise).tilted(1.0, probit.posterior.predict(K_test, prior_variance))
    b = Step().tilted(1.0, step.posterior.predict(K_test, prior_variance + noise))
    np.testing.assert_allclose(a.log_z, b.log_z, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(probit.loo_log_prob(), step.loo_log_prob(), atol=1e-8)
    if how.has_gradient:
        np.testing.assert_allclose(probit.grad_K(), step.grad_K(), atol=1e-8)


@pytest.mark.parametrize("lik", [Probit(), Logit(), Step()])
@pytest.mark.parametrize("amplitude", [0.5, 2.0, 10.0])
def test_schedules_of_ep_agree(lik, amplitude, data):
    """Parallel and sequential EP meet at the same fixed point."""
    X, _, y, _ = data
    K = amplitude**2 * KERNEL(X) + 1e-3 * np.eye(N)
    a, b = (
        fit(EP(tol=1e-12, schedule=schedule, max_iter=2000), lik, K, y)
        for schedule in ("parallel", "sequential")
    )
    assert a.log_evidence == pytest.approx(b.log_evidence, abs=1e-8)
    scale = np.sqrt(np.diag(K))
    for got, truth, unit in zip(
        a.posterior.local().q, b.posterior.local().q, (scale, scale**2), strict=True
    ):
        np.testing.assert_allclose(got / unit, truth / unit, rtol=1e-8, atol=1e-8)


def test_leave_one_out_is_retraining_for_gaussian_noise(data):
    """With Gaussian noise each cavity predicts as the process trained without the example."""
    X, t, _, _ = data
    found = fit(EP(tol=1e-12), Gaussian(NOISE), KERNEL(X), t)
    np.testing.assert_allclose(found.loo_log_prob(), retrained(Gaussian(NOISE), X, t), rtol=1e-8)


def retrained(lik, X, y, kernel=KERNEL):
    """Log predictive probability of each example after training on all the others."""
    scores = []
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        found = fit(EP(), lik, kernel(X[others]), y[others])
        q = found.posterior.predict(kernel(X[i : i + 1], X[others]), kernel.diag(X[i : i + 1]))
        scores.append(lik.tilted(y[i : i + 1], q).log_z[0])
    return np.array(scores)


def test_leave_one_out_is_close_to_retraining_for_probit():
    """On sixty rows of Pima the mean log score from the cavities is that of retraining."""
    X, y = load_pima(return_X_y=True)
    X, y = X[:60], np.where(y[:60] == np.unique(y)[1], 1.0, -1.0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    kernel = ConstantKernel(2.0) * RBF(3.0)
    scores = fit(EP(), Probit(), kernel(X), y).loo_log_prob()
    truth = retrained(Probit(), X, y, kernel)
    assert abs(np.mean(scores) - np.mean(truth)) < 0.02
    # One by one they agree about as well.
    assert np.corrcoef(scores, truth)[0, 1] > 0.99


@pytest.mark.parametrize("lik", [Probit(), Logit()])
def test_small_powers_of_ep_are_variational(lik, data):
    """As the power vanishes power EP becomes the variational method, linearly in the power."""
    X, _, y, _ = data
    X, y = X[:6], y[:6]
    truth = fit(Variational(tol=1e-10), lik, KERNEL(X), y)
    near, far = (fit(EP(power=eta), lik, KERNEL(X), y) for eta in (0.01, 0.1))
    error, larger = (abs(found.log_evidence - truth.log_evidence) for found in (near, far))
    assert error < 1e-3
    assert error == pytest.approx(0.1 * larger, rel=0.1)
    np.testing.assert_allclose(near.posterior.mean, truth.posterior.mean, atol=1e-2)


@pytest.mark.parametrize("lik", [Probit(), Logit()])
def test_power_one_is_ep(lik, data):
    """A power of one changes nothing, and a power close to one very little."""
    X, _, y, _ = data
    X, y = X[:6], y[:6]
    plain = fit(EP(), lik, KERNEL(X), y).log_evidence
    assert fit(EP(power=1.0), lik, KERNEL(X), y).log_evidence == plain
    # Through the quadrature of the powered likelihood, linearly in the distance from one.
    assert fit(EP(power=1.0 - 1e-6), lik, KERNEL(X), y).log_evidence == pytest.approx(
        plain, abs=1e-6
    )


@pytest.mark.parametrize("name", CLASSIFYING)
@pytest.mark.parametrize("lik", [Probit(), Logit()])
def test_nothing_to_learn(name, lik, data):
    """As the amplitude vanishes every label is a coin toss."""
    if name == "ensemble" and not lik.noise_variance:
        pytest.skip("without noise a factorised posterior pays for the prior's correlations")
    X, _, y, _ = data
    # The evidence has a slope of order n in √K at most.
    found = fit(method(name), lik, 1e-14 * (KERNEL(X) + 0.1 * np.eye(N)), y)
    assert found.log_evidence == pytest.approx(-N * math.log(2.0), abs=1e-5)
    np.testing.assert_allclose(found.posterior.mean, np.zeros(N), atol=1e-6)


@pytest.mark.parametrize("name", ["ep", "ensemble", "naive", "sequential"])
@pytest.mark.parametrize("lik", [Probit(), Logit(), Step()])
def test_nothing_in_common(name, lik, data):
    """As the length scale vanishes the examples part, and each label is a coin toss."""
    X, _, y, X_test = data
    kernel = ConstantKernel(2.0) * RBF(1e-3)
    found = fit(method(name), lik, kernel(X), y)
    assert found.log_evidence == pytest.approx(-N * math.log(2.0), abs=1e-8)
    np.testing.assert_allclose(kernel(X_test, X) @ found.posterior.alpha, np.zeros(8), atol=1e-12)


@pytest.mark.parametrize("name", CLASSIFYING)
def test_flipping_all_labels_flips_the_mean(name, data):
    """Labels and latent values change sign together; nothing else changes."""
    X, _, y, _ = data
    a, b = (fit(method(name, tol=1e-11), Probit(), KERNEL(X), sign * y) for sign in (1.0, -1.0))
    assert a.log_evidence == pytest.approx(b.log_evidence, abs=1e-9)
    np.testing.assert_allclose(a.posterior.mean, -b.posterior.mean, atol=1e-9)


@pytest.mark.parametrize("name", [m for m in CLASSIFYING if m != "sequential"])
def test_order_does_not_matter(name, data):
    """Every method but the sequential one gives the same whichever way the rows are ordered."""
    X, _, y, _ = data
    order = np.random.default_rng(3).permutation(N)
    a = fit(method(name, tol=1e-11), Probit(), KERNEL(X), y)
    b = fit(method(name, tol=1e-11), Probit(), KERNEL(X[order]), y[order])
    assert a.log_evidence == pytest.approx(b.log_evidence, abs=1e-9)
    np.testing.assert_allclose(a.posterior.mean[order], b.posterior.mean, atol=1e-9)


def test_second_sweep_presents_the_data_again(data):
    """Two sweeps are one sweep over the data written twice; the evidence is the first one's."""
    X, _, y, _ = data
    once, twice = (fit(Sequential(sweeps=k), Probit(), KERNEL(X), y) for k in (1, 2))
    assert twice.log_evidence == once.log_evidence
    doubled = fit(Sequential(), Probit(), KERNEL(np.tile(X, (2, 1))), np.tile(y, 2))
    np.testing.assert_allclose(twice.posterior.mean, doubled.posterior.mean[:N], rtol=1e-9)
    assert np.all(twice.posterior.local().q.variance < once.posterior.local().q.variance)


def test_second_sweep_of_rows_that_differ(data):
    """Each row is presented again through a likelihood of its own."""
    X, _, y, _ = data
    noise = np.linspace(0.1, 2.0, N)
    twice = fit(Sequential(sweeps=2), Gaussian(noise), KERNEL(X), y)
    whole = KERNEL(np.tile(X, (2, 1))), np.tile(y, 2)
    doubled = fit(Sequential(), Gaussian(np.tile(noise, 2)), *whole)
    # Rows of a Gaussian that are given twice have half of their noise.
    halved = fit(Exact(), Gaussian(0.5 * noise), KERNEL(X), y)
    for other in (doubled, halved):
        np.testing.assert_allclose(twice.posterior.mean, other.posterior.mean[:N], rtol=1e-8)


@pytest.mark.parametrize("noise", [1e-10, 1e-14, 1e-18])
def test_gaussian_noise_that_vanishes(noise):
    """The evidence and its gradient without noise, by methods that are exact for a Gaussian."""
    X = np.linspace(0.0, 3.0, 10)[:, None]
    y, kernel = np.random.default_rng(0).normal(size=10), 1.0 * RBF(0.3)
    found = {}
    for how in (Exact(), EP(), Ensemble()):
        evidence = Evidence.of(rule(kernel), X, [y], Gaussian(noise), how, np.ones(10))
        found[how.name] = evidence.at(kernel.theta)
    exact = found.pop("exact")
    for evaluation in found.values():
        # The condition of the covariance, 1e4, times rounding of terms of size 1e2.
        assert evaluation.value == pytest.approx(exact.value, rel=1e-9)
        np.testing.assert_allclose(evaluation.gradient, exact.gradient, rtol=1e-7)


@pytest.mark.parametrize(("alpha", "warned"), [(1e-10, False), (1e-14, True)])
def test_predictions_without_digits_are_told(alpha, warned):
    """Where weights cancel so far that a row alone and in a batch differ visibly, fit warns."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.uniform(0.0, 3.0, (20, 1)), [[1.0], [1.0 + 1e-6]]])
    y = np.sin(X[:, 0])
    y[-1] += 1.0
    model = GaussianProcessRegressor(1.0 * RBF(1.0), alpha=alpha, optimizer=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    whole = model.predict(X)
    alone = np.concatenate([model.predict(row[None]) for row in X])
    error = np.max(np.abs(whole - alone)) / np.max(np.abs(whole))
    assert (error > 1e-3) == warned
    said = [one for one in caught if "Predictions are rounded" in str(one.message)]
    assert len(said) == len(caught) == warned


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("noise", [1e-10, 1e-12, 1e-14])
def test_naive_evidence_at_vanishing_noise(noise, seed):
    """Weights of 1e5 leave the evidence what it is in 60 digits; before, it was 4e10 for some."""
    X = np.random.default_rng(seed).normal(size=(N, 1))
    K, y = RBF(1.0)(X), np.sin(X[:, 0])
    found = fit(method("naive"), Gaussian(noise), K, y)
    # Errors of 1e-10 in weights that 1/noise has made.
    assert found.log_evidence == pytest.approx(naive_evidence(K, y, noise), abs=0.05)


@pytest.mark.parametrize("amplitude", [1e-4, 2e4])
def test_naive_evidence_in_any_unit(amplitude):
    """Vanishing noise under a wide prior leaves the evidence right; before, it was off by nats."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, N)
    X, y = group[:, None] + 1e-6 * rng.normal(size=(N, 1)), math.sqrt(amplitude) * (group - 1.0)
    K, noise = amplitude * RBF(0.3)(X), 1.5e-14 * amplitude
    found = fit(method("naive"), Gaussian(noise), K, y)
    # The tolerance of the means, widened by the square root of prior over noise.
    assert found.log_evidence == pytest.approx(naive_evidence(K, y, noise), abs=0.05)


@pytest.mark.parametrize(("noise", "warned"), [(1e-5, True), (1.0, False)])
def test_an_inverse_without_digits_is_told(noise, warned):
    """Ensembles under a nearly singular matrix say so; the evidence changed by .2 with the unit."""
    rng = np.random.default_rng(1)
    X = 3e4 * rng.normal(size=(30, 2))
    kernel, y = DotProduct(1.0) + WhiteKernel(noise), X[:, 0] > 0.0
    model = GaussianProcessClassifier(
        kernel, likelihood="logit", inference="ensemble", optimizer=None
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert ["The evidence is rounded" in str(one.message) for one in caught] == [True] * warned


def naive_evidence(K, y, noise):
    """−F of the naive mean field for Gaussian noise, whose α solves (K + noise) α = y."""
    with mp.workdps(60):
        M = mp.matrix(K.tolist())
        alpha = mp.lu_solve(M + noise * mp.eye(len(y)), mp.matrix(y.tolist()))
        total = mp.mpf(0)
        for i, mean in enumerate(M * alpha):
            a, k = alpha[i], M[i, i]
            off, v = y[i] - mean + k * a, k + noise
            total -= (mp.log(2 * mp.pi * v) + off**2 / v + a * mean - k * a**2) / 2
        return float(total)
