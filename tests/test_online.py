"""Sparse sequential learning against dense inference, textbook formulas and hard streams."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct, WhiteKernel

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.inference import EP
from cavity.kernels import rule
from cavity.likelihoods import Gaussian, likelihood
from cavity.online import OnlinePosterior, Options, learn, predict, recondition, sweep
from cavity.online.posterior import features
from cavity.online.updates import delete, fade, grow, mend, proper, scores

TIGHT = 1e-10
"""The least novelty that the estimators accept."""


def labelled(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0.0, 1.0, -1.0)


def learned(kernel, name, X, y, budget=1000, novelty=TIGHT, forget=1.0):
    options = Options(budget, novelty, forget)
    return learn(rule(kernel), likelihood(name), options, OnlinePosterior.empty(X.shape[1]), X, y)


@pytest.mark.parametrize("name", ["probit", "logit", "step"])
@pytest.mark.parametrize("kernel", [4.0 * RBF(0.3), 0.5 * RBF(0.3) + WhiteKernel(2.0)], ids=str)
def test_with_room_for_all_it_is_the_dense_sequential_method(name, kernel):
    """A budget of n or more gives the dense method's α, evidence and predictions."""
    X, y = labelled(150)
    state, _ = learned(kernel, name, X, y)
    dense = GaussianProcessClassifier(
        kernel, optimizer=None, inference="sequential", likelihood=name
    ).fit(X, y)
    # A tolerance of 1e-10 leaves no point out here; the rest is rounding.
    alpha = dense.base_estimator_.fits[0].posterior.alpha
    np.testing.assert_allclose(with_inverse(state)[0], alpha, rtol=0.0, atol=1e-8)
    assert state.log_evidence == pytest.approx(dense.log_marginal_likelihood_value_, abs=1e-8)
    X_new = X[:40] + 0.1
    for ours, theirs in zip(
        predict(rule(kernel), state, X_new),
        dense.latent_mean_and_variance(X_new),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-8)


def test_with_gaussian_noise_it_is_exact_regression():
    """One pass with room for all is the exact posterior and evidence, even almost noise-free."""
    X, y = labelled(100)
    for noise in (0.1, 1e-8):
        model = Gaussian(noise)
        kernel = 2.0 * RBF(0.3)
        state, _ = learn(rule(kernel), model, Options(200, TIGHT), OnlinePosterior.empty(2), X, y)
        dense = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(X, y)
        # At noise 1e-8 the equations' condition costs eight digits of sixteen.
        mean, std = dense.predict(X + 0.1, return_std=True)
        q = predict(rule(kernel), state, X + 0.1)
        np.testing.assert_allclose(q.mean, mean, atol=1e-6)
        np.testing.assert_allclose(np.sqrt(q.variance), std, atol=1e-6)
        assert state.log_evidence == pytest.approx(dense.log_marginal_likelihood_value_, abs=1e-4)


def with_inverse(state):
    """Return α, C and Q: the usual parameters, which the code does not keep."""
    W = np.linalg.inv(state.L)
    return W.T @ state.mean, W.T @ (state.cov - np.eye(len(W))) @ W, W.T @ W


def test_deletion_is_the_projection_of_the_textbook():
    """Deleting acts on α, C and Q as the formulas of Csató and Opper say."""
    X, y = labelled(12)
    state, _ = learned(2.0 * RBF(0.5), "probit", X, y)
    alpha, C, Q = with_inverse(state)
    np.testing.assert_allclose(scores(state), alpha**2 / np.diagonal(Q + C), rtol=1e-8)
    for i in (0, 5, 11):
        rest = np.arange(12) != i
        q, c = Q[rest, i], C[rest, i]
        both, corner = q + c, Q[i, i] + C[i, i]
        after = with_inverse(delete(state, i))
        # Conditioning of a twelve-point kernel matrix: about four digits.
        np.testing.assert_allclose(after[0], alpha[rest] - alpha[i] * both / corner, atol=1e-8)
        expected = C[np.ix_(rest, rest)] + np.outer(q, q) / Q[i, i] - np.outer(both, both) / corner
        np.testing.assert_allclose(after[1], expected, atol=1e-7)
        np.testing.assert_allclose(after[2], np.linalg.inv(np.linalg.inv(Q)[rest][:, rest]), 1e-6)


def test_projecting_is_growing_and_deleting():
    """An example learned by projection leaves the state that letting it in and out again would."""
    X, y = labelled(30)
    kernel, model = rule(2.0 * RBF(0.5)), likelihood("probit")
    state, _ = learn(kernel, model, Options(29, TIGHT), OnlinePosterior.empty(2), X[:29], y[:29])
    # A tolerance of one lets nothing in.
    projected, _ = learn(kernel, model, Options(29, 1.0), state, X[29:], y[29:])
    grown, _ = learn(kernel, model, Options(30, TIGHT), state, X[29:], y[29:])
    assert len(grown.mean) == 30
    back = delete(grown, 29)
    np.testing.assert_allclose(projected.mean, back.mean, atol=1e-12)
    np.testing.assert_allclose(projected.cov, back.cov, atol=1e-12)


@pytest.mark.parametrize("forget", [1.0, 0.99])
@pytest.mark.parametrize("name", ["probit", "logit"])
def test_how_the_stream_is_cut_does_not_matter(name, forget):
    """One row at a time, odd pieces and all at once learn the same."""
    X, y = labelled(300, d=3)
    kernel, options = rule(2.0 * RBF(0.7)), Options(25, 1e-6, forget)
    whole = learn(kernel, likelihood(name), options, OnlinePosterior.empty(3), X, y)[0]
    for cuts in (range(1, 300), (63, 64, 65, 200, 201, 255)):
        state = OnlinePosterior.empty(3)
        for rows in np.split(np.arange(300), cuts):
            state = learn(kernel, likelihood(name), options, state, X[rows], y[rows])[0]
        assert np.array_equal(state.Z, whole.Z)
        # The rounds within a block stop at 1e-11.
        np.testing.assert_allclose(state.mean, whole.mean, atol=1e-8)
        np.testing.assert_allclose(state.cov, whole.cov, atol=1e-8)
        assert state.log_evidence == pytest.approx(whole.log_evidence, abs=1e-8)


def test_forgetting_weakens_each_example_by_its_age():
    """Under Gaussian noise, forgetting is regression with noise that grows with age."""
    X, y = labelled(130)
    kernel, forget = 2.0 * RBF(0.3), 0.97
    options = Options(200, TIGHT, forget)
    assert options.interval == 3
    state = learn(rule(kernel), Gaussian(0.1), options, OnlinePosterior.empty(2), X, y)[0]
    faded = options.interval * (130 // options.interval - np.arange(130) // options.interval)
    dense = GaussianProcessRegressor(kernel, alpha=0.1 / forget**faded, optimizer=None).fit(X, y)
    mean, std = dense.predict(X, return_std=True)
    q = predict(rule(kernel), state, X)
    np.testing.assert_allclose(q.mean, mean, atol=1e-8)
    np.testing.assert_allclose(np.sqrt(q.variance), std, atol=1e-8)


def test_fading_to_nothing_is_the_prior():
    """What is left of the evidence after a long fade is nothing, and of none at all everything."""
    X, y = labelled(50)
    state, _ = learned(2.0 * RBF(0.5), "probit", X, y)
    gone, all_there = fade(state, 1e-14), fade(state, 1.0)
    np.testing.assert_allclose(gone.cov, np.eye(len(gone.mean)), atol=1e-10)
    np.testing.assert_allclose(gone.mean, 0.0, atol=1e-10)
    np.testing.assert_allclose(all_there.cov, state.cov, atol=1e-14)


@pytest.mark.parametrize("name", ["probit", "logit", "step"])
def test_sweeps_with_removal_are_ep(name):
    """At a full basis, sweeping until nothing changes gives EP's evidence and predictions."""
    X, y = labelled(150)
    kernel = 2.0 * RBF(0.3) + WhiteKernel(0.5)
    state, _ = learned(kernel, name, X, y)
    found, report = sweep(rule(kernel), likelihood(name), state, X, y, np.ones(len(y)), 60)
    assert report.residual < 1e-8
    dense = GaussianProcessClassifier(
        kernel, optimizer=None, inference=EP(tol=1e-12), likelihood=name
    ).fit(X, y)
    # Sweeping stops where the sites change by 1e-8.
    assert found.log_evidence == pytest.approx(dense.log_marginal_likelihood_value_, abs=1e-7)
    mean, _ = dense.latent_mean_and_variance(X + 0.1)
    q = predict(rule(kernel), found, X + 0.1)
    np.testing.assert_allclose(q.mean, mean, atol=1e-6)


def test_reconditioning_is_exact_where_all_inputs_are_basis_points():
    """Gaussian evidence put behind another prior is regression with that prior, evidence too."""
    X, y = labelled(80)
    old, new = 2.0 * RBF(0.1), 3.0 * RBF(0.2)
    state = learn(rule(old), Gaussian(0.2), Options(80, TIGHT), OnlinePosterior.empty(2), X, y)[0]
    assert len(state.mean) == 80
    after = recondition(rule(new), state, TIGHT)
    dense = GaussianProcessRegressor(new, alpha=0.2, optimizer=None).fit(X, y)
    # The inverse of the old prior stands between: its condition costs some digits.
    assert after.log_evidence == pytest.approx(dense.log_marginal_likelihood_value_, abs=1e-6)
    np.testing.assert_allclose(predict(rule(new), after, X).mean, dense.predict(X), atol=1e-6)


def test_reconditioning_drops_what_the_new_prior_takes_for_the_same():
    """A smoother prior needs fewer basis points and still predicts as a fit with it would."""
    X, y = labelled(200)
    old, new = 2.0 * RBF(1.0), 2.0 * RBF(1.2)
    state = learn(rule(old), Gaussian(0.2), Options(200, 1e-6), OnlinePosterior.empty(2), X, y)[0]
    after = recondition(rule(new), state, 1e-6)
    assert len(after.mean) < len(state.mean)
    dense = GaussianProcessRegressor(new, alpha=0.2, optimizer=None).fit(X, y)
    # What the old basis points did not tell, at most a share of 1e-6 in variance, is lost.
    np.testing.assert_allclose(predict(rule(new), after, X).mean, dense.predict(X), atol=0.02)


HARD = {
    "duplicates": lambda X, y, rng: (np.repeat(X[:4], 100, axis=0), np.repeat(y[:4], 100)),
    "contradictions": lambda X, y, rng: (np.repeat(X[:1], 400, axis=0), y[:400]),
    "constant": lambda X, y, rng: (np.ones_like(X), np.ones_like(y)),
    "outliers": lambda X, y, rng: (X * 10.0 ** rng.integers(0, 8, size=(len(X), 1)), y),
    "all zero": lambda X, y, rng: (0.0 * X, y),
}


@pytest.mark.parametrize("name", ["probit", "logit", "step", "gaussian"])
@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("kernel", [2.0 * RBF(0.5), DotProduct(1.0) ** 2], ids=str)
def test_hard_streams_leave_numbers(name, kind, kernel):
    """Duplicates, contradictions, constants and outliers leave finite numbers and a factor of K."""
    rng = np.random.default_rng(3)
    X, y = HARD[kind](*labelled(400, seed=3), rng)
    state, log_prob = learned(kernel, name, X, y, budget=10)
    assert all(np.all(np.isfinite(part)) for part in (state.mean, state.cov, log_prob))
    q = predict(rule(kernel), state, X)
    assert np.all(np.isfinite(q.mean))
    assert np.all(q.variance >= 0.0)
    K = rule(kernel).matrix(state.Z, state.Z)
    np.testing.assert_allclose(state.L @ state.L.T, K, rtol=1e-8, atol=1e-10 * np.max(np.abs(K)))


def check_health(kernel, state, most):
    """Symmetric C and Q, Q = K⁻¹, and a covariance between nothing and the prior."""
    K = rule(kernel).matrix(state.Z, state.Z)
    _, C, Q = with_inverse(state)
    assert np.max(np.abs(Q @ K - np.eye(len(K)))) < most
    assert np.max(np.abs(state.L @ state.L.T - K)) <= 1e-9 * np.max(K)
    for A in (C, Q, state.cov):
        np.testing.assert_allclose(A, A.T, rtol=0.0, atol=1e-12 * np.max(np.abs(A)))
    values = np.linalg.eigvalsh(state.cov)
    assert values[0] > -1e-12
    assert values[-1] < 1.0 + 1e-9


def test_numbers_stay_healthy_while_the_basis_turns_over():
    """Thousands of exchanged basis points leave the inverse an inverse."""
    rng = np.random.default_rng(0)
    kernel = 2.0 * RBF(1.0)
    X = rng.normal(size=(2000, 2)) + np.linspace(0.0, 40.0, 2000)[:, None]
    y = np.sign(np.sin(X[:, 0]))
    state, _ = learned(kernel, "probit", X, y, budget=30, novelty=1e-6, forget=0.99)
    assert state.changes > 300
    assert np.mean(state.Z) > 30.0
    check_health(kernel, state, 1e-6)


@pytest.mark.slow
def test_numbers_stay_healthy_for_ten_million_updates():
    """After ten million updates Q is K⁻¹ to 1e-6 and nothing has gone astray."""
    kernel = 2.0 * RBF(1.0)
    options = Options(20, 1e-6)
    state = OnlinePosterior.empty(2)
    rng = np.random.default_rng(0)
    for _ in range(100):
        X = rng.normal(size=(100_000, 2))
        y = np.where(X[:, 0] * X[:, 1] + rng.normal(size=len(X)) > 0.0, 1.0, -1.0)
        state = learn(rule(kernel), likelihood("probit"), options, state, X, y)[0]
    assert state.seen == 10_000_000
    check_health(kernel, state, 1e-6)


def test_a_factor_that_has_drifted_is_computed_afresh():
    """The check finds a damaged row within as many changes as there are rows, and mends it."""
    X, y = labelled(20)
    kernel = 2.0 * RBF(0.5)
    state, _ = learned(kernel, "probit", X, y)
    damaged = state._replace(L=state.L * (1.0 + 1e-6))
    mended = mend(rule(kernel), damaged)
    np.testing.assert_allclose(mended.L, state.L, atol=1e-12)
    assert mend(rule(kernel), state) is state


def test_a_covariance_that_rounding_made_indefinite_is_put_right():
    """Eigenvalues below zero go up to almost nothing, and the others stay."""
    X, y = labelled(20)
    state, _ = learned(2.0 * RBF(0.5), "probit", X, y)
    values, U = np.linalg.eigh(state.cov)
    values[0] = -1e-16
    after = proper(state._replace(cov=(U * values) @ U.T))
    np.testing.assert_allclose(np.linalg.eigvalsh(after.cov)[1:], values[1:], atol=1e-13)
    assert proper(state) is state


def test_growing_leaves_the_process_as_it_was():
    """A new basis point by itself changes no prediction."""
    X, y = labelled(20)
    kernel = rule(2.0 * RBF(0.5))
    state, _ = learn(
        kernel, likelihood("probit"), Options(50, TIGHT), OnlinePosterior.empty(2), X, y
    )
    x = np.array([[0.3, -0.4]])
    grown = grow(state, x, features(kernel, state, x))
    for before, after in zip(
        predict(kernel, state, X + 0.2), predict(kernel, grown, X + 0.2), strict=True
    ):
        np.testing.assert_allclose(before, after, atol=1e-10)
