"""The regressor: scikit-learn's numbers, leave-one-out by retraining, prior predictions, errors."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn.gaussian_process as reference
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    WhiteKernel,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cavity import GaussianProcessRegressor
from cavity.inference import METHODS
from cavity.likelihoods import Gaussian

KERNEL = 1.5 * RBF([0.9, 1.3])
# Two factorisations of matrices of condition number below 1e4.
CLOSE = {"rtol": 1e-8, "atol": 1e-10}


def data(n=30, targets=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.sin(X @ np.array([[1.0, 0.3, -1.0], [0.5, 2.0, 1.0]])) + 0.1 * rng.normal(size=(n, 3))
    return X, 2.0 + (y[:, 0] if targets is None else y[:, :targets]), rng.normal(size=(12, 2))


def pair(X, y, kernel=KERNEL, *, optimizer=None, **options):
    ours = GaussianProcessRegressor(kernel, optimizer=optimizer, **options).fit(X, y)
    theirs = reference.GaussianProcessRegressor(kernel, optimizer=optimizer, **options).fit(X, y)
    return ours, theirs


def assert_same_predictions(ours, theirs, X):
    for options in ({"return_std": True}, {"return_cov": True}):
        for found, known in zip(
            ours.predict(X, **options), theirs.predict(X, **options), strict=False
        ):
            assert found.shape == known.shape
            np.testing.assert_allclose(found, known, **CLOSE)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), **CLOSE)


# Drop-in


def public_methods(cls):
    return [n for n, f in inspect.getmembers(cls, inspect.isfunction) if not n.startswith("_")]


def test_parameters_are_those_of_scikit_learn():
    """Every constructor parameter of scikit-learn's class exists with its kind and default."""
    ours = inspect.signature(GaussianProcessRegressor).parameters
    for name, theirs in inspect.signature(reference.GaussianProcessRegressor).parameters.items():
        assert (ours[name].kind, ours[name].default) == (theirs.kind, theirs.default)


@pytest.mark.parametrize("name", public_methods(reference.GaussianProcessRegressor))
def test_methods_take_the_arguments_of_scikit_learn(name):
    """Every public method of scikit-learn's class takes the same arguments here.

    Only ``y`` may be left out: a table in blocks brings its own targets.
    """
    theirs = inspect.signature(getattr(reference.GaussianProcessRegressor, name)).parameters
    ours = inspect.signature(getattr(GaussianProcessRegressor, name)).parameters
    positional = [p.name for p in theirs.values() if p.kind is not p.KEYWORD_ONLY]
    assert list(ours)[: len(positional)] == positional
    others = {p: of for p, of in theirs.items() if p != "y"}
    assert [ours[p].default for p in others] == [p.default for p in others.values()]


@pytest.mark.parametrize("targets", [None, 1, 3])
@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize(
    ("kernel", "alpha"),
    [
        (KERNEL, 0.05),
        (KERNEL, np.linspace(0.01, 0.2, 30)),
        (KERNEL + WhiteKernel(0.1), 1e-10),
        (Matern(0.3, nu=0.5), 0.0),
        (DotProduct(0.5) + ConstantKernel(2.0, "fixed"), 0.1),
    ],
    ids=["scalar", "array", "white", "zero", "linear"],
)
def test_is_scikit_learns_regressor(kernel, alpha, normalize_y, targets):
    """At a fixed kernel every number and shape is scikit-learn's."""
    X, y, X_new = data(targets=targets)
    ours, theirs = pair(X, y, kernel, alpha=alpha, normalize_y=normalize_y)
    assert_same_predictions(ours, theirs, X_new)
    for name in (n for n in vars(theirs) if n.endswith("_") and n != "kernel_"):
        found, known = getattr(ours, name), getattr(theirs, name)
        np.testing.assert_allclose(found, known, err_msg=name, **CLOSE)
    theta = theirs.kernel_.theta + 0.2
    value, gradient = ours.log_marginal_likelihood(theta, eval_gradient=True)
    expected, slope = theirs.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == pytest.approx(expected, rel=1e-8)
    np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-6)
    assert ours.log_marginal_likelihood(theta) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("targets", [None, 3])
def test_samples_are_scikit_learns(targets):
    """The same seed draws the same functions."""
    X, y, X_new = data(targets=targets)
    # Draws go through an SVD of the covariance, whose near-degenerate directions amplify rounding.
    ours, theirs = pair(X, y, KERNEL + WhiteKernel(0.5), alpha=0.1)
    found, known = (m.sample_y(X_new, n_samples=4, random_state=3) for m in (ours, theirs))
    assert found.shape == known.shape
    np.testing.assert_allclose(found, known, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("n_targets", [None, 1, 3])
@pytest.mark.parametrize("kernel", [None, KERNEL])
def test_prior_predictions(kernel, n_targets):
    """Before the fit predictions come from the prior, as in scikit-learn."""
    _, _, X_new = data()
    ours = GaussianProcessRegressor(kernel, n_targets=n_targets)
    theirs = reference.GaussianProcessRegressor(kernel, n_targets=n_targets)
    assert_same_predictions(ours, theirs, X_new)
    draws = [m.sample_y(X_new, n_samples=2, random_state=0) for m in (ours, theirs)]
    assert draws[0].shape == draws[1].shape


@pytest.mark.parametrize("targets", [None, 2])
def test_tuning_reaches_scikit_learns_evidence(targets):
    """Tuned by the evidence, with restarts, no worse an optimum is found than scikit-learn's."""
    X, y, _ = data(targets=targets)
    kernel = 1.0 * RBF([1.0, 1.0], (1e-2, 1e3)) + WhiteKernel(0.1)
    options = {"n_restarts_optimizer": 2, "random_state": 0, "normalize_y": True}
    ours, theirs = pair(X, y, kernel, optimizer="fmin_l_bfgs_b", **options)
    # Where L-BFGS stops.
    value = theirs.log_marginal_likelihood_value_
    assert ours.log_marginal_likelihood_value_ == pytest.approx(value, abs=1e-4)
    np.testing.assert_allclose(ours.kernel_.theta, theirs.kernel_.theta, atol=2e-2)


def test_default_kernel_is_tuned():
    """None is a constant times an RBF, both free, as the documentation says."""
    X, y, _ = data()
    model = GaussianProcessRegressor(alpha=0.01).fit(X, y)
    assert len(model.kernel_.theta) == 2
    start = model.log_marginal_likelihood(np.zeros(2))
    assert model.log_marginal_likelihood_value_ > start


# Leave-one-out


@pytest.mark.parametrize("targets", [None, 2])
@pytest.mark.parametrize(
    ("kernel", "alpha"),
    [(KERNEL, 0.05), (KERNEL, np.linspace(0.01, 0.2, 30)), (KERNEL + WhiteKernel(0.1), 1e-10)],
    ids=["scalar", "array", "white"],
)
def test_leave_one_out_is_retraining(kernel, alpha, targets):
    """Leave-one-out means and deviations are those of thirty real fits, to rounding."""
    X, y, _ = data(targets=targets)
    model = GaussianProcessRegressor(kernel, optimizer=None, alpha=alpha).fit(X, y)
    noise = np.broadcast_to(alpha, 30)
    for i in range(30):
        rest = np.arange(30) != i
        other = reference.GaussianProcessRegressor(kernel, optimizer=None, alpha=noise[rest])
        mean, std = other.fit(X[rest], y[rest]).predict(X[[i]], return_std=True)
        np.testing.assert_allclose(model.loo_mean_[[i]], mean, **CLOSE)
        # A prediction of the target has the example's own noise; a WhiteKernel's is in std.
        np.testing.assert_allclose(model.loo_std_[[i]] ** 2, std**2 + noise[i], **CLOSE)


def test_leave_one_out_on_the_scale_of_the_targets():
    """With normalised targets leave-one-out comes back on their own scale."""
    X, y, _ = data()
    plain = GaussianProcessRegressor(KERNEL, optimizer=None, alpha=0.05)
    scale = y.std()
    plain.fit(X, (y - y.mean()) / scale)
    model = clone(plain).set_params(normalize_y=True).fit(X, y)
    np.testing.assert_allclose(model.loo_mean_, plain.loo_mean_ * scale + y.mean(), **CLOSE)
    np.testing.assert_allclose(model.loo_std_, plain.loo_std_ * scale, **CLOSE)


# Inference


@pytest.mark.parametrize("inference", ["ep", "laplace", "variational", "sequential"])
@pytest.mark.parametrize("alpha", [0.1, np.linspace(0.05, 0.2, 30)], ids=["scalar", "array"])
def test_exact_inferences_agree(inference, alpha):
    """With Gaussian noise every consistent inference is the exact one."""
    X, y, X_new = data()
    exact = GaussianProcessRegressor(KERNEL, optimizer=None, alpha=alpha).fit(X, y)
    model = clone(exact).set_params(inference=inference).fit(X, y)
    for found, known in zip(
        model.predict(X_new, return_std=True), exact.predict(X_new, return_std=True), strict=True
    ):
        # Inference stops at a residual of 1e-8.
        np.testing.assert_allclose(found, known, rtol=1e-6)
    value = exact.log_marginal_likelihood_value_
    assert model.log_marginal_likelihood_value_ == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("inference", [m for m in METHODS if METHODS[m].serves(Gaussian())])
def test_every_inference_finds_the_mean(inference):
    """The mean field methods, too, have the exact mean: theirs is a quadratic problem."""
    X, y, X_new = data()
    exact = GaussianProcessRegressor(KERNEL, optimizer=None, alpha=0.3).fit(X, y)
    model = clone(exact).set_params(inference=inference).fit(X, y)
    np.testing.assert_allclose(model.predict(X_new), exact.predict(X_new), rtol=1e-6)


# Habits


def test_pipelines_frames_clones_and_pickles():
    """A pipeline on a frame can be searched, cloned and pickled."""
    X, y, _ = data()
    table = pd.DataFrame(X, columns=["a", "b"])
    model = make_pipeline(
        StandardScaler().set_output(transform="pandas"), GaussianProcessRegressor()
    )
    grid = {
        "gaussianprocessregressor__alpha": [0.01, 0.1],
        "gaussianprocessregressor__kernel": [KERNEL],
    }
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(table, y)
    assert search.best_score_ > 0.5
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict(table), search.predict(table))
    assert list(search.best_estimator_[-1].feature_names_in_) == ["a", "b"]


def test_inputs_are_not_touched():
    """Neither inputs nor targets are changed; the inputs are copied unless that is switched off."""
    X, y, _ = data()
    before = X.copy(), y.copy()
    for keep in (True, False):
        model = GaussianProcessRegressor(KERNEL, alpha=0.1, normalize_y=True, copy_X_train=keep)
        model.fit(X, y)
        assert np.shares_memory(model.X_train_, X) is not keep
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_constant_targets():
    """Targets without any variance are normalised to zeros, not to NaN."""
    X, _, X_new = data()
    model = GaussianProcessRegressor(KERNEL, optimizer=None, alpha=0.1, normalize_y=True)
    # The mean of thirty equal numbers is one rounding away from them.
    np.testing.assert_allclose(model.fit(X, np.full(30, 7.3)).predict(X_new), 7.3, rtol=1e-15)


# Errors


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"alpha": np.ones(7)}, r"\(7 != 30\)"),
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": np.full(30, -1.0)}, "at least zero"),
        ({"n_targets": 2}, r"Got 1 != 2"),
        ({"inference": "exakt"}, "variational"),
        ({"kernel": "rbf"}, "precomputed"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_parameters_are_explained(options, text):
    """A wrong parameter's error says what is wrong."""
    X, y, _ = data()
    with pytest.raises(ValueError, match=text):
        GaussianProcessRegressor(**options).fit(X, y)


def test_noise_of_zero_on_a_singular_kernel():
    """Without noise a singular kernel is an error that names kernel and remedy."""
    X, y, _ = data()
    model = GaussianProcessRegressor(DotProduct(1.0), alpha=0.0, optimizer=None)
    with pytest.raises(np.linalg.LinAlgError, match=r"DotProduct.*alpha"):
        model.fit(X, y)


def test_std_and_cov_together_are_refused():
    """As in scikit-learn, only one of the two is returned."""
    X, y, _ = data()
    model = GaussianProcessRegressor(KERNEL, alpha=0.1, optimizer=None).fit(X, y)
    with pytest.raises(RuntimeError, match="At most one"):
        model.predict(X, return_std=True, return_cov=True)


def test_not_fitted():
    """What needs a fit says so."""
    for name in ("loo_mean_", "loo_std_", "alpha_", "kernel_", "L_"):
        with pytest.raises(NotFittedError):
            getattr(GaussianProcessRegressor(), name)
    with pytest.raises(NotFittedError):
        GaussianProcessRegressor().log_marginal_likelihood()


def test_warning_at_a_bound_names_the_hyperparameter():
    """Tuning that a bound stops says so once, by name, at the caller's line."""
    X, y, _ = data()
    kernel = 1.0 * RBF([1.0, 0.1], [(1e-2, 1e2), (1e-2, 1e-1)])
    with pytest.warns(
        ConvergenceWarning, match="dimension 1 of parameter k2__length_scale is"
    ) as caught:
        GaussianProcessRegressor(kernel, alpha=0.1).fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
