"""Enormous weights: learned as many presentations would be, at a cost that hardly grows."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    OnlineGaussianProcessClassifier,
    OnlineGaussianProcessRegressor,
    storage,
)
from cavity.inference import METHODS, MOST_COPIES, SINGLY, sequential
from cavity.likelihoods import REGISTRY, Censored, StudentT, likelihood
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


TARGETS = {
    "signs": lambda f: (f > 0.0).astype(int),
    "codes": lambda f: (f > -0.5).astype(int) + (f > 0.5),
    "counts": lambda f: np.round(np.exp(f)),
    "positive": np.exp,
    "reals": lambda f: f,
}


def estimator_of(name, **options):
    """Return an estimator of a stream, or of a table, and targets that its likelihood is for."""
    X, _ = data(12)
    support = likelihood(name).support
    model = Censored(lower=-1.0) if name == "censored" else name
    y = TARGETS[support](np.maximum(X[:, 0], -1.0))
    tables = GaussianProcessRegressor, GaussianProcessClassifier
    streams = OnlineGaussianProcessRegressor, OnlineGaussianProcessClassifier
    made = (tables if "inference" in options else streams)[support in ("signs", "codes")]
    return made(2.0 * RBF(1.0), likelihood=model, **options), X, y


def evaluations(monkeypatch, name, weight, **options):
    """Fit with a heavy row; return how often moments were asked for, and predictions."""
    model, X, y = estimator_of(name, **options)
    asked = []
    for room in ("cavity.inference.sequential.site_of", "cavity.online.stream.site_through_noise"):
        module, function = room.rsplit(".", 1)
        original = getattr(__import__(module, fromlist=[function]), function)

        def counted(*args, original=original, **more):
            asked.append(1)
            return original(*args, **more)

        monkeypatch.setattr(room, counted)
    model.fit(X, y, sample_weight=heavy(len(y), weight))
    return len(asked), model.predict(X)


@pytest.mark.parametrize("name", REGISTRY)
def test_the_cost_does_not_depend_on_the_weight(monkeypatch, name):
    """Every likelihood of a stream: a thousand billion copies of a row, and finite predictions."""
    few, _ = evaluations(monkeypatch, name, 1e4, budget=12)
    many, found = evaluations(monkeypatch, name, MOST_COPIES, budget=12)
    # Logarithms: 4.6 times as many groups follow the first 128 copies.
    assert 0 < many < 10 * few
    assert np.all(np.isfinite(found))


@pytest.mark.parametrize("name", REGISTRY)
def test_tables_by_sweeps_take_the_heaviest_rows(name):
    """EP and the variational bound at the stream's basis points: finite numbers."""
    model, X, y = estimator_of(name, budget=12, sweeps=3)
    assert np.all(np.isfinite(model.fit(X, y, sample_weight=heavy(12, MOST_COPIES)).predict(X)))


SERVED = [name for name in REGISTRY if METHODS["sequential"].serves(likelihood(name))]


@pytest.mark.parametrize("name", SERVED)
def test_sequential_inference_takes_the_heaviest_rows(monkeypatch, name):
    """Every likelihood that it serves."""
    options = {"inference": "sequential", "optimizer": None}
    few, _ = evaluations(monkeypatch, name, 1e4, **options)
    many, found = evaluations(monkeypatch, name, MOST_COPIES, **options)
    assert 0 < many < 10 * few
    assert np.all(np.isfinite(found))


@pytest.mark.parametrize("name", [*REGISTRY, "sequential"])
def test_heavier_rows_are_refused(name):
    """Beyond that a cavity has no digits left: one sentence, before anything is computed."""
    options = {"inference": "sequential"} if name == "sequential" else {"budget": 12}
    model, X, y = estimator_of("poisson" if name == "sequential" else name, **options)
    told = r"a sample weight is 1e\+100: .*at most 1e\+12 times"
    with pytest.raises(ValueError, match=told) as found:
        model.fit(X, y, sample_weight=heavy(12, 1e100))
    assert "\n" not in str(found.value)


def test_a_stored_weight_is_refused_as_a_given_one(tmp_path):
    """A file cannot hold more copies of a waiting row than a call may bring."""
    X, y = data()
    path, name = tmp_path / "stream.cavity", "OnlineGaussianProcessClassifier"
    OnlineGaussianProcessClassifier(warmup=40).partial_fit(X, y, classes=[0, 1]).save(path)
    header, arrays = storage.read(path, name)
    arrays["waiting.weight"].fill(1e14)
    storage.write(path, name, header, arrays)
    with pytest.raises(storage.StorageError, match="too large"):
        OnlineGaussianProcessClassifier.load(path)


@pytest.mark.parametrize("outlier", [30.0, 1e5])
def test_copies_of_an_outlier_move_up_to_it(outlier):
    """A Student t doubts one outlier; enough copies of it are believed, and never overshot."""
    X, y = np.array([[0.0], [1.0]]), np.array([0.3, outlier])
    means = []
    for copies in (1e3, 1e7, 1e9):
        model = OnlineGaussianProcessRegressor(2.0 * RBF(1.0), likelihood=StudentT())
        means.append(float(model.fit(X, y, sample_weight=[1.0, copies]).predict(X)[1]))
    # Within rounding of the target.
    assert np.all(np.diff(means) > -1e-9 * outlier)
    assert max(means) == pytest.approx(outlier, rel=1e-6)


def test_many_copies_of_an_outlier_are_single_presentations():
    """Five thousand copies, which move the mean by half: in groups, and one by one."""
    X, y = np.array([[0.0], [1.0]]), np.array([0.3, 300.0])
    models = [OnlineGaussianProcessRegressor(2.0 * RBF(1.0), likelihood=StudentT()) for _ in "ab"]
    grouped = models[0].fit(X, y, sample_weight=[1.0, 5e3]).predict(X)
    index = np.repeat([0, 1], [1, 5000])
    # Groups follow the pull, which grows with the way that is made, to a few hundredths each.
    np.testing.assert_allclose(grouped, models[1].fit(X[index], y[index]).predict(X), rtol=1e-3)


def test_weights_do_not_reorder_a_sequential_regression():
    """The order given is the order learned, whether rows have weights or not."""
    X, _ = data(12)
    y = np.round(np.exp(X[:, 0]))
    options = {"likelihood": "poisson", "inference": "sequential", "optimizer": None}
    models = [GaussianProcessRegressor(2.0 * RBF(1.0), **options) for _ in "ab"]
    found = models[0].fit(X, y, sample_weight=np.ones(12)).predict(X)
    np.testing.assert_allclose(found, models[1].fit(X, y).predict(X), rtol=1e-12)
