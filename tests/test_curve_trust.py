"""What a learning curve says that should not be believed is marked, and nothing else is."""

import warnings
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.preprocessing import StandardScaler

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    learning_curve,
    plan,
    simulate_learning_curve,
)
from cavity.datasets import load_boston

LAWS = ["subsample", "bootstrap"]
SIZES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


def test_rise_of_the_pool_error_is_marked():
    """Where the theory's error on all rows rises and that of refits falls, one warning says so."""
    rng = np.random.default_rng(2)
    # Most rows are far from all others, and a few have a near twin.
    X, y = 20.0 * rng.standard_normal((16, 2)), rng.standard_normal(16)
    X[:, 1] = X[:, 0]
    reg = GaussianProcessRegressor(5.0 * RBF(1.0), alpha=0.015, optimizer=None).fit(X, y)
    about = {"train_sizes": [2, 6, 11, 16], "resampling": "bootstrap"}
    with pytest.warns(ConvergenceWarning, match="simulate_learning_curve") as caught:
        curve = learning_curve(reg, X, y, **about)
    assert len(caught) == 1
    assert "larger at train_sizes [11.0, 16.0]" in str(caught[0].message)
    assert curve.converged.tolist() == [True, True, False, False]
    refits = simulate_learning_curve(reg, X, y, **about, n_repeats=200, random_state=0)
    assert np.all(np.diff(refits.pool_error) < 0.0)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("outlier", [0.0, 200.0])
def test_ordinary_tables_are_not_marked(law, outlier):
    """Boston, pure noise under a kernel that is wrong for it, and one outlier give no warning."""
    X, y = load_boston(return_X_y=True)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(40)
    y[3] += outlier
    noise[3] += outlier
    tables = [
        (StandardScaler().fit_transform(X)[:100], y[:100] - y[:100].mean()),
        (rng.standard_normal((40, 4)), noise),
    ]
    for table, targets in tables:
        reg = GaussianProcessRegressor(RBF(3.0), alpha=0.3, optimizer=None).fit(table, targets)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            curve = learning_curve(reg, table, targets, train_sizes=SIZES, resampling=law)
        assert np.all(curve.converged)


def test_counts_are_not_marked():
    """Counts, whose expected value is far from linear in what is learned, give no warning."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 6.0, (40, 1))
    y = rng.poisson(np.exp(1.0 + np.sin(x[:, 0])))
    reg = GaussianProcessRegressor(1.0 * RBF(1.0), likelihood="poisson", optimizer=None).fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learning_curve(reg, x, y, train_sizes=SIZES)


@pytest.mark.parametrize("law", LAWS)
def test_small_errors_are_solved_for(law):
    """Squared errors far below the variance are as exact as the tolerance, not as the variance."""
    rng = np.random.default_rng(0)
    X, y = np.round(rng.standard_normal((25, 4))), np.full(25, 3.0)
    kernel = 1.8e4 * DotProduct(1.0)
    reg = GaussianProcessRegressor(kernel, alpha=30.0, optimizer=None).fit(X, y)
    rough, fine = (
        learning_curve(reg, X, y, train_sizes=[17, 25], resampling=law, tol=tol, theory="cavity")
        for tol in (3e-4, 1e-10)
    )
    assert np.all(fine.pool_error < 1e-4 * fine.posterior_variance)
    # The change of the last iteration, which the tolerance bounds, is not all that is left.
    assert_allclose(rough.pool_error, fine.pool_error, rtol=1e-2)
    assert_allclose(rough.test_error, fine.test_error, rtol=1e-2)


@pytest.fixture(scope="module", params=[None, 20], ids=["dense", "inducing"])
def short_curve(request):
    """A curve of forty labelled rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    model = GaussianProcessClassifier(4.0 * RBF(1.5), optimizer=None, n_inducing=request.param)
    return learning_curve(model, X, X[:, 0] + 0.5 * rng.standard_normal(40) > 0.0, retune=False)


def failing(curve, *places):
    """The same curve, but no equations of these sizes (by their order) are ever solved."""

    def solve(pool, sizes, law):
        solved = curve.source.solve(pool, sizes, law)
        for k in places:
            # What is found instead: the averages at another size.
            solved[k] = solved[0]._replace(converged=False)
        return solved

    found = copy(curve)
    found.source = replace(curve.source, solve=solve)
    return found


@pytest.mark.parametrize("measure", ["error", "log_loss"])
def test_forecasts_leave_out_what_is_not_solved(short_curve, measure):
    """Forecasts from all sizes but one are nearly those from all, without a warning."""
    n = np.array([10.0, 40.0, 80.0, 400.0])
    want = short_curve.forecast(n, measure)
    for place in (1, -3):
        found = failing(short_curve, place).forecast(n, measure)
        # The other sizes are as many as a floor, an amplitude and a power need, and are exact.
        assert_allclose(found.value, want.value, rtol=0.02)


@pytest.mark.parametrize("places", [(-1,), range(-8, -1)], ids=["last", "most"])
def test_forecasts_from_what_is_not_solved_warn(short_curve, places):
    """Where the last size or too many others are not solved, one warning says what to do."""
    curve = failing(short_curve, *places)
    with pytest.warns(ConvergenceWarning, match="raise max_iter") as caught:
        [curve.forecast(80, measure) for measure in ("error", "log_loss")]
    assert len(caught) == 1


def test_plans_from_what_is_not_solved_warn(short_curve):
    """Plans warn once if how much predictions vary is not known at one of their sizes."""
    with pytest.warns(ConvergenceWarning, match="raise max_iter") as caught:
        plan(failing(short_curve, 1), error=0.2)
    assert len(caught) == 1
