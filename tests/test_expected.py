"""What a model expects of itself, and how a forecast weighs it against labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessClassifier, GaussianProcessRegressor, learning_curve
from cavity.model_selection.forecast import calibrated, reconcile, sampling_error


def points(n, seed=0, d=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, d))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.standard_normal(n)


def classifier(**options):
    return GaussianProcessClassifier(4.0 * RBF(1.5), optimizer=None, **options)


def regressor(noise=0.1):
    return GaussianProcessRegressor(RBF(1.0), alpha=noise, optimizer=None, normalize_y=True)


def expected(curve, k=-1):
    """Each example's held-out averages at one size, and what is expected of them."""
    averages = curve.source.held_out[k]
    return averages, curve.source.inputs.scores.expected(averages)


def test_two_classes_by_quadrature():
    """The expected error is that of the less probable class, averaged over training sets."""
    X, y = points(30)
    [c], found = expected(learning_curve(classifier(), X, y > 0.0, train_sizes=[10]))
    for R, V, G, error, entropy in zip(c.R[:5], c.V, c.G, *found[:2], strict=False):
        spread, scale = np.sqrt(V), 1.0 / np.sqrt(1.0 + G)

        def entropy_at(x, R=R, spread=spread, scale=scale):
            z = (R + spread * x) * scale
            return -norm.pdf(x) * (ndtr(z) * log_ndtr(z) + ndtr(-z) * log_ndtr(-z))

        def error_at(x, R=R, spread=spread, scale=scale):
            return norm.pdf(x) * ndtr(-np.abs(R + spread * x) * scale)

        kink = float(np.clip(-R / spread, -8.0, 8.0))
        # Forty nodes do not see where exactly the kink is.
        assert error == pytest.approx(quad(error_at, -8.0, 8.0, points=[kink])[0], abs=3e-3)
        assert entropy == pytest.approx(quad(entropy_at, -8.0, 8.0)[0], rel=1e-7)


def test_target_is_judged_by_predictive_variance():
    """A regressor expects noise plus posterior variance, and the entropy of that density."""
    X, y = points(30)
    [c], found = expected(learning_curve(regressor(), X, y, train_sizes=[10]))
    variance = y.var() * (0.1 + c.G)
    assert_allclose(found.error, variance, rtol=1e-12)
    assert_allclose(found.log_loss, norm(scale=np.sqrt(variance)).entropy(), rtol=1e-12)


def test_several_classes_by_drawing():
    """With three classes both expectations are averages over independent fields."""
    X, y = points(30)
    curve = learning_curve(classifier(), X, np.digitize(y, [-0.5, 0.5]), train_sizes=[15])
    averages, found = expected(curve)
    rng = np.random.default_rng(1)
    h = [c.R + np.sqrt(c.V) * rng.standard_normal((20000, 30)) for c in averages]
    p = np.stack([ndtr(f / np.sqrt(1.0 + c.G)) for f, c in zip(h, averages, strict=True)])
    p /= p.sum(axis=0)
    # 20,000 draws leave an error of about 0.001, the 512 of the curve about as much.
    assert_allclose(found.error, 1.0 - p.max(axis=0).mean(axis=0), atol=6e-3)
    assert_allclose(found.log_loss, -np.sum(p * np.log(p), axis=0).mean(axis=0), atol=6e-3)


def test_weight_follows_the_labels():
    """Exact labels decide alone; labels that say nothing leave what was expected."""
    judged, own = np.array([0.4, 0.2]), np.array([0.5, 0.3])
    assert_allclose(reconcile(judged, own, 0.0), judged, rtol=1e-12)
    assert_allclose(reconcile(judged, own, 1e6), own, rtol=1e-6)
    assert_allclose(reconcile(np.zeros(2), np.zeros(2), 0.0), 0.0, atol=0.0)


@pytest.mark.parametrize("seed", range(20))
def test_expectation_moves_by_less_than_the_sampling_error(seed):
    """The mean lies between its two parts, at the end no farther from the labels than their error.

    A model that is plainly wrong about itself therefore cannot mislead a forecast.
    """
    rng = np.random.default_rng(seed)
    judged, own = 10.0 ** rng.uniform(-3.0, 1.0, (2, 4))
    sampling = float(10.0 ** rng.uniform(-3.0, 0.0))
    found = reconcile(judged, own, sampling)
    assert abs(found[-1] - judged[-1]) <= sampling * (1.0 + 1e-12)
    assert np.all(found <= np.maximum(judged, own) * (1.0 + 1e-12))
    assert np.all(found >= np.minimum(judged, own) * (1.0 - 1e-12))


def test_calibration_by_the_log_loss():
    """A log loss as expected leaves the error, half of it halves the error, certainty is finite."""
    error, entropy = np.array([0.3, 0.1, 0.0]), np.array([0.6, 0.3, 0.0])
    assert_allclose(calibrated(error, entropy, entropy), error, rtol=1e-12)
    assert_allclose(calibrated(error, entropy, 0.5 * entropy), 0.5 * error, rtol=1e-12)
    assert np.all(calibrated(error, entropy, np.full(3, 100.0)) <= 1.0)


def test_forecast_is_the_reconciled_curve():
    """Inside the data a forecast differs from the curve by less than the labels' error."""
    X, y = points(60)
    for model, labels, rate in ((classifier(), y > 0.0, True), (regressor(), y, False)):
        curve = learning_curve(model, X, labels, train_sizes=[54])
        spread = sampling_error(curve.point_error[0], curve.share, rate=rate)
        assert 0.0 < abs(curve.forecast(54).value - curve.test_error[0]) < spread
        # The log loss is left to the labels; two solutions differ by the tolerance of solving.
        assert_allclose(curve.forecast(54, "log_loss").value, curve.test_log_loss[0], rtol=1e-4)


def test_wrong_noise_cannot_mislead():
    """A regressor sure of a noise ten thousand times too small is judged by the labels."""
    X, _ = points(80, d=3)
    y = np.random.default_rng(2).standard_normal(80)
    curve = learning_curve(regressor(1e-4), X, y, train_sizes=[72])
    assert expected(curve)[1].error.mean() < 0.5 * curve.test_error[0]
    assert curve.forecast(72).value == pytest.approx(curve.test_error[0], rel=0.25)


def test_units_of_the_target():
    """With normalize_y, forecasts come in the units of the target."""
    X, y = points(40)
    one = learning_curve(regressor(), X, y, train_sizes=[20]).forecast(100)
    ten = learning_curve(regressor(), X, 10.0 * y + 3.0, train_sizes=[20]).forecast(100)
    assert_allclose(ten[1:], 100.0 * np.array(one[1:]), rtol=1e-6)


def drawn_from_the_model(seed, n=50, n_test=400):
    """Examples whose labels come from the classifier's own prior."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n + n_test, 2))
    K = 4.0 * RBF(1.5)(X) + 1e-8 * np.eye(n + n_test)
    f = np.linalg.cholesky(K) @ rng.standard_normal(n + n_test)
    return X, f + rng.standard_normal(n + n_test) > 0.0, n


def test_nearer_to_new_data_than_labels_alone():
    """Where the model is right, its expectation brings the error nearer to that on new data."""
    gaps = []
    for seed in range(40):
        X, y, n = drawn_from_the_model(seed)
        if np.mean(y[:n]) in (0.0, 1.0):
            continue
        curve = learning_curve(classifier(), X[:n], y[:n], train_sizes=[45])
        truth = 1.0 - classifier().fit(X[:45], y[:45]).score(X[n:], y[n:])
        gaps.append((curve.forecast(45).value - truth, curve.test_error[0] - truth))
    ours, labels = np.sqrt(np.mean(np.square(gaps), axis=0))
    # Seven per cent less on these sets, 2.4 standard errors of the paired difference of squares.
    assert ours < labels
