"""Fitted estimators in files: they come back without a fit, and bad files do not come in."""

import tracemalloc
import warnings
from functools import partial

import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

from cavity import GaussianProcessClassifier, GaussianProcessRegressor, storage, suggest
from cavity.estimators import load, save
from cavity.inference import METHODS
from cavity.storage import StorageError
from cavity.storage.codecs import kernel_to_json
from cavity.tables.model import Settings, fit_model, load_model, save_model
from cavity.tables.prepare import prepare
from cavity.tables.table import Table


def table(n=80, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    f = np.sin(2 * X[:, 0]) + X[:, 1]
    labels = np.array(["low", "middle", "high"])[
        np.digitize(f + rng.standard_normal(n), [-0.7, 0.7])
    ]
    return (
        X,
        f + 0.1 * rng.standard_normal(n),
        labels if classes == 3 else f + rng.standard_normal(n) > 0,
    )


NEW = np.random.default_rng(9).uniform(-3, 3, (500, 2))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model"


def there_and_back(estimator, path, monkeypatch):
    save(estimator, path)

    def refuse(*_, **__):
        raise AssertionError("something was inferred again")

    for cls in METHODS.values():
        monkeypatch.setattr(cls, "fit", refuse)
    found = load(path)
    monkeypatch.undo()
    return found


# With so few digits it is a matter of rounding whether the mode counts as reached.
@pytest.mark.filterwarnings("ignore:Inference by 'laplace' stopped")
def test_digits_do_not_depend_on_what_was_asked_before(path):
    """Variances with few digits left are the same before and after leave-one-out, and in a file."""
    X = 1e5 + np.random.default_rng(0).normal(size=(20, 1))
    model = GaussianProcessClassifier(0.5 * DotProduct(2.0), inference="laplace", optimizer=None)
    model.fit(X, X[:, 0] > 1e5)
    before = model.predict_proba(X)
    assert model.loo_proba_.shape == before.shape
    save(model, path)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    # Only the marginals' means are stored, and not how they were found.
    np.testing.assert_allclose(load(path).predict_proba(X), before, rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_classifiers_come_back(path, monkeypatch, classes):
    """Probabilities, classes and kernels are the same, and nothing is inferred."""
    X, _, labels = table(classes=classes)
    clf = GaussianProcessClassifier(1.0 * RBF([1.0, 1.0])).fit(X, labels)
    again = there_and_back(clf, path, monkeypatch)
    # The same numbers; only the kernel's are stored instead of their logarithms.
    np.testing.assert_allclose(again.predict_proba(NEW), clf.predict_proba(NEW), atol=1e-12)
    np.testing.assert_array_equal(again.predict(NEW), clf.predict(NEW))
    np.testing.assert_array_equal(again.classes_, clf.classes_)
    np.testing.assert_allclose(again.kernel_.theta, clf.kernel_.theta, rtol=1e-12, atol=1e-14)
    assert again.log_marginal_likelihood_value_ == clf.log_marginal_likelihood_value_
    assert again.converged_ == clf.converged_


@pytest.mark.parametrize("targets", [1, 2])
def test_regressors_come_back(path, monkeypatch, targets):
    """Means, deviations and covariances are the same, of one target and of two."""
    X, y, _ = table()
    y = y if targets == 1 else np.stack([y, 5.0 + y**2], axis=1)
    kernel = 1.0 * RBF(1.0) + WhiteKernel(0.1)
    reg = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y)
    again = there_and_back(reg, path, monkeypatch)
    # The same numbers; only the kernel's are stored instead of their logarithms.
    for ours, theirs in zip(again.predict(NEW, True), reg.predict(NEW, True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(
        again.predict(NEW[:9], return_cov=True)[1],
        reg.predict(NEW[:9], return_cov=True)[1],
        rtol=1e-9,
        atol=1e-11,
    )


TARGETS = {
    "poisson": lambda f, rng: rng.poisson(np.exp(f)),
    "negative_binomial": lambda f, rng: rng.poisson(np.exp(f) * rng.gamma(2.0, 0.5, len(f))),
    "gamma": lambda f, rng: np.exp(f) * rng.gamma(2.0, 0.5, len(f)),
    "student_t": lambda f, rng: f + 0.2 * rng.standard_t(3.0, len(f)),
    "censored": lambda f, rng: np.maximum(f + 0.2 * rng.standard_normal(len(f)), -0.5),
    "gaussian": lambda f, rng: f + 0.2 * rng.standard_normal(len(f)),
}


@pytest.mark.parametrize("inducing", [None, 15])
@pytest.mark.parametrize("name", TARGETS)
def test_regressors_of_any_target_come_back(path, monkeypatch, name, inducing):
    """Tuned parameters, level and trend are in the file: the same moments and quantiles."""
    X, f, _ = table(n=40)
    y, offset = TARGETS[name](f, np.random.default_rng(1)), np.linspace(-0.1, 0.1, 40)
    kernel = ConstantKernel(1.0, (0.5, 2.0)) * RBF(1.0, "fixed")
    options = {"normalize_y": True, "mean": "linear", "n_inducing": inducing}
    reg = GaussianProcessRegressor(kernel, likelihood=name, **options)
    with warnings.catch_warnings():
        # A bound that the tuning meets is no matter here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        reg.fit(X, y, offset=offset)
    again = there_and_back(reg, path, monkeypatch)
    for ours, theirs in zip(
        again.predict(NEW[:9], True, offset=0.2),
        reg.predict(NEW[:9], True, offset=0.2),
        strict=True,
    ):
        # The same numbers; only the kernel's are stored instead of their logarithms.
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    quantiles = (model.predict_quantiles(NEW[:3], [0.1, 0.9]) for model in (again, reg))
    np.testing.assert_allclose(*quantiles, rtol=1e-10, atol=1e-10)
    assert again.log_marginal_likelihood_value_ == reg.log_marginal_likelihood_value_
    assert again.mean == "linear"
    if name != "gaussian":
        np.testing.assert_allclose(again.likelihood_.theta, reg.likelihood_.theta, atol=1e-12)


def test_classifiers_with_a_trend_come_back(path, monkeypatch):
    """The trend of a classifier, and a share of wrong labels that was tuned, are in its file."""
    X, _, labels = table(n=50)
    how = {"optimizer": None, "mean": "linear", "inference": "mixture"}
    clf = GaussianProcessClassifier(1.0 * RBF(1.0), likelihood="noisy_probit", **how)
    clf.set_params(optimizer="fmin_l_bfgs_b", kernel=RBF(1.0, "fixed"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(X, labels)
    again = there_and_back(clf, path, monkeypatch)
    np.testing.assert_allclose(again.predict_proba(NEW), clf.predict_proba(NEW), atol=1e-12)
    slopes = (model._model.processes[0].trend.slopes for model in (again, clf))
    np.testing.assert_array_equal(*slopes)


def test_files_without_a_likelihood_of_each_function_open(path):
    """Files of version 2 have one likelihood for all functions, no level and no trend."""
    X, y, labels = table()
    for model in (
        GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None).fit(X, y),
        GaussianProcessClassifier(RBF(1.0), optimizer=None).fit(X, labels),
    ):
        save(model, path)

        def older(header, arrays):
            del header["fit"]["level"]
            for process in header["fit"]["processes"]:
                del process["likelihood"]

        damaged(path, older)
        np.testing.assert_array_equal(load(path).predict(NEW), model.predict(NEW))


BAD_TARGETS = {
    "an unknown likelihood": lambda h, a: _likelihood(h, {"likelihood": "x", "parameters": {}}),
    "a likelihood of words": lambda h, a: _likelihood(h, 5),
    "a likelihood of labels": lambda h, a: _likelihood(h, "probit"),
    "a negative shape": lambda h, a: _likelihood(
        h, {"likelihood": "gamma", "parameters": {"shape": -1.0, "shape_bounds": "fixed"}}
    ),
    "a level that is none": lambda h, a: h["fit"].update(level="x"),
    "an infinite level": lambda h, a: h["fit"].update(level=float("1e999")),
    "a long trend": lambda h, a: a.update({"0_trend_beta": np.ones(9)}),
    "a trend without units": lambda h, a: a.update({"0_trend_unit": np.zeros(())}),
    "a trend of nothing": lambda h, a: a.pop("0_trend_centre"),
}


def _likelihood(header, found):
    header["fit"]["processes"][0].update(likelihood=found)


@pytest.mark.parametrize("kind", BAD_TARGETS)
def test_targets_that_make_no_sense_are_refused(path, kind):
    """A damaged likelihood, level or trend is refused in one line."""
    X, f, _ = table(n=20)
    options = {"optimizer": None, "mean": "linear", "normalize_y": True}
    save(GaussianProcessRegressor(RBF(1.0), likelihood="gamma", **options).fit(X, np.exp(f)), path)
    load(path)
    damaged(path, BAD_TARGETS[kind])
    with pytest.raises(StorageError) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_inducing_points_come_back_without_the_rows(path, monkeypatch):
    """A model on inducing points is m² numbers: the same predictions, and none of the rows."""
    X, y, labels = table(n=2000, classes=3)
    options = {"n_inducing": 20, "optimizer": None}
    clf = GaussianProcessClassifier(1.0 * RBF([1.0, 1.0]), **options).fit(X, labels)
    reg = GaussianProcessRegressor(1.0 * RBF(1.0) + WhiteKernel(0.1), **options).fit(X, y)
    again = there_and_back(clf, path, monkeypatch)
    # Three classes with 20 points each: three arrays of 400 numbers for each, and less than as
    # much again; the rows would take 32,000 bytes more.
    assert path.stat().st_size < 3 * 3 * 400 * 8
    # The same numbers; only the kernel's are stored instead of their logarithms.
    np.testing.assert_allclose(again.predict_proba(NEW), clf.predict_proba(NEW), atol=1e-12)
    assert again.inducing_left_over_ == clf.inducing_left_over_
    assert again.inducing_gain_ == clf.inducing_gain_
    again = there_and_back(reg, path, monkeypatch)
    for ours, theirs in zip(again.predict(NEW, True), reg.predict(NEW, True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="not the training rows"):
        again.loo_mean_  # noqa: B018


def test_older_files_open(tmp_path):
    """A table's model file without a posterior, as older versions wrote it, is fitted again."""
    frame = pl.DataFrame({"x": table()[0][:, 0], "t": np.where(table()[2], "yes", "no")})
    data = prepare(Table(frame, "made.csv"), "t")
    settings = Settings("rbf")
    fitted, _ = fit_model(data, settings)
    save_model(tmp_path / "new", data, fitted, settings)
    header, _ = storage.read(tmp_path / "new", "table model")
    header |= {"kernel": kernel_to_json(fitted.kernel_)}
    del header["fit"]
    storage.write(tmp_path / "old", "table model", header, {"X": data.X, "y": data.y})
    old, new = (load_model(tmp_path / name).estimator for name in ("old", "new"))
    # The fixed point is found again, to the tolerance of inference.
    np.testing.assert_allclose(old.predict_proba(data.X), fitted.predict_proba(data.X), atol=1e-5)
    np.testing.assert_allclose(new.predict_proba(data.X), fitted.predict_proba(data.X), atol=1e-12)


def test_what_needs_the_rows_says_so(path):
    """Leave-one-out of a model from a file is refused with the reason."""
    X, _, labels = table()
    save(GaussianProcessClassifier(RBF(1.0), optimizer=None).fit(X, labels), path)
    with pytest.raises(ValueError, match="not the training rows"):
        load(path).loo_proba_  # noqa: B018


def damaged(path, change):
    header, arrays = storage.read(path, "fitted estimator")
    change(header, arrays)
    storage.write(path, "fitted estimator", header, arrays)


DAMAGE = {
    "a missing array": lambda h, a: a.pop("0_tau_0"),
    "another length": lambda h, a: a.update({"0_nu_0": np.ones(3)}),
    "not a number": lambda h, a: a.update({"0_alpha_0": a["0_alpha_0"] * np.nan}),
    "another type": lambda h, a: a.update({"0_tau_0": a["0_tau_0"].astype(str)}),
    "one input more": lambda h, a: h["fit"].update(n_features=3),
    "one function more": lambda h, a: h["fit"]["processes"].append(h["fit"]["processes"][0]),
    "no function": lambda h, a: h["fit"].update(processes=[]),
    "an unknown estimator": lambda h, a: h.update(estimator="Popen"),
    "an unknown method": lambda h, a: h.update(inference="magic"),
    "an unknown kernel": lambda h, a: h["fit"]["processes"][0]["kernel"].update(kernel="system"),
    "one class": lambda h, a: h["classes"].update(values=h["classes"]["values"][:1]),
    "no header": lambda h, a: h.clear(),
}


def fits(task, **options):
    """Return a fit on points of each kind that a file may hold."""
    X, y, labels = table(classes=3 if task == "three classes" else 2)
    options = {"n_inducing": 9, "optimizer": None, "random_state": 0} | options
    kernel = options.pop("kernel", 1.0 * RBF([1.0, 1.0]))
    if "class" in task:
        return GaussianProcessClassifier(kernel, **options).fit(X, labels)
    y = np.stack([y, 5.0 + y**2], axis=1) if task == "two targets" else y
    return GaussianProcessRegressor(kernel, **{"alpha": 0.1} | options).fit(X, y)


KINDS = {
    "laplace": ("classes", {"inference": "laplace", "likelihood": "logit"}),
    "variational": ("classes", {"inference": "variational"}),
    "naive": ("classes", {"inference": "naive"}),
    "step": ("classes", {"likelihood": "step", "kernel": RBF(1.0) + WhiteKernel(1.0)}),
    "three classes": ("three classes", {}),
    "chosen": ("classes", {"kernel": "auto", "optimizer": "fmin_l_bfgs_b"}),
    "one point": ("classes", {"n_inducing": 1}),
    "one target": ("one target", {}),
    "two targets": ("two targets", {"normalize_y": True}),
    "a bound": ("one target", {"inference": "variational"}),
    "noise of each row": ("one target", {"alpha": np.linspace(0.1, 0.2, 80)}),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_points_comes_back(path, monkeypatch, name):
    """Whatever the inference, the kernel and the targets: the same predictions, twice over."""
    model = fits(KINDS[name][0], **KINDS[name][1])
    again = there_and_back(model, path, monkeypatch)
    twice = there_and_back(again, path, monkeypatch)
    for other in (again, twice):
        if hasattr(model, "classes_"):
            np.testing.assert_allclose(other.predict_proba(NEW), model.predict_proba(NEW), 1e-9)
            np.testing.assert_array_equal(other.predict(NEW), model.predict(NEW))
            continue
        for ours, theirs in zip(other.predict(NEW, True), model.predict(NEW, True), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(again.inducing_left_over_, model.inducing_left_over_)


@pytest.mark.parametrize("n_inducing", [None, 9])
def test_noise_that_differs_is_as_unknown_in_a_file(path, n_inducing):
    """Where the noise of a new row is not known, a model from a file does not make one up."""
    model = fits("one target", alpha=np.linspace(0.1, 0.2, 80), n_inducing=n_inducing)
    save(model, path)
    again = load(path)
    save(again, path)
    for one in (model, again, load(path)):
        for ask in (one.predict_quantiles, partial(suggest, one)):
            with pytest.raises(ValueError, match="alpha differs from row to row"):
                ask(NEW[:20])
    even = fits("one target", n_inducing=n_inducing)
    save(even, path)
    np.testing.assert_allclose(load(path).predict_quantiles(NEW), even.predict_quantiles(NEW))
    damaged(path, lambda h, a: a.update(most_noise=np.array([0.1, 0.2])))
    with pytest.raises(StorageError, match="scaling does not fit"):
        load(path)


def test_names_of_columns_come_back(path):
    """A model from a file asks for the columns by their names."""
    X, _, labels = table()
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    save(GaussianProcessClassifier(RBF(1.0), n_inducing=5).fit(frame, labels), path)
    again = load(path)
    assert list(again.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[["b", "a"]])
    damaged(path, lambda h, a: h["feature_names"].append("c"))
    with pytest.raises(StorageError, match="names do not fit its columns"):
        load(path)


def test_inputs_that_are_no_vectors_are_not_stored(path):
    """A kernel that takes any objects has no columns to write down."""
    X, _, labels = table()
    model = GaussianProcessClassifier(ConstantKernel(1.0), optimizer=None).fit(X, labels)
    with pytest.raises(StorageError, match="need not be vectors"):
        save(model, path)


MALICE = {
    "very many columns": lambda h, a: h["fit"].update(n_features=10**12),
    "very many classes": lambda h, a: h["classes"].update(values=list(range(30_000))),
    "no posterior": lambda h, a: h["fit"]["processes"][0].update(log_evidence=[], reports=[]),
    "two posteriors": lambda h, a: h["fit"]["processes"][0].update(log_evidence=[0.0, 0.0]),
    "a scale of zero": lambda h, a: a.update(scale=np.zeros(())),
    "an origin of words": lambda h, a: a.update(origin=np.array("x")),
    "many scales": lambda h, a: a.update(scale=np.ones(5)),
    "no points": lambda h, a: a.update({"0_Z": np.empty((0, 2)), "0_W": np.empty((0, 0))}),
    "points of other columns": lambda h, a: a.update({"0_Z": np.ones((9, 3))}),
    "infinite points": lambda h, a: a.update({"0_Z": np.full((9, 2), np.inf)}),
    "a matrix of another size": lambda h, a: a.update({"0_V_0": np.ones((8, 9))}),
    "a determinant of several": lambda h, a: a.update({"0_half_log_det_0": np.ones(2)}),
    "dense, it says": lambda h, a: h["fit"]["processes"][0].update(dense=True),
}


@pytest.mark.parametrize("kind", MALICE)
@pytest.mark.parametrize("task", ["classes", "three classes", "one target"])
def test_malice_is_refused_before_it_costs_memory(path, kind, task):
    """Numbers that make no sense are refused in one line, and nothing large is allocated."""
    if "classes" in kind and "classes" not in task:
        pytest.skip("real targets have no classes")
    save(fits(task), path)
    damaged(path, MALICE[kind])
    tracemalloc.start()
    try:
        with pytest.raises(StorageError) as caught:
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", DAMAGE)
def test_parts_that_do_not_fit_are_refused(path, kind):
    """A file whose parts contradict each other is refused in one line."""
    X, _, labels = table()
    save(GaussianProcessClassifier(1.0 * RBF([1.0, 1.0]), optimizer=None).fit(X, labels), path)
    load(path)
    damaged(path, DAMAGE[kind])
    with pytest.raises(StorageError) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
