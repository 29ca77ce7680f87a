"""Ordered classes, wrong labels, outliers, limits and amounts, through the estimators."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.arrays.differences import slope
from cavity.likelihoods import Censored, Ordinal, StudentT

RNG = np.random.default_rng(8)
X = RNG.normal(size=(80, 2))
F = X[:, 0] + np.sin(2.0 * X[:, 1])
NOISY = F + 0.4 * RNG.normal(size=80)
RANKS = np.digitize(NOISY, [-1.0, 0.2, 1.2])
NAMES = np.array(["a poor", "b fair", "c good", "d best"])[RANKS]
KERNEL = 2.0 * RBF([1.5, 1.5])


@pytest.fixture(scope="module")
def ordinal():
    return GaussianProcessClassifier(KERNEL, likelihood="ordinal").fit(X, NAMES)


def test_probabilities_of_ordered_classes(ordinal):
    """They sum to one, follow the latent value, and the most probable class is predicted."""
    p = ordinal.predict_proba(X)
    assert p.shape == (80, 4)
    assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    mean, _ = ordinal.latent_mean_and_variance(X)
    expected = p @ np.arange(4)
    # With one latent function the expected rank rises with it, up to its variance.
    assert np.corrcoef(np.argsort(np.argsort(mean)), np.argsort(np.argsort(expected)))[0, 1] > 0.99
    assert list(ordinal.predict(X)) == list(ordinal.classes_[np.argmax(p, axis=1)])
    assert np.all(np.diff(ordinal._model.likelihood.cuts) > 0.0)


def test_ordered_classes_are_better_than_unordered_ones(ordinal):
    """Knowing the order helps: the leave-one-out log loss is below that of one-vs-rest."""
    rest = GaussianProcessClassifier(KERNEL).fit(X, NAMES)
    losses = [-np.mean(np.log(model.loo_proba_[np.arange(80), RANKS])) for model in (ordinal, rest)]
    assert losses[0] < losses[1] - 0.03


def test_leave_one_out_of_ranks_against_refits():
    """Leave-one-out probabilities are those of refits at the same kernel and thresholds."""
    lik = Ordinal((-1.0, 0.2, 1.2), "fixed")
    fit = GaussianProcessClassifier(KERNEL, likelihood=lik, optimizer=None).fit(X[:30], RANKS[:30])
    loo = fit.loo_proba_
    for i in range(0, 30, 6):
        others = np.arange(30) != i
        part = GaussianProcessClassifier(KERNEL, likelihood=lik, optimizer=None)
        p = part.fit(X[:30][others], RANKS[:30][others]).predict_proba(X[[i]])
        # EP's cavities are leave-one-out predictions up to EP's own error.
        assert_allclose(loo[i], p[0], atol=0.01)


def test_gradients_of_ordered_classes(ordinal):
    """Gradients of class probabilities are those of the predictions."""
    steps = np.eye(2)
    truth = [slope(lambda h, e=e: ordinal.predict_proba(X[:5] + h * e), 1e-3) for e in steps]
    found = ordinal.predict_gradient(X[:5])
    # Differences keep ten digits or so.
    assert_allclose(found, np.stack(truth, axis=2), rtol=1e-6, atol=1e-9)


def test_ordered_classes_with_inducing_points(ordinal):
    """All rows as inducing points give the same evidence and probabilities."""
    fixed = {"likelihood": Ordinal((-1.0, 0.2, 1.2)), "optimizer": None}
    dense = GaussianProcessClassifier(KERNEL, **fixed).fit(X, RANKS)
    sparse = GaussianProcessClassifier(KERNEL, **fixed, inducing_points=X).fit(X, RANKS)
    # Both stop at a residual of 1e-6, of which the evidence has the square.
    gap = sparse.log_marginal_likelihood_value_ - dense.log_marginal_likelihood_value_
    assert abs(gap) < 1e-6
    assert_allclose(sparse.predict_proba(X), dense.predict_proba(X), atol=1e-5)


def test_a_class_that_the_sample_lacks_has_a_threshold():
    """A rare class counts, also where thresholds are begun on a sample of the rows."""
    y = RANKS.copy()
    y[y == 3] = 2
    y[7] = 3
    model = GaussianProcessClassifier(KERNEL, likelihood="ordinal", n_inducing=20).fit(X, y)
    assert model.predict_proba(X[:2]).shape == (2, 4)


def test_two_ordered_classes_are_a_probit_with_a_threshold():
    """With two classes and the threshold at zero, ordered classes are a probit."""
    y = (NOISY > 0.0).astype(int)
    ranked = GaussianProcessClassifier(
        KERNEL, likelihood=Ordinal((0.0,), "fixed"), optimizer=None
    ).fit(X, y)
    probit = GaussianProcessClassifier(KERNEL, optimizer=None).fit(X, y)
    # Two iterations that stop at a residual of 1e-6.
    assert_allclose(ranked.predict_proba(X), probit.predict_proba(X), atol=1e-6)
    gap = ranked.log_marginal_likelihood_value_ - probit.log_marginal_likelihood_value_
    assert abs(gap) < 1e-8


def test_wrong_labels_are_learned():
    """With 10 % of the labels flipped, the tuned label noise is near 10 %."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(200, 2))
    y, flipped = x[:, 0] > 0.0, rng.random(200) < 0.1
    kernel = ConstantKernel(100.0, "fixed") * RBF(2.0)
    model = GaussianProcessClassifier(kernel, likelihood="noisy_probit", inference="mixture")
    model.fit(x, y ^ flipped)
    # Twenty flips are known to a quarter or so.
    assert 0.04 < model._model.likelihood.label_noise < 0.18
    assert np.mean(model.predict(x) == y) > 0.9


def test_a_regression_likelihood_is_refused_by_the_classifier():
    """Only labels have class probabilities."""
    for name in ("gaussian", "student_t", "poisson", "gamma", "censored", "negative_binomial"):
        with pytest.raises(ValueError, match="a classifier needs a likelihood for labels"):
            GaussianProcessClassifier(likelihood=name).fit(X, RANKS > 1)
    with pytest.raises(ValueError, match="a regressor needs a likelihood of numbers"):
        GaussianProcessRegressor(likelihood="ordinal").fit(X, RANKS)


def with_outliers():
    """Return targets with four gross outliers, and which rows are clean."""
    y, clean = NOISY.copy(), np.ones(80, bool)
    y[[3, 30, 50, 71]] += [12.0, -9.0, 15.0, 10.0]
    clean[[3, 30, 50, 71]] = False
    return y, clean


@pytest.mark.parametrize("normalize", [False, True])
def test_outliers_do_no_harm(normalize):
    """With a Student t the error is that of a fit without the outliers, in the targets' units."""
    y, clean = with_outliers()
    robust = GaussianProcessRegressor(KERNEL, likelihood="student_t", normalize_y=normalize)
    robust.fit(X, 10.0 * y)
    best = GaussianProcessRegressor(KERNEL, likelihood="student_t", normalize_y=normalize)
    best.fit(X[clean], 10.0 * NOISY[clean])
    rng = np.random.default_rng(0)
    new = rng.normal(size=(300, 2))
    truth = 10.0 * (new[:, 0] + np.sin(2.0 * new[:, 1]))
    errors = [np.mean((model.predict(new) - truth) ** 2) for model in (robust, best)]
    assert errors[0] < 1.1 * errors[1]
    # The scale of the noise is 4.
    assert 1.5 < robust.likelihood_.scale < 6.0


def test_a_likelihood_of_the_users_is_in_the_users_units():
    """Parameters that are fixed hold for the targets as given, however these are scaled."""
    y = 100.0 * NOISY + 500.0
    lik = StudentT(5.0, 40.0, "fixed", "fixed")
    made = [
        GaussianProcessRegressor(1e4 * RBF(1.5), likelihood=lik, optimizer=None).fit(X, y - 500.0),
        GaussianProcessRegressor(
            1e4 / np.var(y) * RBF(1.5), likelihood=lik, optimizer=None, normalize_y=True
        ).fit(X, y),
    ]
    for model in made:
        assert model.likelihood_.scale == pytest.approx(40.0)
    plain, scaled = (model.predict(X, return_std=True) for model in made)
    # Only the mean that is subtracted differs: 500, or the average of the targets.
    assert_allclose(scaled[0] - 500.0, plain[0], atol=10.0)
    assert_allclose(scaled[1], plain[1], rtol=1e-3)


def test_targets_beyond_limits():
    """Values cut off at limits are no values: the truth beyond them is found."""
    y = np.clip(NOISY, -0.8, 0.8)
    cut = GaussianProcessRegressor(KERNEL, likelihood="censored").fit(X, y)
    assert (cut.likelihood_.lower, cut.likelihood_.upper) == pytest.approx((-0.8, 0.8))
    plain = GaussianProcessRegressor(KERNEL, alpha=0.16).fit(X, y)
    errors = [np.mean((model._model.means(X)[0] - F) ** 2) for model in (cut, plain)]
    assert errors[0] < 0.5 * errors[1]
    given = GaussianProcessRegressor(
        KERNEL, likelihood=Censored(0.16, -0.8, 0.8), normalize_y=True
    ).fit(X, y)
    assert given.likelihood_.upper == pytest.approx(0.8)


def test_amounts():
    """The mean of positive amounts is e^f; their shape is found."""
    rng = np.random.default_rng(1)
    y = np.exp(F) * rng.gamma(5.0, 1.0 / 5.0, size=80)
    model = GaussianProcessRegressor(KERNEL, likelihood="gamma").fit(X, y)
    assert 2.0 < model.likelihood_.shape < 12.0
    assert np.mean(np.abs(np.log(model.predict(X)) - F)) < 0.3
    low, high = model.predict_quantiles(X, [0.1, 0.9]).T
    assert 0.7 < np.mean((y > low) & (y < high)) <= 0.95
    with pytest.raises(ValueError, match="positive"):
        GaussianProcessRegressor(KERNEL, likelihood="gamma").fit(X, np.append(y[1:], 0.0))


def test_overdispersed_counts():
    """The shape of a negative binomial is found, and intervals cover what a Poisson's do not."""
    rng = np.random.default_rng(1)
    y = rng.negative_binomial(2.0, 2.0 / (2.0 + np.exp(1.0 + F)))
    models = [
        GaussianProcessRegressor(KERNEL, likelihood=name, normalize_y=True).fit(X, y)
        for name in ("negative_binomial", "poisson")
    ]
    assert 0.8 < models[0].likelihood_.shape < 6.0
    assert np.mean(models[0].loo_log_prob_) > np.mean(models[1].loo_log_prob_)


@pytest.mark.parametrize("likelihood", ["poisson", "gamma"])
def test_logs_are_not_compared_with_targets(likelihood):
    """Targets of zero, or in tiny units, are no reason to warn of rounding."""
    inputs = np.linspace(0.0, 5.0, 24)[:, None]
    y = np.random.default_rng(0).gamma(2.0, 1e-200, 24) if likelihood == "gamma" else np.zeros(24)
    model = GaussianProcessRegressor(RBF(1.0), likelihood=likelihood, optimizer=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(inputs, y)


@pytest.mark.parametrize("options", [{}, {"n_inducing": 10}])
def test_noise_of_several_scaled_targets(options):
    """Each has its own, in its own units; one alone has the same."""
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0.0, 6.0, (60, 1))
    y = np.sin(inputs[:, 0]) + 0.3 * rng.standard_normal(60)
    model = GaussianProcessRegressor(
        RBF(1.0), alpha=0.1, normalize_y=True, optimizer=None, **options
    )
    alone = [model.fit(inputs, target).likelihood_.noise_variance for target in (y, 1000.0 * y)]
    together = model.fit(inputs, np.column_stack([y, 1000.0 * y])).likelihood_.noise_variance
    np.testing.assert_allclose(together, np.stack(alone, axis=-1), rtol=1e-12)
    np.testing.assert_allclose(np.ravel(together)[:2], 0.1 * np.var(y) * np.array([1.0, 1e6]))
