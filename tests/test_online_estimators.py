"""The online estimators: scikit-learn's habits, streams cut anywhere, files, and their accuracy."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, DotProduct, WhiteKernel
from sklearn.model_selection import learning_curve
from sklearn.utils.estimator_checks import check_estimator

from cavity import (
    GaussianProcessClassifier,
    OnlineGaussianProcessClassifier,
    OnlineGaussianProcessRegressor,
    storage,
)
from cavity.datasets import load_pima, load_sonar
from cavity.likelihoods import Probit
from cavity.storage import StorageError

ORDER_MATTERS = {
    "check_sample_weight_equivalence_on_dense_data": "the check shuffles, and one pass depends on "
    "the order of the examples by definition"
}

ESTIMATORS = [
    OnlineGaussianProcessClassifier(),
    OnlineGaussianProcessRegressor(),
    *(
        pytest.param(estimator, marks=pytest.mark.slow)
        for estimator in (
            OnlineGaussianProcessClassifier(likelihood="logit"),
            OnlineGaussianProcessClassifier(likelihood="step"),
            OnlineGaussianProcessClassifier(sweeps=100),
            OnlineGaussianProcessRegressor(forget=0.999),
        )
    ),
]


def blobs(n, classes=2, seed=0, d=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    angle = 2.0 * np.pi * y / classes
    X = rng.normal(size=(n, d))
    X[:, 0] += 1.5 * np.cos(angle)
    X[:, 1] += 1.5 * np.sin(angle)
    return X, y


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_passes_scikit_learns_checks(estimator):
    """No check fails but the one that shuffles rows whose order matters."""
    params = estimator.get_params()
    # Gaussian noise without forgetting, and sweeps that converge, know no order.
    ordered = params["forget"] < 1.0 or ("likelihood" in params and params["sweeps"] == 1)
    results = check_estimator(
        estimator,
        on_skip=None,
        on_fail=None,
        expected_failed_checks=ORDER_MATTERS if ordered else None,
    )
    failed = {
        r["check_name"]: str(r["exception"])[:300] for r in results if r["status"] == "failed"
    }
    assert not failed


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_row_at_a_time_is_the_whole_table_at_once(n_classes):
    """Calls of one row, of any size and `fit` agree; a class first seen late is no matter."""
    X, y = blobs(200, n_classes)
    order = np.argsort(y == 1, kind="stable")
    X, y = X[order], np.array(["a", "b", "c"])[y[order]]
    make = OnlineGaussianProcessClassifier(2.0 * RBF(1.0), budget=15)
    whole = make.fit(X, y)
    single = OnlineGaussianProcessClassifier(2.0 * RBF(1.0), budget=15)
    for i in range(200):
        single.partial_fit(X[i : i + 1], y[i : i + 1], classes=np.unique(y) if i == 0 else None)
    assert single.n_seen_ == whole.n_seen_ == 200
    # The rounds within a block stop at 1e-11.
    np.testing.assert_allclose(single.predict_proba(X), whole.predict_proba(X), atol=1e-8)
    assert single.log_evidence_ == pytest.approx(whole.log_evidence_, abs=1e-8)
    assert single.prequential_log_loss_ == pytest.approx(whole.prequential_log_loss_, abs=1e-8)


@pytest.mark.slow
def test_a_block_of_a_hundred_thousand_rows_is_many_small_ones():
    """One call with 100,000 rows gives what nineteen smaller ones give."""
    X, y = blobs(100_000)
    make = {"kernel": 2.0 * RBF(1.0), "budget": 15}
    whole = OnlineGaussianProcessClassifier(**make).fit(X, y)
    pieces = OnlineGaussianProcessClassifier(**make)
    for part in np.array_split(np.arange(100_000), 19):
        pieces.partial_fit(X[part], y[part], classes=[0, 1])
    np.testing.assert_allclose(pieces.predict_proba(X[:99]), whole.predict_proba(X[:99]), atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_prequential_loss_is_that_of_predicting_first(n_classes):
    """Predicting each row before it is learned, by hand, gives the same mean log loss."""
    X, y = blobs(60, n_classes)
    clf = OnlineGaussianProcessClassifier(2.0 * RBF(1.0), budget=10)
    clf.partial_fit(X[:1], y[:1], classes=np.arange(n_classes))
    total = clf.prequential_log_loss_
    for i in range(1, 60):
        total -= clf.predict_log_proba(X[i : i + 1])[0, y[i]]
        clf.partial_fit(X[i : i + 1], y[i : i + 1])
    assert clf.prequential_log_loss_ == pytest.approx(total / 60, abs=1e-9)


def test_whole_weights_are_repeated_rows():
    """A row of weight three is presented three times in a row; one without weight never."""
    X, y = blobs(40)
    weight = np.random.default_rng(0).integers(0, 4, size=40)
    weighted = OnlineGaussianProcessClassifier(budget=10).fit(X, y, sample_weight=weight)
    repeated = OnlineGaussianProcessClassifier(budget=10)
    repeated.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-9)


def test_weights_are_those_of_the_dense_method():
    """Fractions too: the dense sequential method's posterior and evidence."""
    X, y = blobs(40)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.25], size=40)
    kernel = 2.0 * RBF(0.3)
    clf = OnlineGaussianProcessClassifier(kernel, novelty=1e-10).fit(X, y, sample_weight=weight)
    dense = GaussianProcessClassifier(kernel, optimizer=None, inference="sequential")
    dense.fit(X, y, sample_weight=weight)
    # A second presentation is of an input that the first has made a basis point, to 1e-10.
    np.testing.assert_allclose(clf.predict_proba(X), dense.predict_proba(X), atol=1e-7)
    assert clf.log_evidence_ == pytest.approx(dense.log_marginal_likelihood_value_, abs=1e-6)


BAD = {
    "nan": (lambda X, y: (np.where(np.arange(len(X))[:, None] == 3, np.nan, X), y), "NaN"),
    "infinity": (
        lambda X, y: (np.where(np.arange(len(X))[:, None] == 3, np.inf, X), y),
        "infinity",
    ),
    "columns": (lambda X, y: (X[:, :1], y), "features"),
    "label": (lambda X, y: (X, np.where(np.arange(len(y)) == 3, 7, y)), "7"),
    "lengths": (lambda X, y: (X, y[:-1]), "inconsistent"),
    "huge": (lambda X, y: (X * 1e200, y), "not finite at row 0"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_rows_are_refused_and_nothing_changes(kind):
    """After an error the estimator predicts as before and can go on."""
    X, y = blobs(60)
    clf = OnlineGaussianProcessClassifier(DotProduct(1.0) ** 2, budget=10)
    clf.partial_fit(X[:40], y[:40], classes=[0, 1])
    before = clf.predict_proba(X), clf.n_seen_, clf.log_evidence_
    change, message = BAD[kind]
    with pytest.raises(ValueError, match=message):
        clf.partial_fit(*change(X[40:], y[40:]))
    assert np.array_equal(clf.predict_proba(X), before[0])
    assert (clf.n_seen_, clf.log_evidence_) == before[1:]
    clf.partial_fit(X[40:], y[40:])
    assert clf.n_seen_ == 60


def test_errors_say_what_to_do():
    """Classes left away, changed or single, wrong likelihoods, huge targets: a clear ValueError."""
    X, y = blobs(20)
    with pytest.raises(ValueError, match="classes must be passed"):
        OnlineGaussianProcessClassifier().partial_fit(X, y)
    clf = OnlineGaussianProcessClassifier().partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="not the same"):
        clf.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="1 class"):
        OnlineGaussianProcessClassifier().fit(X, 0 * y)
    with pytest.raises(ValueError, match="real targets"):
        OnlineGaussianProcessClassifier(likelihood="gaussian").fit(X, y)
    with pytest.raises(ValueError, match="scale the targets"):
        OnlineGaussianProcessRegressor().fit(X, y * 1e200)
    with pytest.raises(ValueError, match="cannot be combined with"):
        OnlineGaussianProcessClassifier(sweeps=2, forget=0.9).fit(X, y)
    with pytest.raises(ValueError, match="budget"):
        OnlineGaussianProcessClassifier(budget=0).fit(X, y)


def test_drift_is_followed_by_forgetting():
    """After the labels have turned over, forgetting learns the new ones, remembering does not."""
    X, y = blobs(3000)
    y[2000:] = 1 - y[2000:]
    make = {"kernel": 2.0 * RBF(1.0), "budget": 30}
    forgetful = OnlineGaussianProcessClassifier(**make, forget=0.99).fit(X, y)
    faithful = OnlineGaussianProcessClassifier(**make).fit(X, y)
    X_new, y_new = blobs(1000, seed=1)
    assert np.mean(forgetful.predict(X_new) == 1 - y_new) > 0.85
    assert np.mean(faithful.predict(X_new) == 1 - y_new) < 0.8
    assert forgetful.prequential_log_loss_ < faithful.prequential_log_loss_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_warm_up_tunes_by_the_evidence(n_classes):
    """The kernel is the dense estimator's on the first rows, however they came."""
    X, y = blobs(150, n_classes)
    clf = OnlineGaussianProcessClassifier(1.0 * RBF(1.0), warmup=100, budget=30)
    for part in np.array_split(np.arange(150), 7):
        clf.partial_fit(X[part], y[part], classes=np.arange(n_classes))
        assert np.all(np.isfinite(clf.predict_proba(X)))
    dense = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X[:100], y[:100])
    kernels = [clf.kernel_] if n_classes == 2 else clf.kernel_
    theta = np.concatenate([kernel.theta for kernel in kernels])
    np.testing.assert_allclose(theta, dense.kernel_.theta, atol=1e-6)
    whole = OnlineGaussianProcessClassifier(1.0 * RBF(1.0), warmup=100, budget=30).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X), whole.predict_proba(X), atol=1e-8)


def test_a_warm_up_of_one_class_says_that_it_tuned_nothing():
    """The kernel stays as given, with a warning."""
    X, _ = blobs(60)
    clf = OnlineGaussianProcessClassifier(3.0 * RBF(0.7), warmup=20)
    with pytest.warns(UserWarning, match="only one class"):
        clf.partial_fit(X[:20], np.zeros(20, int), classes=[0, 1])
    assert clf.kernel_ == 3.0 * RBF(0.7)


def test_the_regressor_tunes_its_noise():
    """A WhiteKernel tuned in the warm-up, and predictions within what it says."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 6.0, size=(600, 1))
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=600)
    reg = OnlineGaussianProcessRegressor(
        1.0 * RBF(1.0) + WhiteKernel(1.0), alpha=0.0, warmup=150, budget=25
    ).fit(X, y)
    # The noise variance 0.04 from 150 rows: a standard error of 12 %.
    assert reg.kernel_.k2.noise_level == pytest.approx(0.04, rel=0.35)
    mean, std = reg.predict(X, return_std=True)
    assert np.mean(np.abs(y - mean) < 2.0 * std) > 0.9
    assert np.max(np.abs(mean - np.sin(X[:, 0]))) < 0.15


def test_reconditioning_goes_on_with_another_kernel():
    """The estimator predicts as if it had been learned with the new kernel, near enough."""
    X, y = blobs(400)
    new = 3.0 * RBF(1.2)
    clf = OnlineGaussianProcessClassifier(2.0 * RBF(1.0), budget=100).fit(X, y)
    other = OnlineGaussianProcessClassifier(new, budget=100).fit(X, y)
    clf.recondition(new)
    assert clf.kernel_ == new
    # The sites are those that the old prior's predictions asked for: not quite the new one's.
    np.testing.assert_allclose(clf.predict_proba(X), other.predict_proba(X), atol=0.02)
    assert clf.log_evidence_ == pytest.approx(other.log_evidence_, abs=2.0)
    clf.partial_fit(X, y)
    with pytest.raises(ValueError, match="expected a scikit-learn kernel"):
        clf.recondition("rbf")


def test_names_and_learning_curves():
    """Feature names are kept and checked, and incremental learning curves work."""
    X, y = blobs(120)
    frame = pd.DataFrame(X, columns=["u", "v"])
    clf = OnlineGaussianProcessClassifier(2.0 * RBF(1.0), budget=20)
    clf.partial_fit(frame, y, classes=[0, 1])
    assert clf.feature_names_in_.tolist() == ["u", "v"]
    for estimator in (clf, OnlineGaussianProcessRegressor(budget=20)):
        sizes, train, test = learning_curve(
            estimator, X, y, exploit_incremental_learning=True, cv=3, train_sizes=[20, 40, 80]
        )
        assert sizes.tolist() == [20, 40, 80]
        assert np.all(np.isfinite(train))
        assert np.mean(test[-1]) > 0.5


CHECKPOINTED = [
    (OnlineGaussianProcessClassifier(2.0 * RBF(1.0), budget=15), 2),
    (OnlineGaussianProcessClassifier(2.0 * RBF([1.0, 2.0]), budget=15, forget=0.99), 3),
    (OnlineGaussianProcessClassifier(likelihood=Probit(0.5), warmup=50, optimizer=None), 2),
    (OnlineGaussianProcessRegressor(1.0 * RBF() + WhiteKernel(0.1), budget=15), 2),
]


@pytest.mark.parametrize(("estimator", "n_classes"), CHECKPOINTED, ids=lambda v: repr(v)[:60])
def test_resuming_from_a_file_is_bit_identical(estimator, n_classes, tmp_path):
    """Saved and loaded after every few rows, the stream ends in exactly the same numbers."""
    X, y = blobs(150, n_classes)
    classifies = isinstance(estimator, OnlineGaussianProcessClassifier)
    labels = {"classes": np.arange(n_classes)} if classifies else {}
    straight, resumed = (type(estimator)(**estimator.get_params(deep=False)) for _ in range(2))
    for part in np.array_split(np.arange(150), 12):
        straight.partial_fit(X[part], y[part], **labels)
        resumed.partial_fit(X[part], y[part], **labels)
        resumed.save(tmp_path / "model")
        resumed = type(estimator).load(tmp_path / "model")
        assert np.array_equal(resumed.predict(X), straight.predict(X))
        assert resumed.log_evidence_ == straight.log_evidence_
        assert resumed.prequential_log_loss_ == straight.prequential_log_loss_
        assert resumed.n_seen_ == straight.n_seen_
    for ours, theirs in zip(resumed._current.streams, straight._current.streams, strict=True):
        assert all(
            np.array_equal(a, b) for a, b in zip(ours.posterior, theirs.posterior, strict=True)
        )


def test_labels_and_names_survive_a_file(tmp_path):
    """Text labels and column names come back with the estimator."""
    X, y = blobs(50)
    frame = pd.DataFrame(X, columns=["u", "v"])
    clf = OnlineGaussianProcessClassifier().fit(frame, np.array(["no", "yes"])[y])
    clf.save(tmp_path / "model")
    found = OnlineGaussianProcessClassifier.load(tmp_path / "model")
    assert found.classes_.tolist() == ["no", "yes"]
    assert found.feature_names_in_.tolist() == ["u", "v"]
    assert np.array_equal(found.predict(frame), clf.predict(frame))


def test_files_that_do_not_fit_are_refused(tmp_path):
    """Another estimator's file, missing arrays, wrong shapes and unknown parameters: one line."""
    path = tmp_path / "model"
    X, y = blobs(50)
    OnlineGaussianProcessClassifier().fit(X, y).save(path)
    with pytest.raises(StorageError, match="expected 'OnlineGaussianProcessRegressor'"):
        OnlineGaussianProcessRegressor.load(path)
    kind = "OnlineGaussianProcessClassifier"
    header, arrays = storage.read(path, kind)
    broken = [
        (header, {k: v for k, v in arrays.items() if k != "0.L"}),
        (header, {**arrays, "0.L": arrays["0.L"][1:]}),
        (header, {**arrays, "0.mean": arrays["0.mean"] * np.nan}),
        ({**header, "parameters": {"budget": -3}}, arrays),
        ({**header, "parameters": {"system": "rm"}}, arrays),
        ({**header, "streams": []}, arrays),
        ({**header, "labels": {}}, arrays),
    ]
    for head, parts in broken:
        storage.write(path, kind, head, parts)
        with pytest.raises(StorageError) as caught:
            OnlineGaussianProcessClassifier.load(path)
        assert "\n" not in str(caught.value)


def test_the_former_name_of_novelty(tmp_path):
    """`tol` warns and is used, clones keep it, and files that hold it still open."""
    X, y = blobs(100)
    path, kernel = tmp_path / "model", 2.0 * RBF(1.0)
    new = OnlineGaussianProcessClassifier(kernel, novelty=0.1).fit(X, y)
    old = clone(OnlineGaussianProcessClassifier(kernel).set_params(tol=0.1))
    with pytest.warns(FutureWarning, match=r"use novelty=0\.1"):
        old.fit(X, y)
    with pytest.warns(FutureWarning, match=r"use novelty=0\.1"):
        old.partial_fit(X[:1], y[:1])
    assert len(old.basis_points_) == len(new.basis_points_) < 40
    new.save(path)
    kind = "OnlineGaussianProcessClassifier"
    header, arrays = storage.read(path, kind)
    parameters = header["parameters"]
    parameters["tol"] = parameters.pop("novelty")
    storage.write(path, kind, header, arrays)
    found = OnlineGaussianProcessClassifier.load(path)
    assert (found.novelty, found.tol) == (0.1, None)
    assert np.array_equal(
        found.partial_fit(X, y).predict_proba(X), new.partial_fit(X, y).predict_proba(X)
    )


def test_a_function_in_a_parameter_is_not_stored(tmp_path):
    """An optimizer of one's own would be code: saving says so."""
    clf = OnlineGaussianProcessClassifier(optimizer=lambda *a: None).fit(*blobs(20))
    with pytest.raises(StorageError, match="optimizer"):
        clf.save(tmp_path / "model")


KILLED = """
import os, signal, sys, time
import numpy as np
from cavity import OnlineGaussianProcessClassifier as Online

def more(clf, done):
    X = np.random.default_rng(done).normal(size=(5, 2))
    return clf.partial_fit(X, (X[:, 0] > X[:, 1]).astype(int), classes=[0, 1])

def stream(path, report):
    clf = Online.load(path) if os.path.exists(path) else more(Online(budget=8), 0)
    while True:
        clf = more(clf, clf.n_seen_)
        clf.save(path)
        os.write(report, b"%d\\n" % clf.n_seen_)

path, rng = sys.argv[1], np.random.default_rng(0)
for _ in range(20):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        stream(path, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as reports:
        said = reports.readline()
        time.sleep(rng.uniform(0.0, 0.02))
        os.kill(child, signal.SIGKILL)
        said += reports.read()
    os.waitpid(child, 0)
    # A report that was cut short is of a model that was saved all the same.
    assert Online.load(path).n_seen_ >= int(said.split(b"\\n")[-2])
found = Online.load(path)
straight = Online(budget=8)
for done in range(0, found.n_seen_, 5):
    straight = more(straight, done)
X = np.random.default_rng(1).normal(size=(100, 2))
assert np.array_equal(found.predict_proba(X), straight.predict_proba(X))
print(found.n_seen_)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be forked and killed")
def test_a_process_killed_at_any_moment_loses_nothing_that_was_saved(tmp_path):
    """Killed twenty times and resumed, the stream ends bit by bit as an undisturbed one would."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "model")],
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 100


def standardised(X, reference):
    return (X - reference.mean(axis=0)) / reference.std(axis=0)


def test_sonar_is_learned_in_a_single_sweep():
    """The founding paper's second figure: 0 or 1 training errors after a sweep, as a rule."""
    X, y = load_sonar(return_X_y=True)
    X = standardised(X, X) / np.sqrt(X.shape[1])
    errors = []
    for seed in range(10):
        rows = np.random.default_rng(seed).permutation(len(y))[:104]
        clf = OnlineGaussianProcessClassifier(DotProduct(1.0) ** 2, likelihood="step", budget=200)
        errors.append(np.sum(clf.fit(X[rows], y[rows]).predict(X[rows]) != y[rows]))
    assert np.median(errors) == 0
    assert np.sum(np.array(errors) <= 1) >= 9


@pytest.mark.slow
def test_orders_of_pima_make_little_difference():
    """Over 20 orders the test errors are on average within 3 of EP's."""
    X, y, X_test, y_test = pima()
    kernel = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X, y).kernel_
    dense = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
    reference = np.sum(dense.predict(X_test) != y_test)
    errors = []
    for seed in range(20):
        rows = np.random.default_rng(seed).permutation(len(y))
        clf = OnlineGaussianProcessClassifier(kernel, budget=50).fit(X[rows], y[rows])
        errors.append(np.sum(clf.predict(X_test) != y_test))
    spread = f"EP {reference}, mean {np.mean(errors)}, from {min(errors)} to {max(errors)}"
    assert abs(np.mean(errors) - reference) <= 3.0, spread


def pima():
    (X, y), (X_test, y_test) = (
        load_pima(subset=part, return_X_y=True) for part in ("train", "test")
    )
    return standardised(X, X), y, standardised(X_test, X), y_test


def banana(n, seed):
    """Two bent clouds, each inside the other's bend."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    side = 2.0 * y - 1.0
    u = rng.normal(size=n)
    v = side * (0.7 * u**2 - 0.5) + 0.6 * rng.normal(size=n)
    return np.column_stack([u, v]), y


@pytest.mark.slow
def test_fifty_basis_points_do_for_five_thousand_rows_of_banana():
    """The error with a budget of 50 is within 1 % of that of full EP on all rows."""
    X, y = banana(5000, 0)
    X_test, y_test = banana(20_000, 1)
    kernel = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X[:500], y[:500]).kernel_
    sparse = OnlineGaussianProcessClassifier(kernel, budget=50).fit(X, y)
    dense = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
    errors = [np.mean(clf.predict(X_test) != y_test) for clf in (sparse, dense)]
    assert errors[0] <= errors[1] + 0.01


def test_a_failed_fit_loses_nothing():
    """An estimator whose second fit fails predicts as it did after the first."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    clf = OnlineGaussianProcessClassifier(RBF(1.0), budget=20).fit(X, X[:, 0] > 0)
    before = clf.predict_proba(X[:5])
    clf.set_params(sweeps=2, forget=0.9)
    with pytest.raises(ValueError, match="sweeps"):
        clf.fit(np.column_stack([X, X]), np.arange(60) % 3)
    np.testing.assert_array_equal(clf.predict_proba(X[:5]), before)
