"""Pictures of learning curves show the numbers, and only drawing needs matplotlib."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import cavity
from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    LearningCurveDisplay,
    learning_curve,
    simulate_learning_curve,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
SIZES = [10, 20, 30, 40]


@pytest.fixture(autouse=True)
def close_figures():
    from matplotlib import pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    return X, (X[:, 0] + 0.7 * rng.standard_normal(60) > 0).astype(int)


@pytest.fixture(scope="module")
def classifier(data):
    return GaussianProcessClassifier(2.0 * RBF(1.5), optimizer=None).fit(*data)


@pytest.fixture(scope="module")
def curve(classifier, data):
    return learning_curve(classifier, *data, train_sizes=SIZES)


@pytest.fixture(scope="module")
def simulation(classifier, data):
    return simulate_learning_curve(
        classifier, *data, train_sizes=SIZES, n_repeats=5, random_state=0
    )


def test_importing_the_package_does_not_import_matplotlib():
    """Whoever draws nothing needs no matplotlib."""
    program = "import sys, cavity; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_missing_matplotlib_is_said(curve, monkeypatch):
    """Without matplotlib the error names the extra to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'cavity\[plot\]'"):
        curve.plot()


@pytest.mark.parametrize(
    ("measure", "name"),
    [
        ("error", "test_error"),
        ("log_loss", "test_log_loss"),
        ("brier", "test_brier"),
        ("pool_error", "pool_error"),
        ("posterior_variance", "posterior_variance"),
    ],
)
def test_theory_is_a_line_and_refits_are_points(curve, simulation, measure, name):
    """The line goes through the curve, points are the simulation, bars twice its errors."""
    display = LearningCurveDisplay.from_curve(curve, measure=measure, simulation=simulation)
    np.testing.assert_array_equal(display.line_.get_xdata(), curve.train_sizes)
    np.testing.assert_array_equal(display.line_.get_ydata(), getattr(curve, name))
    points, _, (bars,) = display.errorbar_
    np.testing.assert_array_equal(points.get_ydata(), getattr(simulation, name))
    lengths = [segment[1, 1] - segment[0, 1] for segment in bars.get_segments()]
    # Sums and differences of the same numbers, up to rounding.
    np.testing.assert_allclose(lengths, 4.0 * simulation.standard_error[name], rtol=1e-9)


def test_forecast_is_a_dashed_line_in_a_band(curve):
    """The forecast's line starts at the last size and stays inside its band."""
    display = curve.plot(forecast=200, level=0.8)
    sizes, values = display.forecast_line_.get_data()
    assert (sizes[0], sizes[-1]) == pytest.approx((40.0, 200.0))
    expected = curve.forecast(sizes, level=0.8)
    np.testing.assert_array_equal(values, expected.value)
    heights = display.forecast_band_.get_paths()[0].vertices[:, 1]
    assert heights.min() == pytest.approx(expected.low.min())
    assert heights.max() == pytest.approx(expected.high.max())
    assert "80 %" in display.forecast_line_.get_label()


def test_draws_where_it_is_told(curve):
    """Given axes are used, and plot() draws the same display once more elsewhere."""
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2)
    display = LearningCurveDisplay.from_curve(curve, ax=left, color="red", label="mine")
    assert display.ax_ is left
    assert display.figure_ is figure
    assert display.line_.get_color() == "red"
    assert display.line_.get_label() == "mine"
    assert display.errorbar_ is None
    assert display.forecast_line_ is None
    assert display.plot(ax=right).ax_ is right


def test_from_estimator_computes_both_curves(classifier, data):
    """The display keeps the theory and, if refits are asked for, the simulation at its sizes."""
    display = LearningCurveDisplay.from_estimator(
        classifier, *data, train_sizes=[0.2, 0.5], n_repeats=2, random_state=0, measure="log_loss"
    )
    np.testing.assert_array_equal(display.simulation.train_sizes, display.curve.train_sizes)
    assert display.curve.theory == "cavity"
    assert display.ax_.get_ylabel() == "held-out log loss"
    assert LearningCurveDisplay.from_estimator(classifier, *data).simulation is None


def test_a_curve_of_one_size_is_visible():
    """A single size is drawn as a point."""
    X = np.linspace(0.0, 5.0, 20)[:, None]
    reg = GaussianProcessRegressor(1.0 * RBF(1.0), alpha=0.1, optimizer=None)
    display = learning_curve(reg, X, np.sin(X[:, 0]), train_sizes=[10]).plot()
    assert display.line_.get_marker() == "o"
    assert display.ax_.get_ylabel() == "held-out mean squared error"
    with pytest.raises(ValueError, match="regression curve has no measure 'brier'"):
        LearningCurveDisplay(display.curve, measure="brier").plot()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "accuracy"}, "measure must be one of"),
        ({"measure": "brier", "forecast": 100}, "Only 'error' and 'log_loss' have a forecast"),
        ({"forecast": 40}, "larger than the largest training size 40; got 40"),
    ],
)
def test_bad_input_is_refused(curve, options, message):
    """Each wrong argument gets an error that names it."""
    with pytest.raises(ValueError, match=message):
        curve.plot(**options)


def test_the_display_is_public():
    """It is one of the package's names."""
    assert "LearningCurveDisplay" in cavity.__all__
