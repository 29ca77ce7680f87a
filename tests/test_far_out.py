"""Counts and amounts far from the training rows: right where a float holds them, else a word."""

import warnings

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import ndtri
from sklearn.gaussian_process.kernels import RBF, DotProduct

from cavity import GaussianProcessRegressor, OnlineGaussianProcessRegressor
from cavity.likelihoods import Gamma, NegativeBinomial, Poisson, quantiles
from cavity.sites import Marginals

LEVELS = (0.01, 0.5, 0.99)
X = np.linspace(0.0, 12.0, 20)[:, None]
COUNTS = np.random.default_rng(0).poisson(np.exp(X[:, 0]))
NAMES = ("poisson", "negative_binomial", "gamma")


@pytest.fixture(scope="module")
def fitted():
    """Regressions whose log rate goes on in a straight line."""
    options = {"kernel": DotProduct(1.0), "optimizer": None}
    models = {name: GaussianProcessRegressor(likelihood=name, **options) for name in NAMES}
    return {name: model.fit(X, np.maximum(COUNTS, 1.0)) for name, model in models.items()}


def silently(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return function(*args, **options)


def place_of(model, log_std):
    """Return an input where the log of the standard deviation is about this."""
    x = np.arange(20.0, 1000.0)[:, None]
    found = model.likelihood_.log_response(model._model.latents(x)[0])[1]
    return x[[np.argmax(found > log_std)]]


def told(what, function, *args, **options):
    """Return the answer, which has come with one warning, about this."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = function(*args, **options)
    assert [w.category for w in said] == [UserWarning]
    assert str(said[0].message).startswith(f"The {what}")
    assert "beyond the largest float" in str(said[0].message)
    assert said[0].filename == __file__
    return found


def below(log_y, m, v, shape):
    """Of a lognormal rate times a gamma of mean one: an average over the log of the latter."""

    def part(u):
        log_p = shape * (mp.log(shape) + u - mp.exp(u)) - mp.loggamma(shape)
        return mp.exp(log_p) * mp.ncdf((log_y - u - m) / mp.sqrt(v))

    width = 1.0 / np.sqrt(shape)
    return mp.quad(part, [k * width for k in (-25, -12, -6, -3, -1, 0, 1, 2, 3, 6)])


@pytest.mark.parametrize("lik", [NegativeBinomial(2.3), NegativeBinomial(200.0), Gamma(2.3)])
@pytest.mark.parametrize(("m", "v"), [(80.0, 9.0), (597.0, 1700.0), (690.0, 36.0)])
def test_quantiles_of_huge_rates(lik, m, v):
    """They are those of the latent lognormal times the likelihood's own spread, from 10^30 on."""
    q = Marginals(np.array([m]), np.array([v]))
    found = np.log(silently(quantiles, lik, q, LEVELS)[:, 0])
    # An error of 1e-12 in the level is one of 1e-11 in log y.
    assert_allclose([float(below(u, m, v, lik.shape)) for u in found], LEVELS, atol=1e-12)


@pytest.mark.parametrize(("m", "v"), [(80.0, 9.0), (597.0, 1700.0), (709.0, 1e-6)])
def test_huge_poisson_quantiles(m, v):
    """A Poisson adds nothing to a huge rate, up to the largest float."""
    found = silently(quantiles, Poisson(), Marginals(np.array([m]), np.array([v])), LEVELS)[:, 0]
    assert_allclose(np.log(found), m + np.sqrt(v) * ndtri(LEVELS), rtol=1e-12)


@pytest.mark.parametrize("lik", [Poisson(), NegativeBinomial(2.0), Gamma(2.0)])
def test_quantiles_beyond_floats(lik):
    """They are infinite above the largest float, and zero below the smallest."""
    q = Marginals(np.array([1000.0, -1000.0, 709.7]), np.array([400.0, 400.0, 100.0]))
    low, _, high = silently(quantiles, lik, q, LEVELS)
    assert np.isinf(low[0])
    assert low[1] == high[1] == 0.0
    assert np.isfinite(low[2])
    assert np.isinf(high[2])


@pytest.mark.parametrize(("m", "v"), [(-400.0, 3.0), (2.0, 1e-9), (2.0, 30.0), (400.0, 100.0)])
def test_deviations_whose_squares_are_no_floats(m, v):
    """The log of the standard deviation against fifty digits of the formula."""
    q = Marginals(np.array([m]), np.array([v]))
    for lik, spread, one in ((Poisson(), 0.0, 1), (NegativeBinomial(3.0), 1.0 / 3.0, 1)):
        with mp.workdps(50):
            r = mp.exp(mp.mpf(m) + mp.mpf(v) / 2)
            own = mp.exp(mp.mpf(v)) * (1 + mp.mpf(spread)) - 1
            truth = float(mp.log(one * r + r**2 * own) / 2)
        assert_allclose(lik.log_response(q)[1], truth, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_deviations_far_out(fitted, name):
    """Finite where its square is none, and a word where it is none itself."""
    model = fitted[name]
    at = place_of(model, 400.0)
    mean, std = silently(model.predict, at, return_std=True)
    [q] = model._model.latents(at)
    assert_allclose(np.log([mean[0], std[0]]), np.ravel(model.likelihood_.log_response(q)), 1e-12)
    mean, std = told("mean of", model.predict, [[1.0], [2000.0]], return_std=True)
    assert np.isinf([mean, std]).tolist() == [[False, True]] * 2


def test_infinite_deviations_of_finite_means():
    """A latent variance of 900 is enough."""
    model = GaussianProcessRegressor(900.0 * RBF(0.1), likelihood="gamma", optimizer=None)
    model.fit(X, np.maximum(COUNTS, 1.0))
    mean, std = told("standard deviation of", model.predict, [[0.0], [99.0]], return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.isinf(std).tolist() == [False, True]
    assert np.isfinite(silently(model.predict, [[99.0]])[0])


@pytest.mark.parametrize("name", NAMES)
def test_gradients_far_out(fitted, name):
    """Relative gradients are differences of the logs of the moments; beyond floats, a word."""
    model = fitted[name]
    at = place_of(model, 400.0)

    def logs(x):
        return np.array(model.likelihood_.log_response(model._model.latents(x)[0]))

    def differences(h):
        return (logs(at + h) - logs(at - h)) / (2.0 * h)

    truth = ((4.0 * differences(0.5) - differences(1.0)) / 3.0).ravel()
    found = np.ravel(silently(model.predict_gradient, at, return_std=True))
    # Differences of logs of 400 and more, and of a quadratic.
    assert_allclose(found / np.exp(logs(at)).ravel(), truth, rtol=1e-8)
    both = told("gradient of the mean", model.predict_gradient, [[2000.0]], return_std=True)
    assert np.ravel(both).tolist() == [np.inf, np.inf]


def test_gradients_of_vanishing_rates():
    """Where mean and deviation are too small for a float, so are their slopes."""
    model = GaussianProcessRegressor(1.0 * RBF(1.0), optimizer=None, likelihood="poisson")
    model.fit(X, COUNTS)
    found = silently(model.predict_gradient, X[:3], return_std=True, offset=-4000.0)
    assert not np.any(found)


@pytest.mark.parametrize("lik", [Poisson(), NegativeBinomial(2.0), Gamma(2.0)])
@pytest.mark.parametrize("f", [45.0, 690.0])
def test_draws_of_huge_rates(lik, f):
    """They follow the gamma distribution around e^f, and a Poisson is hardly off it."""
    drawn = silently(lik.sample, np.full(4000, f), np.random.default_rng(0)) / np.exp(f)
    if lik == Poisson():
        assert_allclose(drawn, 1.0, atol=6.0 * np.exp(-0.5 * f) + 1e-12)
    else:
        assert stats.kstest(drawn, stats.gamma(2.0, scale=0.5).cdf).pvalue > 1e-3


@pytest.mark.parametrize("lik", [Poisson(), NegativeBinomial(1e4)])
def test_draws_at_the_change_of_method(lik):
    """Just beyond 10^15 counts have the mean and the deviation of a Poisson."""
    f = np.log(1.2e15)
    drawn = lik.sample(np.full(20_000, f), np.random.default_rng(1))
    assert np.array_equal(drawn, np.round(drawn))
    deviation = np.sqrt(lik.variance(np.array([f]))[0])
    assert abs(np.mean(drawn) - 1.2e15) < 5.0 * deviation / np.sqrt(20_000.0)
    assert abs(np.std(drawn) / deviation - 1.0) < 0.03


@pytest.mark.parametrize("name", NAMES)
def test_quantiles_intervals_and_draws_far_out(fitted, name):
    """No lower end is infinite without a word, and no draw is refused."""
    model = fitted[name]
    assert np.all(silently(model.sample_y, [[60.0]], 5) > 1e15)
    low, high = silently(model.predict_interval, place_of(model, 400.0))
    assert 1e50 < low[0] < high[0] < np.inf
    found = told("quantile 0.05, or a higher one,", model.predict_quantiles, [[1.0], [2000.0]])
    assert np.isinf(found).tolist() == [[False] * 3, [True] * 3]
    low, high = told("lower or upper end", model.predict_interval, [[2000.0]])
    assert np.isinf([low[0], high[0]]).all()
    low, high = told("lower or upper end", model.predict_interval, [[1.0]], offset=1500.0)
    assert np.isinf(told("largest draw", model.sample_y, [[2000.0]], 3)).all()


def test_streams_far_out():
    """The online regressor says the same."""
    options = {"likelihood": "poisson", "budget": 20}
    model = OnlineGaussianProcessRegressor(DotProduct(1.0), **options).fit(X, COUNTS)
    _, std = silently(model.predict, [[400.0]], return_std=True)
    assert 1e160 < std[0] < np.inf
    told("quantile 0.9", model.predict_quantiles, [[2000.0]], [0.9])
    told("mean", model.predict, [[2000.0]], return_std=True)


def test_intervals_of_a_model_that_is_far_off():
    """Where rows are more than eight deviations off, the interval of counts has no upper end."""
    y = np.random.default_rng(0).poisson(3.0, 40).astype(float)
    y[::4] = 5000.0
    model = GaussianProcessRegressor(0.1 * RBF(1.0), likelihood="poisson", optimizer=None)
    model.fit(np.arange(40.0)[:, None], y)
    with pytest.warns(UserWarning, match="intervals of this level have no upper end"):
        low, high = model.predict_interval([[1.0], [2.0]])
    assert np.all(np.isfinite(low))
    assert np.all(np.isinf(high))


def test_intervals_with_inducing_points():
    """Each target is in its own units, and a Gaussian may be any number of deviations off."""
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0.0, 6.0, (200, 1))
    both = np.column_stack([np.sin(inputs[:, 0]), 1000.0 * np.cos(inputs[:, 0])])
    both += [0.1, 100.0] * rng.standard_normal((200, 2))
    for noise, normal in ((0.02, True), (1e-6, False)):
        options = {"alpha": noise, "normalize_y": normal, "optimizer": None}
        model = GaussianProcessRegressor(1.0 * RBF(1.0), n_inducing=15, **options)
        y = both if normal else both[:, :1]
        low, high = model.fit(inputs, y).predict_interval(inputs)
        inside = np.mean((low <= y.reshape(low.shape)) & (y.reshape(low.shape) <= high), axis=0)
        assert np.all((inside > 0.85) & (inside < 0.95))
