"""Cross-validation that tunes again in every fold."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.metrics import log_loss
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
    folds = [(np.arange(7), np.array([7])), (np.arange(1, 8), np.array([0]))]
    found = cross_val_tuned(GaussianProcessClassifier(), X, y, cv=folds)[[7, 0]]
    assert found.shape == (2, 3)
    assert np.all(found > 0.0)
