"""Forecasts: where a learning curve leads, and how far that can be trusted."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessClassifier, learning_curve, simulate_learning_curve
from cavity.model_selection.distribution import ForecastDistribution
from cavity.model_selection.forecast import ErrorTrend, forecast_sizes, sampling_error

SIZES = forecast_sizes(200)
CLF = GaussianProcessClassifier(4.0 * RBF(1.5), optimizer=None)
BEYOND = np.array([200.0, 400.0, 1000.0, 1e5])


def power_law(m, a=0.1, b=2.0, c=0.7):
    return a + b * np.asarray(m, dtype=float) ** -c


def noisy_trend(seed, positive=True):
    """A falling curve with bumps of one per cent."""
    rng = np.random.default_rng(seed)
    values = power_law(SIZES, rng.uniform(0.0, 0.3), rng.uniform(0.5, 3.0), rng.uniform(0.3, 1.5))
    values = values * (1.0 + 0.01 * rng.standard_normal(len(SIZES)))
    return ErrorTrend(SIZES, values if positive else values - 1.0, 0.02, positive)


def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 2))
    return X, (X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.4 * rng.standard_normal(80) > 0.3).astype(int)


@pytest.fixture(scope="module")
def curve():
    return learning_curve(CLF, *table(), train_sizes=[20, 40])


def test_sizes_increase_and_end_before_the_pool():
    """The sizes behind a forecast increase, and stop at nine tenths of the pool."""
    for n in (2, 3, 5, 10, 47, 200, 5000):
        sizes = forecast_sizes(n)
        assert np.all(np.diff(sizes) > 0.0)
        assert sizes[0] >= 2.0
        assert sizes[-1] <= max(2.0, np.round(0.9 * n))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("positive", [True, False])
def test_interval_contains_value(seed, positive):
    """The interval contains the value at every size, inside and beyond the data."""
    n = np.r_[1.0, SIZES, BEYOND]
    found = noisy_trend(seed, positive)(n)
    assert np.all(found.low <= found.value)
    assert np.all(found.value <= found.high)
    assert np.all(found.low < found.high)


@pytest.mark.parametrize("seed", range(5))
def test_interval_grows_with_the_level(seed):
    """A higher level gives an interval that contains the lower level's."""
    trend = noisy_trend(seed)
    levels = [trend(BEYOND, level) for level in (0.5, 0.8, 0.9, 0.99)]
    for narrow, wide in pairwise(levels):
        assert np.all(wide.low <= narrow.low)
        assert np.all(wide.high >= narrow.high)


@pytest.mark.parametrize(("a", "c"), [(0.1, 0.7), (0.0, 0.5), (0.3, 1.5)])
def test_power_law_goes_on_as_it_is(a, c):
    """An exact power law is continued exactly."""
    trend = ErrorTrend(SIZES, power_law(SIZES, a=a, c=c), 0.01)
    # The power is found to about six digits.
    assert_allclose(trend(BEYOND).value, power_law(BEYOND, a=a, c=c), atol=1e-5)


def test_curve_itself_inside():
    """At the sizes that the curve knows the forecast is the curve."""
    trend = noisy_trend(0)
    assert_allclose(trend(SIZES).value, trend.values, rtol=1e-12)


def test_no_jump_at_the_end_of_the_data():
    """The continuation starts where the curve ends."""
    trend = noisy_trend(1)
    end = trend(np.array([trend.last, trend.last * (1.0 + 1e-9)])).value
    assert end[1] == pytest.approx(end[0], rel=1e-6)


def test_interval_opens_with_distance():
    """Beyond the data the interval does not get narrower, relative to the value's floor."""
    found = noisy_trend(2)(np.array([200.0, 400.0, 800.0]))
    assert np.all(np.diff(found.high - found.low) > -1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_size_for_inverts_the_forecast(seed):
    """The size for a target reaches it, and one example fewer does not."""
    trend = noisy_trend(seed)
    start, end = trend(trend.last).value, trend(5.0 * trend.last).value
    target = float(0.5 * (start + end))
    n = trend.size_for(target)
    assert trend(n).value <= target < trend(n - 1).value


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("positive", [True, False])
def test_probability_is_of_the_law_of_the_interval(seed, positive):
    """Between the ends of an interval lies its level, and half of that on both sides of the value.

    A squared error may have the end of its interval at zero, below which nothing lies.
    """
    trend = noisy_trend(seed, positive)
    for level in (0.5, 0.8, 0.9, 0.99):
        for n in (150.0, 200.0, 400.0, 1e4):
            found, chances = trend(n, level), trend.distribution(n)
            assert chances.probability(float(found.value)) == pytest.approx(0.5, abs=1e-9)
            assert chances.probability(float(found.high)) == pytest.approx(
                0.5 + level / 2, abs=1e-9
            )
            if found.low > 0.0 or not positive:
                below = chances.probability(float(found.low))
                assert below == pytest.approx(0.5 - level / 2, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_probability_grows_with_goal_and_rows(seed):
    """An easier goal is likelier to be met, and so is the same goal with more rows."""
    trend = noisy_trend(seed)
    sizes = np.geomspace(trend.last, 100.0 * trend.last, 200)
    goals = np.linspace(0.0, 1.0, 101)
    p = np.stack([trend.distribution(sizes).probability(goal) for goal in goals])
    assert np.all(np.diff(p, axis=0) >= 0.0)
    # At the very end of the data what the best fit misses there may still rise as it fades.
    assert np.all(np.diff(p, axis=1) >= -2e-3)


def test_certain_forecast():
    """Without any uncertainty a goal is met or not."""
    chances = ForecastDistribution(np.array([0.2, 0.3]), np.zeros(2), np.zeros(2), 0.0)
    assert_allclose(chances.probability(0.25), [1.0, 0.0])
    assert_allclose(chances.quantile(0.9), [0.2, 0.3])


def test_goals_beyond_all_values():
    """Every error rate is at most one, and none is below zero."""
    chances = ForecastDistribution(np.array(0.5), np.array(0.1), np.array(0.1), 0.5, 0.0, 1.0)
    assert chances.probability(1.0) == 1.0
    assert chances.probability(-0.01) == 0.0
    assert 0.0 < chances.probability(0.0) < chances.probability(0.99) < 1.0


@pytest.mark.parametrize("seed", range(5))
def test_size_for_a_probability(seed):
    """The size reaches the probability, one example fewer does not, and one half is the default."""
    trend = noisy_trend(seed)
    start, end = trend(trend.last).value, trend(5.0 * trend.last).value
    target = float(0.5 * (start + end)) + 0.01
    assert trend.size_for(target, 0.5) == trend.size_for(target)
    n = trend.size_for(target, 0.6)
    assert (
        trend.distribution(n).probability(target)
        >= 0.6
        > trend.distribution(n - 1).probability(target)
    )
    assert n > trend.size_for(target)


def test_size_for_unreachable():
    """A target below the floor is reached at no size."""
    trend = ErrorTrend(SIZES, power_law(SIZES, a=0.2), 0.01)
    assert trend.size_for(0.1) is None
    assert trend.size_for(0.25) is not None


def test_size_for_what_is_reached_already():
    """A target that the smallest known size meets needs no more than that size."""
    trend = noisy_trend(0)
    assert trend.size_for(float(trend.values[0])) == int(SIZES[0])


def test_standard_error_of_a_rate():
    """Rates near zero keep an error bar; with many examples it is that of a binomial."""
    share = np.full(100, 0.01)
    assert sampling_error(np.zeros(100), share, rate=True) > 0.005
    points = (np.arange(40000) % 4 == 0).astype(float)
    expected = np.sqrt(1.75 * 0.25 * 0.75 / 40000)
    # Four examples are added to 40,000.
    assert sampling_error(points, np.full(40000, 1 / 40000), rate=True) == pytest.approx(
        expected, rel=1e-3
    )


def test_standard_error_follows_weights():
    """An example of weight two counts as two examples that are equal, for the average."""
    points = np.array([0.0, 1.0, 3.0])
    mean = 1.75
    weighted = sampling_error(points, np.array([0.25, 0.25, 0.5]), rate=False)
    variance = (0.25 * mean**2 + 0.25 * (1.0 - mean) ** 2 + 0.5 * (3.0 - mean) ** 2) * 0.375
    assert weighted == pytest.approx(np.sqrt(1.75 * variance), rel=1e-12)


def test_curve_forecasts_by_its_trend(curve):
    """A curve answers for one size with floats, for several with arrays."""
    one = curve.forecast(500)
    several = curve.forecast([100, 500])
    assert isinstance(one.value, float)
    assert several.value[1] == pytest.approx(one.value, rel=1e-12)
    assert one.low <= one.value <= one.high


def test_size_for_of_a_curve_agrees_with_forecast(curve):
    """size_for and forecast are two readings of one curve."""
    target = curve.forecast(300, "log_loss").value
    assert curve.size_for(log_loss=target) == pytest.approx(300, abs=1)
    assert curve.size_for(error=1e-6) is None


def test_probability_of_a_curve_agrees_with_forecast(curve):
    """The ends of the 80 % interval are goals that are met with 10 and 90 %; sizes go far out."""
    ahead = curve.forecast(300, "log_loss", level=0.8)
    assert curve.probability(300, log_loss=ahead.low) == pytest.approx(0.1, abs=1e-9)
    assert curve.probability(300, log_loss=ahead.high) == pytest.approx(0.9, abs=1e-9)
    found = curve.probability([80, 800, np.inf], error=ahead.value)
    assert found.shape == (3,)
    assert np.all(np.diff(found) >= 0.0)
    n = curve.size_for(log_loss=ahead.high, probability=0.9)
    assert n == pytest.approx(300, abs=1)


@pytest.mark.parametrize("measure", ["error", "log_loss"])
def test_small_sizes_are_solved(curve, measure):
    """Below the sizes behind the fit the theory is solved: near its own curve, never constant."""
    X, y = table()
    sizes = [1, 2, 3, 5, 8]
    direct = learning_curve(CLF, X, y, train_sizes=sizes)
    found = curve.forecast(sizes, measure).value
    assert len(np.unique(found)) == len(sizes)
    # Between the sizes that are solved the curve is interpolated.
    assert_allclose(found, getattr(direct, "test_" + measure), atol=0.01)


@pytest.mark.parametrize("measure", ["error", "log_loss"])
def test_one_number_for_now(curve, measure):
    """At the size of the pool the forecast is the curve, and goes on from there without a jump."""
    X, y = table()
    now = getattr(learning_curve(CLF, X, y, train_sizes=[len(y)]), "test_" + measure)[0]
    assert curve.forecast(len(y), measure).value == pytest.approx(now, abs=2e-4)
    assert curve.forecast(len(y) + 1, measure).value == pytest.approx(now, abs=5e-3)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.9999])
def test_error_rates_stay_between_zero_and_one(curve, level):
    """Intervals of error rates contain their value and stay between zero and one."""
    found = curve.forecast([1, 2, 5, 20, 80, 1000, 10**7], level=level)
    assert np.all((found.low >= 0.0) & (found.low <= found.value))
    assert np.all((found.value <= found.high) & (found.high <= 1.0))


def test_size_for_below_the_fit(curve):
    """A target of a small size is met there, and not by one example fewer."""
    target = curve.forecast(4, "log_loss").value
    assert curve.size_for(log_loss=target) == 4
    assert curve.size_for(log_loss=1e3) == 1


def test_simulation_says_nothing_below_its_sizes():
    """A simulated curve refuses sizes below its smallest, and answers from there on."""
    X, y = table()
    refits = simulate_learning_curve(
        CLF, X, y, train_sizes=[10, 20, 40], n_repeats=5, random_state=0
    )
    with pytest.raises(ValueError, match="begins at 10 examples"):
        refits.forecast([9, 20])
    assert refits.forecast(10).value == pytest.approx(refits.test_error[0], rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.forecast(0), "at least 1"),
        (lambda c: c.forecast(np.nan), "at least 1"),
        (lambda c: c.forecast(10, level=1.0), "between 0 and 1"),
        (lambda c: c.forecast(10, measure="accuracy"), "'error' or 'log_loss'"),
        (lambda c: c.size_for(), "one target"),
        (lambda c: c.size_for(error=0.1, log_loss=0.3), "one target"),
        (lambda c: c.size_for(error=np.nan), "no finite number"),
        (lambda c: c.size_for(error=0.1, probability=1.0), "between 0 and 1"),
        (lambda c: c.probability(100), "one target"),
        (lambda c: c.probability(0, error=0.1), "at least 1"),
    ],
)
def test_bad_input(curve, call, message):
    """What cannot be answered is refused in words."""
    with pytest.raises(ValueError, match=message):
        call(curve)
