"""Inference that overflows is refused in one sentence; nothing leaks and nothing is NaN."""

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessRegressor, learning_curve


def data(n=20):
    X = np.random.default_rng(0).normal(size=(n, 1))
    return X, np.exp(np.sin(2.0 * X[:, 0]))


def test_rates_beyond_floats_are_refused():
    """A prior variance of 1e5 of a log rate: one sentence, and the model of before stays."""
    X, y = data()
    model = GaussianProcessRegressor(RBF(1.0), likelihood="gamma", inference="variational")
    model.set_params(optimizer=None).fit(X, y)
    before = model.predict(X)
    model.set_params(kernel=1e5 * RBF(1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"overflowed: .* variance of up to 1e\+05") as caught:
            model.fit(X, y)
    assert "\n" not in str(caught.value)
    np.testing.assert_array_equal(model.predict(X), before)


def test_curves_without_held_out_errors():
    """Targets that are all zero leave nothing to learn: the pair term has no slope to divide by."""
    X, _ = data()
    model = GaussianProcessRegressor(1e-9 * RBF(1.0), alpha=1.0, optimizer=None)
    curve = learning_curve(model.fit(X, np.zeros(20)), X, np.zeros(20), train_sizes=[5, 20])
    assert np.all(np.isfinite(curve.test_error))
