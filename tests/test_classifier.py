"""The classifier: scikit-learn's habits, weights, precomputed kernels, labels and errors."""

import inspect
import pickle

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.gaussian_process as reference
from common import CLASSIFYING
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    GenericKernelMixin,
    Kernel,
    StationaryKernelMixin,
    WhiteKernel,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cavity import GaussianProcessClassifier
from cavity.inference import EP, METHODS, Sequential
from cavity.likelihoods import Probit

FIXED = 2.0 * RBF(0.8)


def two_classes(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=n) > 0.7).astype(int)


def three_classes(n=45, seed=1):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 2)) + 1.5 * np.eye(3)[y][:, :2], y


def fixed(kernel=FIXED, **options):
    return GaussianProcessClassifier(kernel, optimizer=None, **options)


def slopes(function, theta, step=1e-5):
    steps = step * np.eye(len(theta))
    return np.array([(function(theta + h) - function(theta - h)) / (2 * step) for h in steps])


# Drop-in


def public_methods(cls):
    return [n for n, f in inspect.getmembers(cls, inspect.isfunction) if not n.startswith("_")]


def test_parameters_are_those_of_scikit_learn():
    """Every constructor parameter of scikit-learn's class exists with its kind and default."""
    ours = inspect.signature(GaussianProcessClassifier).parameters
    for name, theirs in inspect.signature(reference.GaussianProcessClassifier).parameters.items():
        assert (ours[name].kind, ours[name].default) == (theirs.kind, theirs.default)


@pytest.mark.parametrize("name", public_methods(reference.GaussianProcessClassifier))
def test_methods_take_the_arguments_of_scikit_learn(name):
    """Every public method of scikit-learn's class takes the same arguments here.

    Only ``y`` may be left out: a table in blocks brings its own targets.
    """
    theirs = inspect.signature(getattr(reference.GaussianProcessClassifier, name)).parameters
    ours = inspect.signature(getattr(GaussianProcessClassifier, name)).parameters
    positional = [p.name for p in theirs.values() if p.kind is not p.KEYWORD_ONLY]
    assert list(ours)[: len(positional)] == positional
    others = {p: of for p, of in theirs.items() if p != "y"}
    assert [ours[p].default for p in others] == [p.default for p in others.values()]


@pytest.mark.parametrize("data", [two_classes(), three_classes()], ids=["binary", "multiclass"])
def test_attributes_are_those_of_scikit_learn(data):
    """Every fitted attribute of scikit-learn's class exists after a fit."""
    theirs = reference.GaussianProcessClassifier(FIXED, optimizer=None).fit(*data)
    ours = fixed().fit(*data)
    for name in (n for n in vars(theirs) if n.endswith("_")):
        assert hasattr(ours, name)
    assert str(ours.kernel_) == str(theirs.kernel_)
    assert len(getattr(ours.base_estimator_, "estimators_", [])) in (0, 3)


def laplace_pair(optimizer):
    X, y = two_classes()
    kernel = 2.0 * RBF([0.8, 1.2])
    ours = GaussianProcessClassifier(
        kernel, optimizer=optimizer, inference="laplace", likelihood="logit"
    )
    theirs = reference.GaussianProcessClassifier(kernel, optimizer=optimizer)
    return ours.fit(X, y), theirs.fit(X, y)


def test_laplace_with_logit_is_scikit_learns_class():
    """At a fixed kernel evidence, gradient and latent function are scikit-learn's."""
    ours, theirs = laplace_pair(None)
    # scikit-learn's Newton stops at a gain of 1e-10 nats, about 1e-5 short of the mode.
    loose = {"rtol": 1e-5, "atol": 1e-5}
    value = theirs.log_marginal_likelihood_value_
    assert ours.log_marginal_likelihood_value_ == pytest.approx(value, abs=1e-6)
    theta = theirs.kernel_.theta + 0.3
    value, gradient = ours.log_marginal_likelihood(theta, eval_gradient=True)
    expected, slope = theirs.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == pytest.approx(expected, abs=1e-6)
    np.testing.assert_allclose(gradient, slope, **loose)
    X_new = np.random.default_rng(5).normal(size=(30, 2))
    for found, known in zip(
        ours.latent_mean_and_variance(X_new), theirs.latent_mean_and_variance(X_new), strict=True
    ):
        np.testing.assert_allclose(found, known, **loose)
    # Its averaged logistic function is a fit with five error functions.
    np.testing.assert_allclose(ours.predict_proba(X_new), theirs.predict_proba(X_new), atol=2e-3)
    np.testing.assert_array_equal(ours.predict(X_new), theirs.predict(X_new))


def test_tuned_laplace_reaches_scikit_learns_optimum():
    """Tuned hyperparameters and evidence are scikit-learn's."""
    ours, theirs = laplace_pair("fmin_l_bfgs_b")
    # Where L-BFGS stops; the evidence is flat there to second order.
    np.testing.assert_allclose(ours.kernel_.theta, theirs.kernel_.theta, atol=2e-3)
    value = theirs.log_marginal_likelihood_value_
    assert ours.log_marginal_likelihood_value_ == pytest.approx(value, abs=1e-5)


# Labels and several classes


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([7, 9]),
        np.array([0.0, 1.0]),
        np.array([3, -3], dtype=np.int8),
    ],
    ids=["str", "object", "bool", "int", "float", "int8"],
)
def test_labels_of_any_type(labels):
    """Labels come back with their own values and type; the order is that of np.unique."""
    X, y = two_classes()
    model = fixed().fit(X, labels[y])
    assert model.classes_.dtype == labels.dtype
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    assert set(model.predict(X)) <= set(labels)
    column = np.searchsorted(model.classes_, labels[1])
    np.testing.assert_array_equal(
        model.predict_proba(X)[:, column], fixed().fit(X, y).predict_proba(X)[:, 1]
    )


@pytest.mark.parametrize("inference", CLASSIFYING)
def test_one_vs_rest_gives_probabilities(inference):
    """Probabilities sum to one, leave-one-out ones too, and the largest is the prediction."""
    X, y = three_classes()
    model = fixed(inference=inference).fit(X, np.array(["a", "b", "c"])[y])
    proba = model.predict_proba(X)
    for p in (proba, model.loo_proba_):
        assert p.shape == (45, 3)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))
    assert model.score(X, np.array(["a", "b", "c"])[y]) > 0.7


def test_one_vs_one_votes_as_scikit_learn():
    """Pairwise votes agree with scikit-learn's; probabilities are refused in its words."""
    X, y = three_classes()
    ours = fixed(multi_class="one_vs_one", inference="laplace", likelihood="logit").fit(X, y)
    theirs = reference.GaussianProcessClassifier(FIXED, optimizer=None, multi_class="one_vs_one")
    theirs.fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    with pytest.raises(ValueError, match="one_vs_one") as known:
        theirs.predict_proba(X)
    with pytest.raises(ValueError, match="one_vs_one") as found:
        ours.predict_proba(X)
    assert str(found.value) == str(known.value)


@pytest.mark.parametrize("multi_class", ["one_vs_rest", "one_vs_one"])
@pytest.mark.parametrize("inference", ["ep", "laplace"])
def test_gradient_of_several_classes(inference, multi_class):
    """The mean evidence's gradient is its slope, for shared and for separate hyperparameters."""
    X, y = three_classes(24)
    model = fixed(inference=inference, multi_class=multi_class).fit(X, y)
    rng = np.random.default_rng(3)
    for size in (2, 6):
        theta = 0.3 * rng.normal(size=size)
        value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
        assert value == model.log_marginal_likelihood(theta)
        # Central differences of an evidence known to about 1e-10.
        expected = slopes(model.log_marginal_likelihood, theta)
        np.testing.assert_allclose(gradient, expected, atol=1e-5)
    with pytest.raises(ValueError, match=r"must be either 2 or 6. Obtained theta with shape \(3,"):
        model.log_marginal_likelihood(np.zeros(3))


def test_evidence_of_several_classes_is_the_mean():
    """The evidence is the mean over the binary problems, and the kernel a compound of theirs."""
    X, y = three_classes()
    model = fixed().fit(X, y)
    parts = [fixed().fit(X, y == k).log_marginal_likelihood_value_ for k in range(3)]
    # Both are converged to the same tolerance.
    assert model.log_marginal_likelihood_value_ == pytest.approx(np.mean(parts), rel=1e-12)
    assert isinstance(model.kernel_, CompoundKernel)
    assert model.log_marginal_likelihood(model.kernel_.theta) == pytest.approx(np.mean(parts))
    with pytest.raises(ValueError, match="only supported for binary classification"):
        model.latent_mean_and_variance(X)


# Errors


def message(estimator, *arguments):
    with pytest.raises(ValueError) as caught:  # noqa: PT011  (the message is what is compared)
        estimator.fit(*arguments)
    return str(caught.value)


X_OK, Y_OK = two_classes(10)


@pytest.mark.parametrize(
    "data",
    [
        (X_OK, np.ones(10)),
        (np.empty((0, 2)), np.empty(0)),
        (np.where(np.arange(20).reshape(10, 2) == 3, np.nan, X_OK), Y_OK),
        (np.where(np.arange(20).reshape(10, 2) == 3, np.inf, X_OK), Y_OK),
        (X_OK, np.where(Y_OK, np.nan, 0.0)),
        (X_OK[:, 0], Y_OK),
        (X_OK, Y_OK[:7]),
        (X_OK, None),
        (X_OK[None], Y_OK),
    ],
    ids=["one-class", "empty", "nan", "inf", "nan-label", "1d", "mismatch", "no-y", "3d"],
)
def test_bad_tables_get_scikit_learns_message(data):
    """Wrong tables are refused in scikit-learn's own words."""
    known = message(reference.GaussianProcessClassifier(), *data)
    assert message(GaussianProcessClassifier(), *data) == known


def test_continuous_labels_are_refused():
    """Real numbers are no classes."""
    found = message(GaussianProcessClassifier(), X_OK, X_OK[:, 0])
    assert "Unknown label type: continuous" in found


def test_bad_new_inputs_get_scikit_learns_message():
    """A different number of features at prediction is refused in scikit-learn's own words."""
    model = fixed().fit(X_OK, Y_OK)
    for method in (model.predict, model.predict_proba, model.latent_mean_and_variance):
        with pytest.raises(ValueError, match="has 3 features, but GaussianProcessClassifier is"):
            method(np.zeros((4, 3)))


def test_not_fitted():
    """Everything that needs a fit says so."""
    model = GaussianProcessClassifier()
    for method in (model.predict, model.predict_proba, model.latent_mean_and_variance):
        with pytest.raises(NotFittedError):
            method(X_OK)
    with pytest.raises(NotFittedError):
        model.log_marginal_likelihood()
    for name in ("loo_proba_", "kernel_", "base_estimator_"):
        with pytest.raises(NotFittedError):
            getattr(model, name)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"inference": "magic"}, [*METHODS]),
        ({"likelihood": "probt"}, ["probit", "logit", "step"]),
        ({"multi_class": "ovr"}, ["one_vs_rest", "one_vs_one"]),
        ({"likelihood": "step", "inference": "laplace"}, ["derivatives", "'ep'", "'probit'"]),
        ({"likelihood": "step", "inference": "variational"}, ["expected", "'ep'", "'probit'"]),
        ({"kernel": CompoundKernel([RBF(), RBF()])}, ["kernel cannot be a CompoundKernel"]),
        ({"kernel": "rbf"}, ["precomputed"]),
        ({"tol": 0.0}, ["tol"]),
        ({"kernel": RBF(1.0, (0, np.inf)), "n_restarts_optimizer": 1}, ["finite"]),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # log of a bound at zero
def test_wrong_parameters_are_explained(options, expected):
    """A wrong parameter's error names what would be right."""
    found = message(GaussianProcessClassifier(**options), X_OK, Y_OK)
    assert all(part in found for part in expected)


# Tables, pipelines, searches, copies


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames(frame):
    """Column names are kept and checked; numbers are those of the array."""
    X, y = two_classes()
    table = frame({"a": X[:, 0], "b": X[:, 1]})
    model = fixed().fit(table, y)
    assert list(model.feature_names_in_) == ["a", "b"]
    np.testing.assert_array_equal(model.predict_proba(table), fixed().fit(X, y).predict_proba(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame({"b": X[:, 1], "a": X[:, 0]}))


def test_pipeline_and_grid_search():
    """Inference and likelihood can be searched over inside a pipeline."""
    X, y = two_classes()
    model = make_pipeline(StandardScaler(), fixed())
    grid = {
        "gaussianprocessclassifier__inference": ["ep", "laplace", EP(power=0.5)],
        "gaussianprocessclassifier__likelihood": ["probit", "logit"],
    }
    search = GridSearchCV(model, grid, cv=3, scoring="neg_log_loss", error_score="raise")
    search.fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict_proba(X).shape == (40, 2)


@pytest.mark.parametrize("data", [two_classes(), three_classes()], ids=["binary", "multiclass"])
@pytest.mark.parametrize("inference", [*CLASSIFYING, EP(power=0.5), Sequential(sweeps=2)], ids=str)
def test_clones_and_pickles(inference, data):
    """A clone has the same parameters; a pickled model predicts the same to the last bit."""
    model = fixed(inference=inference)
    assert clone(model).get_params()["inference"] == inference
    again = pickle.loads(pickle.dumps(model.fit(*data)))
    np.testing.assert_array_equal(again.predict_proba(data[0]), model.predict_proba(data[0]))
    np.testing.assert_array_equal(again.loo_proba_, model.loo_proba_)
    assert again.log_marginal_likelihood() == model.log_marginal_likelihood()


def test_deterministic_given_the_seed():
    """The same random state gives the same restarts, fits and numbers."""
    X, y = two_classes()
    kernel = RBF(1.0, (1e-1, 1e1))
    fits = [
        GaussianProcessClassifier(kernel, n_restarts_optimizer=2, random_state=3).fit(X, y)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in fits))


def test_jobs_change_nothing():
    """Binary problems fitted side by side are the same fits."""
    X, y = three_classes(30)
    one, two = (fixed(n_jobs=jobs).fit(X, y).predict_proba(X) for jobs in (None, 2))
    np.testing.assert_array_equal(one, two)


def test_warm_start_begins_at_the_last_optimum():
    """A further fit starts tuning where the last one ended, for each binary problem."""
    starts = []

    def optimizer(objective, theta, bounds):
        starts.append(theta)
        return theta + 0.1, objective(theta + 0.1, eval_gradient=False)

    X, y = three_classes(20)
    model = GaussianProcessClassifier(RBF(1.0), optimizer=optimizer, warm_start=True)
    model.fit(X, y).fit(X, y)
    # Adding 0.1 is the only arithmetic done.
    np.testing.assert_allclose(np.ravel(starts), [0.0] * 3 + [0.1] * 3, atol=1e-15)
    assert model.set_params(warm_start=False).fit(X, y) is model
    np.testing.assert_array_equal(np.ravel(starts)[6:], [0.0] * 3)


def test_copy_X_train():
    """Training inputs are copied unless that is switched off."""
    X, y = two_classes()
    for keep in (True, False):
        model = fixed(copy_X_train=keep).fit(X, y)
        assert np.shares_memory(model.base_estimator_.X_train_, X) is not keep


# Kernels, optimizers, objects


class Tent(StationaryKernelMixin, GenericKernelMixin, Kernel):
    """Covariance by common letters, of strings: a kernel on things that are no vectors."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def __call__(self, X, Y=None, eval_gradient=False):
        Y = X if Y is None else Y
        K = self.scale * np.array([[float(len(set(a) & set(b))) for b in Y] for a in X])
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X):
        return self.scale * np.array([float(len(set(x))) for x in X])


class Halved(RBF):
    """A subclass that computes something else than its parent."""

    def __call__(self, X, Y=None, eval_gradient=False):
        found = super().__call__(X, Y, eval_gradient)
        return (0.5 * found[0], 0.5 * found[1]) if eval_gradient else 0.5 * found

    def diag(self, X):
        return 0.5 * super().diag(X)


def test_kernel_on_strings():
    """Inputs may be whatever the kernel takes."""
    words = ["abba", "acab", "baab", "xyz", "zyx", "yxz", "abc", "xxz"]
    y = [0, 0, 0, 1, 1, 1, 0, 1]
    model = fixed(Tent(0.5) + WhiteKernel(0.1)).fit(words, y)
    np.testing.assert_array_equal(model.predict(["cab", "zxy"]), [0, 1])
    weighted = fixed(Tent()).fit(words, y, sample_weight=[1, 1, 1, 1, 1, 1, 0, 2])
    assert weighted.loo_proba_.shape == (8, 2)


def test_own_kernel_subclass():
    """A user's subclass is computed by its own methods, not its parent's."""
    X, y = two_classes()
    ours, same = fixed(Halved(0.7)).fit(X, y), fixed(0.5 * RBF(0.7)).fit(X, y)
    # Equal kernels up to rounding, then inference converged to 1e-8.
    np.testing.assert_allclose(ours.predict_proba(X), same.predict_proba(X), atol=1e-8)
    tuned = GaussianProcessClassifier(Halved(0.7)).fit(X, y)
    assert tuned.log_marginal_likelihood_value_ > ours.log_marginal_likelihood_value_


def test_objects_for_inference_and_likelihood():
    """Objects carry their own options: a probit's noise scales the latent function."""
    X, y = two_classes()
    noisy = fixed(1.0 * RBF(0.8), likelihood=Probit(noise_variance=0.5)).fit(X, y)
    # Latent values divided by √s² turn noise s² into noise one.
    same = fixed(2.0 * RBF(0.8)).fit(X, y)
    np.testing.assert_allclose(noisy.predict_proba(X), same.predict_proba(X), atol=1e-7)
    value = same.log_marginal_likelihood_value_
    assert noisy.log_marginal_likelihood_value_ == pytest.approx(value, abs=1e-7)
    power = fixed(inference=EP(power=0.5)).fit(X, y).log_marginal_likelihood_value_
    bound = fixed(inference="variational").fit(X, y).log_marginal_likelihood_value_
    assert bound < power < fixed().fit(X, y).log_marginal_likelihood_value_
    once, twice = (fixed(inference=Sequential(sweeps=k)).fit(X, y) for k in (1, 2))
    assert once.log_marginal_likelihood_value_ == twice.log_marginal_likelihood_value_
    assert np.abs(once.predict_proba(X) - twice.predict_proba(X)).max() > 1e-3


def test_warning_at_a_bound_names_the_hyperparameter():
    """Tuning that a bound stops says so once, by name."""
    X, y = two_classes()
    kernel = ConstantKernel(1.0, "fixed") * RBF([1.0, 1.0], [(1e-2, 1e2), (3.0, 4.0)])
    with pytest.warns(ConvergenceWarning) as caught:
        GaussianProcessClassifier(kernel).fit(X, y)
    assert len(caught) == 1
    assert str(caught[0].message).startswith(
        "The optimal value found for dimension 1 of parameter k2__length_scale is close to the "
        "specified lower bound 3.0. "
    )
    assert caught[0].filename == __file__


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_binary_problems_warn_together(n_jobs):
    """Several classes give one warning of each kind, from workers too, at the caller's line."""
    X, y = three_classes()
    kernel = RBF(1.0, (0.9, 1.0))
    model = GaussianProcessClassifier(kernel, max_iter_predict=1, n_jobs=n_jobs)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    assert [
        " ".join(str(warning.message).split(" ")[:n])
        for warning, n in zip(caught, (3, 2), strict=True)
    ] == ["Inference by 'ep'", "The optimal"]
    assert not model.converged_
    assert all(warning.filename == __file__ for warning in caught)
    assert np.isfinite(model.predict_proba(X)).all()


def test_log_probabilities_in_the_tails():
    """Both log probabilities are accurate where one probability is next to nothing."""
    X, y = np.array([[-3.0], [3.0], [3.2]]), [0, 1, 1]
    model = fixed(1e4 * RBF(1.0)).fit(X, y, sample_weight=[1.0, 1.0, 1e8])
    log_proba = model.predict_log_proba(X)
    mean, variance = model.latent_mean_and_variance(X)
    assert log_proba.min() < -20.0
    with mpmath.workdps(40):
        latents = zip(mean, variance, strict=True)
        z = [mpmath.mpf(m) / mpmath.sqrt(1 + mpmath.mpf(v)) for m, v in latents]
        truth = [[mpmath.log(mpmath.ncdf(sign * x)) for sign in (-1, 1)] for x in z]
    # A relative error of eps in z is one of z² eps in log Φ(−z).
    np.testing.assert_allclose(log_proba, np.array(truth, dtype=float), rtol=1e-12)


def test_optimizer_none_and_callable():
    """None leaves the kernel alone; a callable gets the objective, its start and the bounds."""
    X, y = two_classes()
    assert fixed().fit(X, y).kernel_ == FIXED
    seen = {}

    def optimizer(obj_func, initial_theta, bounds):
        value, gradient = obj_func(initial_theta)
        seen.update(bounds=bounds, gradient=gradient)
        assert obj_func(initial_theta, eval_gradient=False) == pytest.approx(value)
        return initial_theta + 0.5, value

    model = GaussianProcessClassifier(FIXED, optimizer=optimizer).fit(X, y)
    np.testing.assert_array_equal(seen["bounds"], FIXED.bounds)
    assert seen["gradient"].shape == (2,)
    np.testing.assert_allclose(model.kernel_.theta, FIXED.theta + 0.5)
