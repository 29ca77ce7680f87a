"""Streams of counts, amounts, outliers, limits, wrong labels and ordered classes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import d2_tweedie_score, r2_score

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    OnlineGaussianProcessClassifier,
    OnlineGaussianProcessRegressor,
    storage,
)
from cavity.likelihoods import (
    Censored,
    Gamma,
    Gaussian,
    NegativeBinomial,
    NoisyProbit,
    Ordinal,
    Poisson,
    Probit,
    StudentT,
    numerical,
)
from cavity.sites import Marginals
from cavity.storage import StorageError

KERNEL = 1.5 * RBF(0.8)
LIKELIHOODS = {
    "gaussian": Gaussian(0.1),
    "poisson": Poisson(),
    "negative_binomial": NegativeBinomial(2.0),
    "gamma": Gamma(3.0),
    "student_t": StudentT(3.0, 0.2),
    "censored": Censored(0.04, -0.5, 0.5),
}
CONCAVE = [name for name in LIKELIHOODS if name not in ("gaussian", "student_t")]


def table(name, n=120, seed=0):
    """Return inputs and targets of each kind."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 1))
    f = np.sin(2.0 * X[:, 0])
    draws = {
        "gaussian": lambda: f + 0.3 * rng.standard_normal(n),
        "poisson": lambda: rng.poisson(np.exp(1.0 + f)),
        "negative_binomial": lambda: rng.negative_binomial(2.0, 2.0 / (2.0 + np.exp(1.0 + f))),
        "gamma": lambda: np.exp(f) * rng.gamma(3.0, 1.0 / 3.0, n),
        "student_t": lambda: f + 0.2 * rng.standard_t(2.0, n),
        "censored": lambda: np.clip(f + 0.2 * rng.standard_normal(n), -0.5, 0.5),
    }
    return X, draws[name]().astype(float)


def ranks(n=150, seed=0):
    """Return inputs and four classes in order."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 1))
    noisy = 1.5 * np.sin(X[:, 0]) + 0.4 * rng.standard_normal(n)
    return X, np.digitize(noisy, [-1.0, 0.2, 1.2])


def online(name, **options):
    own = {"alpha": 0.1} if name == "gaussian" else {"likelihood": LIKELIHOODS[name]}
    return OnlineGaussianProcessRegressor(KERNEL, **{"budget": 15, **own, **options})


@pytest.mark.parametrize("name", CONCAVE)
def test_with_room_for_all_it_is_the_dense_sequential_method(name):
    """Evidence, means, deviations and quantiles are those of the dense method of one sweep."""
    X, y = table(name, 60)
    ours = online(name, budget=100, novelty=1e-10).fit(X, y)
    dense = GaussianProcessRegressor(
        KERNEL, likelihood=LIKELIHOODS[name], inference="sequential", optimizer=None
    ).fit(X, y)
    # What is less novel than 1e-10 is left out of the basis.
    assert ours.log_evidence_ == pytest.approx(dense.log_marginal_likelihood_value_, abs=1e-6)
    new = np.linspace(-1.9, 1.9, 11)[:, None]
    for a, b in zip(ours.predict(new, True), dense.predict(new, True), strict=True):
        assert_allclose(a, b, rtol=1e-5)
    assert_allclose(ours.predict_quantiles(new), dense.predict_quantiles(new), rtol=1e-4)


def test_a_likelihood_that_is_not_log_concave_against_the_textbook():
    """Each row moves α and C by its tilted moments; it never widens the posterior."""
    X, y = table("student_t", 50)
    y[::10] += 20.0
    lik = LIKELIHOODS["student_t"]
    ours = online("student_t", budget=100, novelty=1e-10).fit(X, y)
    K, n = KERNEL(X), len(y)
    alpha, C, total, widened = np.zeros(n), np.zeros((n, n)), 0.0, 0
    for t in range(n):
        k = K[t]
        c = Marginals(np.array([k @ alpha]), np.array([K[t, t] + k @ C @ k]))
        log_z, d1, d2 = (float(part[0]) for part in lik.tilted(y[t], c))
        widened += d2 > 0.0
        s = C @ k + np.eye(n)[t]
        alpha, C, total = alpha + d1 * s, C + min(d2, 0.0) * np.outer(s, s), total + log_z
    assert widened >= 4
    # A row that would widen it takes 1e-10 of its variance; the novelty is as small.
    assert ours.log_evidence_ == pytest.approx(total, abs=1e-5)
    new = np.linspace(-1.9, 1.9, 11)[:, None]
    K_new = KERNEL(new, X)
    assert_allclose(ours.predict(new), K_new @ alpha, atol=1e-6)
    latent = 1.5 + np.einsum("ij,jk,ik->i", K_new, C, K_new)
    assert_allclose(ours.predict(new, True)[1] ** 2, latent + 3.0 * 0.2**2, atol=1e-6)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_how_the_stream_is_cut_does_not_matter(name):
    """Rows one by one, in pieces and as one table learn the same, with a small budget."""
    X, y = table(name)
    whole = online(name).fit(X, y)
    for cuts in (range(1, len(y)), [5, 70, 71]):
        parts = online(name)
        for rows in np.split(np.arange(len(y)), cuts):
            parts.partial_fit(X[rows], y[rows])
        # The rounds within a block stop at 1e-11.
        assert_allclose(parts.predict(X), whole.predict(X), rtol=1e-8, atol=1e-8)
        assert parts.log_evidence_ == pytest.approx(whole.log_evidence_, abs=1e-7)
        assert parts.prequential_log_loss_ == pytest.approx(whole.prequential_log_loss_, abs=1e-8)


def test_the_prequential_loss_is_that_of_predicting_first():
    """Of counts too: minus the log probability of each, by what was known before it came."""
    X, y = table("poisson", 40)
    model, total = online("poisson"), 0.0
    for i in range(40):
        row = X[i : i + 1], y[i : i + 1]
        q = Marginals(np.zeros(1), np.array([1.5]))
        if i:
            q = model._current.streams[0].predict(row[0])
        total -= numerical.tilted(Poisson(), row[1], q).log_z[0]
        model.partial_fit(*row)
    assert model.prequential_log_loss_ == pytest.approx(total / 40, abs=1e-9)


@pytest.mark.parametrize("name", ["negative_binomial", "student_t"])
def test_sweeps_are_the_dense_inference(name):
    """With room for all, sweeps end in EP, or in the bound of what is not log-concave."""
    X, y = table(name, 40)
    ours = online(name, budget=100, novelty=1e-10, sweeps=500).fit(X, y)
    dense = GaussianProcessRegressor(KERNEL, likelihood=LIKELIHOODS[name], optimizer=None)
    dense.fit(X, y)
    # The sweeps stop at 1e-8, and basis points closer than 1e-10 are one.
    assert ours.log_evidence_ == pytest.approx(dense.log_marginal_likelihood_value_, abs=1e-5)
    assert_allclose(ours.predict(X), dense.predict(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["gamma", "student_t", "censored"])
def test_the_warm_up_tunes_the_likelihood(name):
    """Kernel and likelihood are the dense estimator's on the first rows, however they came."""
    X, y = table(name, 150)
    ours = OnlineGaussianProcessRegressor(KERNEL, likelihood=name, warmup=100, budget=20)
    for rows in np.array_split(np.arange(150), 4):
        ours.partial_fit(X[rows], y[rows])
        assert np.all(np.isfinite(ours.predict(X)))
    dense = GaussianProcessRegressor(KERNEL, likelihood=name).fit(X[:100], y[:100])
    assert ours.kernel_ == dense.kernel_
    assert ours.likelihood_ == dense.likelihood_
    # From a hundred rows to all of them.
    assert np.corrcoef(ours.predict(X), dense.predict(X))[0, 1] > 0.97


def test_the_warm_up_of_labels_tunes_their_noise():
    """The share of wrong labels is found, and the rows after the warm-up are learned with it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    flipped = rng.random(300) < 0.1
    model = OnlineGaussianProcessClassifier(
        ConstantKernel(100.0, "fixed") * RBF(2.0, "fixed"),
        likelihood="noisy_probit",
        warmup=80,
        budget=30,
    ).fit(X, (X[:, 0] > 0.0) ^ flipped)
    # Eight wrong labels of eighty are known to a third or so.
    assert 0.02 < model.likelihood_.label_noise < 0.25
    assert np.mean(model.predict(X) == (X[:, 0] > 0.0)) > 0.92


def test_three_classes_with_wrong_labels():
    """Each class against the rest has its own noise; probabilities sum to one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    y[::20] = 2 - y[::20]
    model = OnlineGaussianProcessClassifier(9.0 * RBF(1.5), likelihood=NoisyProbit(0.05), budget=30)
    p = model.fit(X, y).predict_proba(X)
    assert_allclose(p.sum(axis=1), 1.0)
    assert np.mean(np.argmax(p, axis=1) == y) > 0.85
    assert model.likelihood_ == [NoisyProbit(0.05)] * 3


def test_ordered_classes():
    """Thresholds tuned by a warm-up are those of the dense estimator, and so are probabilities."""
    X, y = ranks()
    names = np.array(["a", "b", "c", "d"])[y]
    ours = OnlineGaussianProcessClassifier(KERNEL, likelihood="ordinal", warmup=150, budget=150)
    ours.set_params(novelty=1e-10).fit(X, names)
    dense = GaussianProcessClassifier(KERNEL, likelihood="ordinal").fit(X, names)
    assert_allclose(ours.likelihood_.cuts, dense.base_estimator_.likelihood.cuts)
    p = ours.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1.0)
    # One pass in the order given instead of the fixed point of EP.
    assert np.mean(np.abs(p - dense.predict_proba(X))) < 0.02
    assert list(ours.predict(X[:9])) == list(ours.classes_[np.argmax(p[:9], axis=1)])


def test_ordered_classes_without_a_warm_up():
    """The thresholds are those of equal shares, whatever comes first, unless they are given."""
    X, y = ranks()
    model = OnlineGaussianProcessClassifier(KERNEL, likelihood="ordinal", budget=20)
    model.partial_fit(X[:1], y[:1], classes=[0, 1, 2, 3])
    assert_allclose(model.likelihood_.cuts, norm.ppf([0.25, 0.5, 0.75]))
    assert model.partial_fit(X, y).score(X, y) > 0.5
    given = Ordinal((-1.0, 0.2, 1.2))
    assert OnlineGaussianProcessClassifier(likelihood=given).fit(X, y).likelihood_ == given
    for wrong in (y % 3, np.arange(len(y)) % 5):
        with pytest.raises(
            ValueError, match=f"for 4 classes, and there are {len(np.unique(wrong))}"
        ):
            OnlineGaussianProcessClassifier(likelihood=given).fit(X, wrong)


def test_a_warm_up_that_lacks_a_class_tunes_nothing():
    """Without rows of a class its threshold cannot be tuned: a warning says so."""
    X, y = ranks()
    model = OnlineGaussianProcessClassifier(KERNEL, likelihood="ordinal", warmup=60)
    some = np.flatnonzero(y < 3)[:60]
    with pytest.warns(UserWarning, match="only 3 of the 4 classes"):
        model.partial_fit(X[some], y[some], classes=[0, 1, 2, 3])
    assert model.kernel_ == KERNEL
    with pytest.warns(UserWarning, match="only one value of the target"):
        online("poisson", warmup=5).fit(X[:9], np.ones(9))


def test_exposure():
    """The log of an exposure is an offset of each row, in learning and predicting."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, size=(80, 1))
    hours = rng.uniform(0.2, 5.0, 80)
    y = rng.poisson(hours * np.exp(np.sin(2.0 * X[:, 0])))
    ours = online("poisson", budget=100, novelty=1e-10)
    for rows in np.array_split(np.arange(80), 3):
        ours.partial_fit(X[rows], y[rows], offset=np.log(hours[rows]))
    dense = GaussianProcessRegressor(
        KERNEL, likelihood="poisson", inference="sequential", optimizer=None
    ).fit(X, y, offset=np.log(hours))
    assert ours.log_evidence_ == pytest.approx(dense.log_marginal_likelihood_value_, abs=1e-6)
    assert_allclose(ours.predict(X, offset=1.0), np.e * ours.predict(X), rtol=1e-12)
    assert_allclose(
        ours.predict(X, offset=np.log(hours)), dense.predict(X, offset=np.log(hours)), rtol=1e-5
    )
    # Weights present rows several times, with their offsets.
    weight = rng.integers(0, 3, 80)
    whole = online("poisson").fit(X, y, sample_weight=weight, offset=np.log(hours))
    copies = [np.repeat(part, weight, axis=0) for part in (X, y, np.log(hours))]
    apart = online("poisson").fit(copies[0], copies[1], offset=copies[2])
    assert_allclose(whole.predict(X), apart.predict(X), rtol=1e-8)


def test_offsets_of_classes():
    """A known latent value is an offset too; several classes have none."""
    X, y = ranks()
    model = OnlineGaussianProcessClassifier(KERNEL, budget=30)
    model.fit(X, y > 1, offset=0.7)
    dense = GaussianProcessClassifier(KERNEL, optimizer=None, inference="sequential")
    dense.fit(X, y > 1, offset=0.7)
    got, want = (m.predict_proba(X, offset=0.7) for m in (model, dense))
    # Thirty basis points of a smooth function.
    assert_allclose(got, want, atol=1e-3)
    with pytest.raises(ValueError, match="4 classes have one each"):
        OnlineGaussianProcessClassifier().fit(X, y, offset=0.7)
    several = OnlineGaussianProcessClassifier(KERNEL).fit(X, y)
    with pytest.raises(ValueError, match="4 classes have one each"):
        several.predict_proba(X, offset=0.7)


@pytest.mark.parametrize("name", ["poisson", "student_t"])
def test_whole_weights_are_repeated_rows(name):
    """A row of weight three is presented three times in a row, with every likelihood."""
    X, y = table(name, 40)
    weight = np.random.default_rng(0).integers(0, 4, size=40)
    weighted = online(name).fit(X, y, sample_weight=weight)
    repeated = online(name).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-8)


def test_parts_of_rows_need_a_log_concave_likelihood():
    """A weight of one half has moments of counts, and none of what is not log-concave."""
    X, y = table("poisson", 40)
    weight = np.full(40, 1.5)
    assert np.all(np.isfinite(online("poisson").fit(X, y, sample_weight=weight).predict(X)))
    with pytest.raises(ValueError, match=r"not log-concave.*whole sample weights"):
        online("student_t").fit(X, y, sample_weight=weight)
    model = OnlineGaussianProcessClassifier(likelihood="noisy_probit")
    with pytest.raises(ValueError, match=r"not log-concave.*whole sample weights"):
        model.fit(X, y > 2, sample_weight=weight)


def test_outliers_in_a_stream_do_no_harm():
    """With a Student t gross outliers hardly change the predictions; with a Gaussian they do."""
    X, y = table("gaussian", 400)
    hit = np.random.default_rng(1).permutation(400)[:12]
    spoiled = y.copy()
    spoiled[hit] += 30.0
    truth = np.sin(2.0 * X[:, 0])
    errors = {}
    for name in ("student_t", "gaussian"):
        for what, targets in (("clean", y), ("spoiled", spoiled)):
            found = online(name).fit(X, targets).predict(X)
            errors[name, what] = np.sqrt(np.mean((found - truth) ** 2))
    assert errors["student_t", "spoiled"] < 1.3 * errors["student_t", "clean"]
    assert errors["gaussian", "spoiled"] > 3.0 * errors["gaussian", "clean"]


def test_scores():
    """Counts have scikit-learn's D², outliers R²."""
    X, y = table("poisson")
    model = online("poisson").fit(X, y)
    assert model.score(X, y) == pytest.approx(d2_tweedie_score(y, model.predict(X), power=1))
    X, y = table("student_t")
    model = online("student_t").fit(X, y)
    assert model.score(X, y) == pytest.approx(r2_score(y, model.predict(X)))


REFUSED = {
    "poisson": (Poisson(), np.array([1.0, -1.0]), "loss 'Poisson'.*row 1 has -1.0"),
    "gamma": (Gamma(), np.array([1.0, 0.0]), "positive numbers"),
    "labels": (Probit(), np.array([1.0, -1.0]), "a regressor needs a likelihood of numbers"),
    "limits": ("censored", np.array([1.0, 2.0]), "does not show where its targets are cut off"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_targets_that_cannot_be(kind):
    """They are refused in scikit-learn's words, and nothing changes."""
    lik, y, message = REFUSED[kind]
    model = OnlineGaussianProcessRegressor(likelihood=lik)
    with pytest.raises(ValueError, match=message):
        model.fit([[0.0], [1.0]], y)
    if kind == "poisson":
        model.fit([[0.0], [1.0]], [1.0, 3.0])
        before = model.predict([[0.5]])
        with pytest.raises(ValueError, match=message):
            model.partial_fit([[0.0], [1.0]], y)
        assert_array_equal(model.predict([[0.5]]), before)
    with pytest.raises(ValueError, match=r"leave alpha at 0\.1"):
        OnlineGaussianProcessRegressor(alpha=0.2, likelihood="poisson").fit([[0.0]], [1.0])


def test_means_beyond_floats_are_reported():
    """Under a prior of huge variance E e^f is no float: it is infinite, with a warning."""
    model = OnlineGaussianProcessRegressor(3000.0 * RBF(0.1), likelihood="poisson")
    model.fit([[0.0]], [3.0])
    with pytest.warns(UserWarning, match="beyond the largest float in 1 of 2 rows, first in row 1"):
        found = model.predict([[0.0], [9.0]])
    assert_array_equal(np.isinf(found), [False, True])
    assert np.all(np.isfinite(model.predict_quantiles([[0.0]])))


@pytest.mark.parametrize("name", ["negative_binomial", "student_t", "censored"])
def test_resuming_from_a_file_is_bit_identical(name, tmp_path):
    """Saved and loaded within the warm-up and after it, tuned parameters and offsets included."""
    X, y = table(name)
    make = {"likelihood": name, "warmup": 60, "budget": 15}
    straight, resumed = (OnlineGaussianProcessRegressor(KERNEL, **make) for _ in range(2))
    for rows in np.array_split(np.arange(len(y)), 5):
        added = 0.1 * X[rows, 0]
        straight.partial_fit(X[rows], y[rows], offset=added)
        resumed.partial_fit(X[rows], y[rows], offset=added)
        resumed.save(tmp_path / "model")
        resumed = OnlineGaussianProcessRegressor.load(tmp_path / "model")
        assert_array_equal(resumed.predict(X), straight.predict(X))
        assert resumed.log_evidence_ == straight.log_evidence_
        assert resumed.likelihood_ == straight.likelihood_


def test_files_of_streams_with_other_likelihoods(tmp_path):
    """Without one, as earlier versions wrote it, the given one holds; another kind is refused."""
    X, y = table("poisson")
    path, kind = tmp_path / "model", "OnlineGaussianProcessRegressor"
    model = online("poisson").fit(X, y)
    model.save(path)
    header, arrays = storage.read(path, kind)
    stream = header["streams"][0]
    own = stream.pop("likelihood")
    storage.write(path, kind, header, arrays)
    found = OnlineGaussianProcessRegressor.load(path)
    assert_array_equal(found.predict(X), model.predict(X))
    for other in ("gamma", {**own, "likelihood": "step"}, {"likelihood": "poisson"}, 3.0):
        stream["likelihood"] = other
        storage.write(path, kind, header, arrays)
        with pytest.raises(StorageError):
            OnlineGaussianProcessRegressor.load(path)


def test_thresholds_of_a_file_fit_its_classes(tmp_path):
    """A file whose thresholds make other classes than it names is refused."""
    X, y = ranks()
    path, kind = tmp_path / "model", "OnlineGaussianProcessClassifier"
    model = OnlineGaussianProcessClassifier(KERNEL, likelihood="ordinal", warmup=100).fit(X, y)
    model.save(path)
    found = OnlineGaussianProcessClassifier.load(path)
    assert_array_equal(found.predict_proba(X), model.predict_proba(X))
    header, arrays = storage.read(path, kind)
    header["streams"][0]["likelihood"]["parameters"]["thresholds"].append(9.0)
    storage.write(path, kind, header, arrays)
    with pytest.raises(StorageError, match="another likelihood"):
        OnlineGaussianProcessClassifier.load(path)
