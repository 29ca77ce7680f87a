"""Enormous weights: learned as many presentations would be, at a cost that hardly grows."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    OnlineGaussianProcessClassifier,
    OnlineGaussianProcessRegressor,
)
from cavity.inference import SINGLY, sequential
from cavity.likelihoods import likelihood
from cavity.sites import Marginals


def data(n=25):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)


def heavy(n, *weights):
    weight = np.ones(n)
    weight[3 : 3 + len(weights)] = weights
    return weight


def one_by_one(model, y, q, copies):
    """Present copies one after the other: the slow truth."""
    mean, variance, total = q.mean, q.variance, 0.0
    for _ in range(copies):
        log_z, d1, d2 = model.tilted(y, Marginals(mean, variance))
        mean, variance = mean + variance * d1, variance + variance**2 * d2
        total += float(log_z[0])
    return mean[0], variance[0], total


@pytest.mark.parametrize("name", ["probit", "logit", "step"])
@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (-2.0, 3.0), (1.0, 100.0)])
def test_groups_of_copies_are_single_presentations(name, mean, variance):
    """Three thousand copies of one label, presented one by one and in growing groups."""
    model, y = likelihood(name), np.ones(1)
    q = Marginals(np.array([mean]), np.array([variance]))
    m, v, log_z = one_by_one(model, y, q, 3000)
    sites, found = sequential._present(model, y, q, 3000.0)
    ours = 1.0 / (1.0 / variance + sites.tau[0])
    # What a group of a twentieth of all copies before it changes, to second order.
    assert ours * (mean / variance + sites.nu[0]) == pytest.approx(m, abs=0.01 * np.sqrt(v))
    assert ours == pytest.approx(v, rel=2e-3)
    assert found == pytest.approx(log_z, rel=1e-3)


ONLINE = {
    "classifier": lambda: OnlineGaussianProcessClassifier(2.0 * RBF(1.0), budget=15),
    "noisy": lambda: OnlineGaussianProcessClassifier(
        2.0 * RBF(1.0) + WhiteKernel(0.3), budget=15, likelihood="step"
    ),
    "forgetting": lambda: OnlineGaussianProcessClassifier(2.0 * RBF(1.0), budget=15, forget=0.99),
    "regressor": lambda: OnlineGaussianProcessRegressor(2.0 * RBF(1.0), budget=15),
}


@pytest.mark.parametrize("name", ONLINE)
def test_a_heavy_row_of_a_stream_is_many_rows(name):
    """A weight of 700 is 700 calls with this row, also under noise of the kernel and forgetting."""
    X, y = data()
    weight = heavy(len(y), 700.0)
    ours = ONLINE[name]().fit(X, y, sample_weight=weight)
    index = np.repeat(np.arange(len(y)), weight.astype(int))
    single = ONLINE[name]().fit(X[index], y[index])
    ask = "predict_proba" if name != "regressor" else "predict"
    found, truth = (getattr(model, ask)(X) for model in (ours, single))
    # A hundredth of a posterior's standard deviation; forgetting is in steps of ten rows.
    np.testing.assert_allclose(found, truth, atol=0.02 if name == "forgetting" else 2e-3)
    assert ours.prequential_log_loss_ < np.log(2.0) or name == "regressor"


@pytest.mark.parametrize("name", ONLINE)
def test_endless_weights_cost_no_more(name):
    """Weights of 1e5 and 1e9 take about as many likelihood evaluations, and give numbers."""
    X, y = data()
    for weight in (1e5, 1e9):
        model = ONLINE[name]().fit(X, y, sample_weight=heavy(len(y), weight, weight / 3.0))
        assert np.all(np.isfinite(model.predict(X)))
        assert np.isfinite(model.log_evidence_)
        if name != "forgetting":
            assert model.predict(X[3:4])[0] == pytest.approx(y[3], abs=1e-3)


def test_dense_sequential_costs_no_more(monkeypatch):
    """Evaluations of the likelihood for a weight of 1e9 are less than five times those for 1e3."""
    X, y = data()
    model = GaussianProcessClassifier(2.0 * RBF(1.0), inference="sequential", optimizer=None)
    counts, spent, original = [], [], sequential.site_of
    monkeypatch.setattr(sequential, "site_of", lambda *args: (spent.append(1), original(*args))[1])
    for weight in (1e3, 1e9):
        before = len(spent)
        model.fit(X, y, sample_weight=heavy(len(y), weight))
        counts.append(len(spent) - before)
        assert np.all(np.isfinite(model.predict_proba(X)))
    assert counts[0] > SINGLY
    assert counts[1] < 5 * counts[0]


def test_sweeps_take_heavy_rows():
    """EP over a table with a weight of 1e9 ends, and respects that row."""
    X, y = data()
    model = OnlineGaussianProcessClassifier(2.0 * RBF(1.0), budget=25, sweeps=50)
    proba = model.fit(X, y, sample_weight=heavy(len(y), 1e9)).predict_proba(X[3:4])[0]
    assert proba[y[3]] > 0.99
    # Up to 128 rows nothing is grouped.
    weight = heavy(len(y), 7.0)
    index = np.repeat(np.arange(len(y)), weight.astype(int))
    weighted = model.fit(X, y, sample_weight=weight).predict_proba(X)
    np.testing.assert_allclose(weighted, model.fit(X[index], y[index]).predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("cls", [GaussianProcessClassifier, GaussianProcessRegressor])
def test_too_many_copies_are_refused(cls):
    """With a WhiteKernel whole weights repeat rows, and 1e9 rows have no covariance matrix."""
    X, y = data()
    with pytest.raises(ValueError, match=r"1e\+09 of them are too many"):
        cls(RBF(1.0) + WhiteKernel(0.1)).fit(X, y, sample_weight=heavy(len(y), 1e9))
