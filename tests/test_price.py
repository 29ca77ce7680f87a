"""The price of tuning on fewer rows, measured with kernels of parts of the table."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessClassifier, GaussianProcessRegressor, learning_curve
from cavity.model_selection import price
from cavity.model_selection.price import _raised

N = 40
SIZES = [5, 10, 20, N]


@pytest.fixture(scope="module", autouse=True)
def few_kernels():
    """Two kernels at each size show all that is tested here, in a tenth of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(price, "_PARTS", {4: 0.1, 2: 0.1})
        yield


def table(n=N, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (np.sin(2.0 * X[:, 0]) + 0.5 * rng.standard_normal(n) > 0.0).astype(int)


@pytest.fixture(scope="module")
def auto():
    return GaussianProcessClassifier("auto").fit(*table())


@pytest.fixture(scope="module")
def curve(auto):
    return learning_curve(auto, *table(), train_sizes=SIZES)


def test_repeats(auto, curve):
    """The curve is the same every time, and another random state draws other parts."""
    again, other = (
        learning_curve(auto, *table(), train_sizes=SIZES, random_state=s) for s in (0, 1)
    )
    assert np.array_equal(again.test_log_loss, curve.test_log_loss)
    assert np.all(other.test_log_loss[:-1] != curve.test_log_loss[:-1])


def test_sizes_do_not_depend_on_each_other(auto, curve):
    """A size has the same scores alone as among others."""
    alone = learning_curve(auto, *table(), train_sizes=[10])
    # The equations start from elsewhere, and are solved to a tolerance.
    assert_allclose(alone.test_log_loss, curve.test_log_loss[1], rtol=2e-3)


def test_end_is_the_leave_one_out(auto, curve):
    """With all rows the curve is the estimator's leave-one-out, and so is the forecast there."""
    loss = -np.log(auto.loo_proba_[np.arange(N), table()[1]]).mean()
    # The equations are solved to 3e-4.
    assert curve.test_log_loss[-1] == pytest.approx(loss, abs=1e-3)
    assert curve.forecast(N, "log_loss").value == pytest.approx(loss, abs=1e-3)


def test_all_rows_tune_nothing(auto, monkeypatch):
    """A curve of all rows alone tunes no kernel again."""
    monkeypatch.setattr(GaussianProcessClassifier, "fit", None)
    learning_curve(auto, *table(), train_sizes=[N])


def test_forecasts_keep_their_shape(auto, curve, monkeypatch):
    """Within the data a forecast is the curve; beyond, the price of fewer rows changes nothing."""
    beyond = curve.forecast([N, 2 * N, 10 * N], "log_loss")
    monkeypatch.setattr(price, "_PARTS", {})
    plain = learning_curve(auto, *table(), train_sizes=SIZES)
    assert_allclose(beyond, plain.forecast([N, 2 * N, 10 * N], "log_loss"), rtol=1e-12)
    inside = curve.forecast(10, "log_loss").value
    # The forecast's own sizes are others, between which it interpolates.
    assert inside - plain.forecast(10, "log_loss").value == pytest.approx(
        curve.test_log_loss[1] - plain.test_log_loss[1], abs=0.02
    )


@pytest.mark.parametrize("auto_kernel", [False, True])
def test_fixed_kernels_tune_nothing(auto, auto_kernel, monkeypatch):
    """With optimizer=None, by plain evidence or with retune=False, no kernel is tuned again."""
    others = [GaussianProcessClassifier(RBF(1.0), optimizer=o) for o in (None, "fmin_l_bfgs_b")]
    fitted = [auto] if auto_kernel else [other.fit(*table()) for other in others]
    monkeypatch.setattr(GaussianProcessClassifier, "fit", None)
    for model in fitted:
        found = learning_curve(model, *table(), train_sizes=[20, 40], retune=not auto_kernel)
        assert_allclose(found.test_error, found.point_error.mean(axis=1))


def test_scores_only_with_kernels_of_other_rows(curve):
    """No row is scored with a kernel that it has helped to tune."""
    anchors, X = curve.source.price._anchors, table()[0]
    for anchor in anchors:
        for k in anchor.kernels:
            assert len(k.absent) == N - anchor.size
    # Labels of a part's own rows change its kernel; those of the others do not.
    absent = anchors[0].kernels[0].absent
    y = table()[1]
    inside = np.setdiff1d(np.arange(N), absent)
    there = GaussianProcessClassifier("auto").fit(X[inside], y[inside])
    K = curve.source.inputs.fitted.processes[0].rule.matrix(X)
    own = anchors[0].kernels[0].scores.pools[0].prior.K
    assert_allclose(own, there._model.processes[0].rule.matrix(X), rtol=1e-10)
    assert not np.allclose(own, K)


def test_means_are_those_of_the_rows(curve):
    """Averages of rows' scores are the curve's, and error rates stay between zero and one."""
    assert_allclose(curve.point_error.mean(axis=1), curve.test_error)
    assert_allclose(curve.point_log_loss.mean(axis=1), curve.test_log_loss)
    assert curve.point_error.min() >= 0.0
    assert curve.point_error.max() <= 1.0


def test_measures_count_the_price(auto, curve):
    """A measure of one's own pays the same price: the Brier score comes out of its definition."""
    brier = curve.measure(lambda p, y: (p - y) ** 2)
    # Two quadratures, of 1600 and of 40 nodes.
    assert_allclose(brier, curve.test_brier, rtol=1e-3)


def test_coin_flips_look_like_coin_flips():
    """Where nothing can be learned, few rows do not seem to teach anything."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.permutation(np.arange(60) % 2)
    found = learning_curve(GaussianProcessClassifier("auto"), X, y, train_sizes=[8, 15, 30])
    # Two standard errors of 60 tosses.
    assert np.all(found.test_error > 0.5 - 0.13)
    # The first order may be a little below log 2 where the classes are even.
    assert np.all(found.test_log_loss > np.log(2.0) - 0.01)


@pytest.mark.parametrize("n", [4, 10, 17])
@pytest.mark.filterwarnings("ignore:The theory:sklearn.exceptions.ConvergenceWarning")
def test_tiny_tables(n):
    """Tables too small to be cut keep the first order; no size ends in anything but a number."""
    X, y = table(n, 2, 3)
    y[:2] = 0, 1
    curve = learning_curve(GaussianProcessClassifier("auto"), X, y, train_sizes=[2, n // 2, n])
    assert np.all(np.isfinite(curve.test_log_loss))
    target = learning_curve(
        GaussianProcessRegressor("auto"), X, X[:, 0] ** 2, train_sizes=[2, n // 2, n]
    )
    assert np.all(np.isfinite(target.test_error))
    assert np.isfinite(target.forecast(2 * n).value)


def test_targets_keep_their_units():
    """The squared errors of a target in other units are in these units, the price included."""
    X = table()[0]
    y = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(1).standard_normal(N)
    reg = GaussianProcessRegressor("auto")
    plain, other = (learning_curve(reg, X, t, train_sizes=[10, 20]) for t in (y, 1e3 * y + 7.0))
    # Each search stops near its maximum.
    assert_allclose(other.test_error, 1e6 * plain.test_error, rtol=1e-2)


def test_no_kernels_is_the_first_order(auto, curve):
    """Without kernels of parts the curve counts the tuning to first order, and tells them apart."""
    first = learning_curve(auto, *table(), train_sizes=SIZES, n_kernels=0)
    assert np.all(first.test_log_loss[:-1] != curve.test_log_loss[:-1])
    with pytest.raises(ValueError, match="n_kernels must be an integer"):
        learning_curve(auto, *table(), n_kernels=-1)


def test_rare_classes():
    """A part without a class is passed over."""
    X, _ = table()
    y = (np.arange(N) < 2).astype(int)
    curve = learning_curve(GaussianProcessClassifier("auto"), X, y, train_sizes=[10, 20])
    assert np.all(np.isfinite(curve.test_log_loss))


def test_out_of_bag_errors_pay_too(auto):
    """With replacement, the price is that of as many different rows."""
    options = {"train_sizes": [15, N], "resampling": "bootstrap"}
    curve = learning_curve(auto, *table(), **options)
    share = 1.0 - np.exp(-np.array([15.0, N]) / N)
    assert_allclose(curve.source.different, N * share, rtol=1e-4)
    assert np.all(np.isfinite(curve.log_loss_632))


@pytest.mark.parametrize("by", [-0.05, 0.2, 0.9])
def test_raised_scores_keep_their_limits(by):
    """Raising the mean of rates leaves each between its limits, and of log densities is a shift."""
    points = np.array([0.0, 0.1, 0.5, 1.0])
    rates = _raised(points, by, 1.0)
    assert rates.min() >= 0.0
    assert rates.max() <= 1.0
    assert rates.mean() == pytest.approx(min(points.mean() + by, 1.0))
    assert_allclose(_raised(-points, by, np.inf, positive=False), by - points)
