"""Regressors of counts and other targets, offsets and trends, through the estimators."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import d2_tweedie_score, r2_score

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.arrays.differences import slope

RNG = np.random.default_rng(5)
X = RNG.uniform(0.0, 10.0, size=(60, 1))
EXPOSURE = RNG.uniform(0.5, 3.0, size=60)
RATE = np.exp(1.0 + np.sin(X[:, 0]))
COUNTS = RNG.poisson(EXPOSURE * RATE)
NEW = np.linspace(0.5, 9.5, 7)[:, None]
KERNEL = 1.0 * RBF(1.0) + ConstantKernel(1.0, "fixed")


@pytest.fixture(scope="module")
def counts():
    model = GaussianProcessRegressor(KERNEL, likelihood="poisson")
    return model.fit(X, COUNTS, offset=np.log(EXPOSURE))


def test_predictions_are_means_of_the_target(counts):
    """Predictions of counts are near the rate, and an offset of log 2 doubles them."""
    mean, std = counts.predict(NEW, return_std=True)
    truth = np.exp(1.0 + np.sin(NEW[:, 0]))
    # Rates of 60 counts of about three are known to a fifth or so.
    assert np.all(np.abs(np.log(mean / truth)) < 0.6)
    assert np.all(std > np.sqrt(mean))
    assert_allclose(counts.predict(NEW), mean, rtol=1e-12)
    assert_allclose(counts.predict(NEW, offset=np.log(2.0)), 2.0 * mean, rtol=1e-12)


def test_quantiles_cover(counts):
    """Nine of ten fresh counts lie between their quantiles, more since counts are whole."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 9.5, size=(2000, 1))
    y = rng.poisson(np.exp(1.0 + np.sin(x[:, 0])))
    low, middle, high = counts.predict_quantiles(x).T
    assert 0.88 <= np.mean((y >= low) & (y <= high)) <= 0.99
    assert 0.45 <= np.mean(y <= middle) <= 0.75


def test_score_is_the_explained_deviance(counts):
    """The score of counts is scikit-learn's D² of power one; of real targets it is R²."""
    mean = counts.predict(X, offset=np.log(EXPOSURE))
    score = counts.score(X, COUNTS, offset=np.log(EXPOSURE))
    assert_allclose(score, d2_tweedie_score(COUNTS, mean, power=1), rtol=1e-12)
    real = GaussianProcessRegressor(KERNEL, alpha=0.1).fit(X, RATE)
    assert_allclose(real.score(NEW, NEW[:, 0]), r2_score(NEW[:, 0], real.predict(NEW)), rtol=1e-12)


def test_leave_one_out_against_refits():
    """Leave-one-out means and densities are on average those of refits without the row."""
    model = GaussianProcessRegressor(KERNEL, likelihood="poisson", optimizer=None)
    y, offset, x = COUNTS[:12], np.log(EXPOSURE[:12]), X[:12]
    fitted = model.fit(x, y, offset=offset)
    found, log_p, refits, log_p_refits = [], fitted.loo_log_prob_, [], []
    for i in range(12):
        others = np.arange(12) != i
        part = GaussianProcessRegressor(KERNEL, likelihood="poisson", optimizer=None)
        part.fit(x[others], y[others], offset=offset[others])
        found.append([fitted.loo_mean_[i], fitted.loo_std_[i]])
        refits.append(np.ravel(part.predict(x[[i]], return_std=True, offset=offset[[i]])))
        f = part._model.latents(x[[i]], None, offset[[i]])[0]
        f = f.mean + np.sqrt(f.variance) * np.random.default_rng(0).normal(size=50_000)
        log_p_refits.append(np.log(np.mean(np.exp(y[i] * f - np.exp(f) - gammaln(y[i] + 1.0)))))
    # A surprising count changes the sites of its neighbours; then a cavity is off by up to 7 %.
    assert np.mean(np.abs(np.log(np.array(found) / refits))) < 0.03
    assert np.mean(np.abs(log_p - log_p_refits)) < 0.04


def test_draws_have_the_predicted_moments(counts):
    """Targets drawn at new inputs have the means and deviations that are predicted."""
    mean, std = counts.predict(NEW, return_std=True)
    drawn = counts.sample_y(NEW, 20_000, random_state=1)
    assert drawn.shape == (7, 20_000)
    # Four standard errors; the deviation's is about 1.5 % with these tails.
    assert_allclose(drawn.mean(axis=1), mean, atol=4.0 * np.max(std) / np.sqrt(20_000))
    assert_allclose(drawn.std(axis=1), std, rtol=0.05)


def test_weights_are_copies_with_offsets():
    """A row of weight two is two rows, if their offsets agree, too."""
    w = 1 + np.arange(60) % 3
    model = GaussianProcessRegressor(KERNEL, likelihood="poisson", optimizer=None)
    one = model.fit(X, COUNTS, sample_weight=w, offset=np.log(EXPOSURE)).predict(NEW)
    rows = np.repeat(np.arange(60), w)
    more = model.fit(X[rows], COUNTS[rows], offset=np.log(EXPOSURE)[rows]).predict(NEW)
    assert_allclose(one, more, rtol=1e-7)
    left = model.fit(X, COUNTS, sample_weight=w - 1, offset=np.log(EXPOSURE))
    assert np.all(np.isfinite(left.loo_mean_))
    with pytest.raises(ValueError, match="weight zero"):
        _ = left.loo_log_prob_


def test_level_replaces_a_constant():
    """With normalize_y the mean rate is known, so that counts in the thousands are no problem."""
    y = RNG.poisson(5000.0 * RATE)
    model = GaussianProcessRegressor(RBF(1.0), likelihood="poisson", normalize_y=True).fit(X, y)
    truth = 5000.0 * np.exp(1.0 + np.sin(NEW[:, 0]))
    assert np.all(np.abs(np.log(model.predict(NEW) / truth)) < 0.1)
    auto = GaussianProcessRegressor("auto", likelihood="poisson").fit(X[:30], y[:30])
    assert np.all(np.abs(np.log(auto.predict(X[:30]) / y[:30])) < 0.3)
    assert "White" not in str(auto.kernel_)


def test_a_linear_trend_is_continued_beyond_the_rows():
    """With mean="linear", predictions far from the rows follow the trend."""
    y = 3.0 * X[:, 0] + 5.0 + 0.3 * np.sin(5.0 * X[:, 0])
    kernel = 1.0 * RBF(1.0, (0.05, 5.0))
    model = GaussianProcessRegressor(kernel, alpha=0.01, mean="linear").fit(X, y)
    assert_allclose(model.predict([[20.0], [30.0]]), [65.0, 95.0], rtol=0.02)
    at = model.predict_gradient([[40.0]])
    assert_allclose(at, [[3.0]], rtol=0.05)


def test_an_offset_is_subtracted_from_a_gaussian_target():
    """With Gaussian noise an offset is the same as another target, scaled or not."""
    offset = np.cos(X[:, 0])
    y = RATE + offset
    for normalize in (False, True):
        model = GaussianProcessRegressor(RBF(1.0), alpha=0.1, normalize_y=normalize)
        plain = model.fit(X, RATE).predict(NEW, return_std=True)
        shifted = model.fit(X, y, offset=offset).predict(NEW, return_std=True)
        # Two searches that end within their tolerance of each other.
        assert_allclose(shifted, plain, rtol=1e-3)
        more = model.predict(NEW, offset=2.0)
        assert_allclose(more, shifted[0] + 2.0, rtol=1e-10)


def test_offset_of_a_classifier():
    """Labels given an offset are those of a shifted latent function."""
    labels = np.where(np.sin(X[:, 0]) + 2.0 * (X[:, 0] > 5.0) > 0.5, "b", "a")
    offset = 2.0 * (X[:, 0] > 5.0)
    model = GaussianProcessClassifier(4.0 * RBF(1.5), optimizer=None).fit(X, labels, offset=offset)
    p = model.predict_proba([[7.0], [7.0]], offset=[0.0, 5.0])
    assert p[1, 1] > 0.99 > p[0, 1]
    assert list(model.predict([[7.0], [7.0]], offset=[-9.0, 9.0])) == ["a", "b"]
    mean = model.latent_mean_and_variance([[7.0]], offset=1.0)[0]
    assert_allclose(mean, model.latent_mean_and_variance([[7.0]])[0] + 1.0, rtol=1e-12)
    assert model.loo_proba_.shape == (60, 2)


@pytest.mark.parametrize("std", [False, True])
def test_gradients_of_counts(counts, std):
    """Gradients of the mean and of the deviation of counts are those of the predictions."""

    def at(h):
        found = counts.predict(NEW + h, return_std=True, offset=0.3)
        return np.stack(found)

    truth = slope(at, 1e-3)
    found = counts.predict_gradient(NEW, return_std=std, offset=0.3)
    found = np.stack(found)[:, :, 0] if std else found[:, 0]
    # Differences keep nine digits or more.
    assert_allclose(found, truth if std else truth[0], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("n_inducing", [None, 12])
def test_trend_and_offset_with_inducing_points(n_inducing):
    """Offsets and trends go along with inducing points of a table in memory."""
    model = GaussianProcessRegressor(
        1.0 * RBF(2.0), likelihood="poisson", mean="linear", n_inducing=n_inducing
    )
    model.fit(X, COUNTS, offset=np.log(EXPOSURE))
    truth = np.exp(1.0 + np.sin(NEW[:, 0]))
    assert np.all(np.abs(np.log(model.predict(NEW) / truth)) < 0.6)
    assert model.loo_mean_.shape == (60,)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"likelihood": "probit"}, "a regressor needs a likelihood of numbers"),
        ({"likelihood": "poisson", "alpha": 0.1}, "leave alpha at"),
        ({"likelihood": "no such"}, "likelihood must be one of"),
        ({"likelihood": "poisson", "inference": "exact"}, "inference='exact' needs"),
        ({"likelihood": "poisson", "kernel": "auto", "mean": "linear"}, "a linear part of its own"),
        ({"mean": "quadratic"}, "'mean' parameter"),
    ],
)
def test_bad_parameters(options, words):
    """What cannot be is refused in one sentence, before anything is computed."""
    with pytest.raises(ValueError, match=words):
        GaussianProcessRegressor(**options).fit(X, COUNTS)


@pytest.mark.parametrize(
    ("y", "offset", "words"),
    [
        (COUNTS - 0.5, None, "valid range of the loss 'Poisson'"),
        (-1.0 - COUNTS, None, "valid range of the loss 'Poisson'"),
        (np.stack([COUNTS, COUNTS], axis=1), None, "is for one target"),
        (COUNTS, np.ones(3), "offset must be"),
        (COUNTS, np.nan, "offset must be"),
    ],
)
def test_bad_targets(y, offset, words):
    """Targets outside of the support and bad offsets are refused."""
    with pytest.raises(ValueError, match=words):
        GaussianProcessRegressor(KERNEL, likelihood="poisson").fit(X, y, offset=offset)


def test_what_other_likelihoods_do_not_have(counts):
    """Joint covariances of counts are refused; questions before the fit, too."""
    with pytest.raises(ValueError, match="return_cov needs likelihood='gaussian'"):
        counts.predict(NEW, return_cov=True)
    with pytest.raises(NotFittedError):
        GaussianProcessRegressor().predict_quantiles(NEW)
    real = GaussianProcessRegressor(KERNEL, alpha=np.full(60, 0.1)).fit(X, RATE)
    assert real.predict_quantiles(NEW).shape == (7, 3)
    real = GaussianProcessRegressor(KERNEL, alpha=0.1 + 0.1 * EXPOSURE).fit(X, RATE)
    with pytest.raises(ValueError, match="alpha differs"):
        real.predict_quantiles(NEW)


def test_a_mean_beyond_the_largest_float_is_reported():
    """Where E e^f overflows there is one warning and infinity, and quantiles stay finite."""
    kernel = ConstantKernel(3000.0, "fixed") * RBF(0.1, "fixed")
    model = GaussianProcessRegressor(kernel, likelihood="poisson").fit(X, COUNTS)
    with pytest.warns(UserWarning, match="beyond the largest float"):
        found = model.predict([[100.0]])
    assert np.isinf(found[0])
    assert model.predict_quantiles([[100.0]], [0.5])[0, 0] <= 1.0
