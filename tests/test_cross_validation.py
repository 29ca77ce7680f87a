"""Cross-validation that tunes again in every fold."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.metrics import log_loss
from sklearn.model_selection import LeaveOneOut, RepeatedKFold, ShuffleSplit, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cavity import GaussianProcessClassifier, GaussianProcessRegressor, cross_val_tuned
from cavity.datasets import load_crabs


def test_agrees_with_leave_one_out():
    """Ten folds give nearly the log loss that leave-one-out reports for a simple kernel."""
    X, y = load_crabs(return_X_y=True)
    kernel = ConstantKernel(1.0, (1e-5, 1e9)) * RBF(1.0, (1e-5, 1e9))
    model = make_pipeline(StandardScaler(), GaussianProcessClassifier(kernel)).fit(X, y)
    found = cross_val_tuned(model, X, y)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    # Folds train on a tenth less.
    assert abs(log_loss(y, found) - log_loss(y, model[-1].loo_proba_)) < 0.03


def test_regression_has_mean_and_deviation():
    """A regressor's folds give a mean and a standard deviation for each row."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (60, 1))
    y = np.sin(2.0 * X[:, 0]) + 0.2 * rng.standard_normal(60)
    model = GaussianProcessRegressor(1.0 * RBF(1.0) + WhiteKernel())
    mean, std = cross_val_tuned(model, X, y, cv=5, n_jobs=1)
    z = (y - mean) / std
    # Sixty standard normal deviations.
    assert 0.6 < np.std(z) < 1.5


def test_a_class_that_a_fold_lacks():
    """A class that is missing from a fold's training rows gets a probability above zero."""
    X = np.arange(8.0)[:, None]
    y = np.array(["a"] * 4 + ["b"] * 3 + ["c"])
    rows = np.arange(8)
    folds = [(rows[:7], rows[7:]), (rows[1:], rows[:1]), (rows[[0, 7]], rows[1:7])]
    found = cross_val_tuned(GaussianProcessClassifier(), X, y, cv=folds)
    assert found.shape == (8, 3)
    assert np.all(found > 0.0)


def nine():
    X = np.arange(9.0)[:, None]
    return GaussianProcessRegressor(1.0 * RBF(2.0), alpha=0.1, optimizer=None), X, np.sin(X[:, 0])


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (TimeSeriesSplit(2), "TimeSeriesSplit.* never tests 3 and tests 0 several times"),
        (ShuffleSplit(3, test_size=3, random_state=0), "ShuffleSplit.* tests [1-9] several times"),
        (RepeatedKFold(n_splits=3, n_repeats=2), "never tests 0 and tests 9 several times"),
        ([], "each of the 9 rows once"),
    ],
)
def test_folds_that_do_not_test_every_row_once(cv, message):
    """Rows that no fold tests have no prediction, and rows that two folds test have two."""
    with pytest.raises(ValueError, match=message):
        cross_val_tuned(*nine(), cv=cv)


def test_folds_may_be_masks():
    """What tests every row once may say so by truth values, or be any splitter that does."""
    model, X, y = nine()
    rows = np.arange(9)
    given = [(rows % 3 != k, rows % 3 == k) for k in range(3)]
    numbers = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in given]
    masked, numbered = (cross_val_tuned(model, X, y, cv=folds) for folds in (given, numbers))
    np.testing.assert_array_equal(masked, numbered)
    assert np.all(np.isfinite(cross_val_tuned(model, X, y, cv=LeaveOneOut())))


def test_several_targets_are_refused():
    """The second target's mean is no deviation of the first."""
    model, X, y = nine()
    with pytest.raises(ValueError, match=r"one target; y has shape \(9, 2\)"):
        cross_val_tuned(model, X, np.stack([y, 5.0 + y], axis=1), cv=3)
