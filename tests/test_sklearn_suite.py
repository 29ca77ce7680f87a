"""scikit-learn's own tests of its two estimators, run with ours in their place.

Its wheel contains them. They are loaded afresh, so that scikit-learn's modules stay as they are.
"""

from importlib import util

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, DotProduct

import cavity
from cavity import GaussianProcessClassifier, GaussianProcessRegressor

THEIRS = {"test_gpc": "GaussianProcessClassifier", "test_gpr": "GaussianProcessRegressor"}
# Several of their kernels end at bounds, on purpose or not, and one has infinite bounds.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The optimal value found"),
    pytest.mark.filterwarnings("ignore:invalid value encountered in log:RuntimeWarning"),
    # A constant of 1e5 with noise of 1e-10 predicts 0 or 2 for a mean of 1.2, theirs as well.
    pytest.mark.filterwarnings("ignore:Predictions are rounded"),
]


def loaded(name):
    """Return a copy of one of scikit-learn's test modules that tests our class, if there is one."""
    try:
        spec = util.find_spec(f"sklearn.gaussian_process.tests.{name}")
    except ModuleNotFoundError:
        spec = None
    if spec is None:
        pytest.skip("this build of scikit-learn comes without its tests", allow_module_level=True)
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert hasattr(module, THEIRS[name])
    setattr(module, THEIRS[name], getattr(cavity, THEIRS[name]))
    return module


def lenient(test):
    """Let an expected failure that is not strict in scikit-learn's suite not be strict in ours."""
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "xfail":
            mark.kwargs.setdefault("strict", False)
    return test


def suite(name):
    """Return a class with the tests of a module."""
    tests = {key: lenient(f) for key, f in vars(loaded(name)).items() if key.startswith("test_")}
    return type(f"Test{THEIRS[name]}", (), {key: staticmethod(f) for key, f in tests.items()})


@pytest.fixture
def global_random_seed():
    """scikit-learn's fixture of this name has any number from 0 to 99; 42 is its default."""
    return 42


TestClassifier, TestRegressor = map(suite, THEIRS)


# What theirs leave open


def problem(estimator, classes):
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = X[:, 0] + X[:, 1] ** 2
    is_classifier = estimator is GaussianProcessClassifier
    return X, np.digitize(
        y, np.quantile(y, np.arange(1, classes) / classes)
    ) if is_classifier else y


def answers(model, X):
    if isinstance(model, GaussianProcessClassifier):
        return [model.predict_proba(X), model.loo_proba_]
    return [*model.predict(X, return_std=True), model.loo_mean_, model.loo_std_, model.alpha_]


@pytest.mark.parametrize(
    ("estimator", "classes"),
    [
        (GaussianProcessClassifier, 2),
        (GaussianProcessClassifier, 3),
        (GaussianProcessRegressor, 0),
    ],
)
def test_a_model_that_moves_moves_as_a_whole(estimator, classes):
    """With clone_kernel=False predictions are those of a fit with the new kernel, not a mixture."""
    X, y = problem(estimator, classes)
    options = {} if classes else {"alpha": 0.01}
    model, theta = estimator(1.0 * RBF(1.0), **options).fit(X, y), np.log([2.0, 0.7])
    fixed = estimator(2.0 * RBF(0.7), optimizer=None, **options).fit(X, y)
    value, slope = model.log_marginal_likelihood(theta, eval_gradient=True)
    moved, moved_slope = model.log_marginal_likelihood(theta, True, clone_kernel=False)
    assert (moved, *moved_slope) == pytest.approx((value, *slope), rel=1e-12)
    assert model.log_marginal_likelihood() == model.log_marginal_likelihood_value_ == moved
    for ours, wanted in zip(answers(model, X[:9] + 0.1), answers(fixed, X[:9] + 0.1), strict=True):
        # An inference from another start, to its tolerance.
        np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-7)


def test_a_model_stays_where_it_cannot_move():
    """Without a positive definite covariance the evidence is −∞ and the model as it was."""
    X = np.arange(6.0)[:, None]
    model = GaussianProcessRegressor(DotProduct(1.0), alpha=1e-3, optimizer=None)
    model.fit(X, np.sin(X[:, 0]))
    before = model.predict(X)
    assert model.log_marginal_likelihood([40.0], clone_kernel=False) == -np.inf
    assert np.array_equal(model.predict(X), before)


def test_inducing_points_do_not_move():
    """They are chosen for one kernel; a request for another one is refused."""
    X, y = problem(GaussianProcessRegressor, 0)
    model = GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None, n_inducing=10).fit(X, y)
    with pytest.raises(ValueError, match="clone_kernel"):
        model.log_marginal_likelihood([0.3], clone_kernel=False)


@pytest.mark.parametrize("estimator", [GaussianProcessClassifier, GaussianProcessRegressor])
def test_evidences_are_numpy_scalars(estimator):
    """Every evidence is a NumPy scalar: next to a float32 it keeps its digits."""
    X, y = problem(estimator, 2)
    model = estimator(RBF(1.0), optimizer=None).fit(X, y)
    found = [model.log_marginal_likelihood(), model.log_marginal_likelihood([0.1])]
    found += [model.log_marginal_likelihood_value_, model.log_marginal_likelihood([0.1], True)[0]]
    assert {type(value) for value in found} == {np.float64}


@pytest.mark.parametrize("estimator", [GaussianProcessClassifier, GaussianProcessRegressor])
def test_compound_kernels_are_refused(estimator):
    """A kernel with several matrices is refused before anything asks for its parts."""
    with pytest.raises(ValueError, match="kernel cannot be a CompoundKernel"):
        estimator(CompoundKernel(0)).fit([[0.0], [1.0]], [0, 1])
