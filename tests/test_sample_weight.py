"""Sample weights: an example of weight w is w examples that happen to be equal."""

import numpy as np
import pytest
from common import CLASSIFYING
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from cavity import GaussianProcessClassifier, GaussianProcessRegressor

KERNELS = {"smooth": 2.0 * RBF(0.9), "noisy": 2.0 * RBF(0.9) + WhiteKernel(0.3)}
SAME = 1e-8  # both fits are converged to this residual
# A factorised posterior cannot leave out a part of an example.
BELOW_ONE = [name for name in CLASSIFYING if name != "ensemble"]


def data(n=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] + 0.7 * rng.normal(size=n) > 0).astype(int)
    return X, y, rng.integers(0, 4, size=n), rng.normal(size=(15, 2))


def classifier(kernel, **options):
    return GaussianProcessClassifier(KERNELS[kernel], optimizer=None, tol=1e-10, **options)


def regressor(kernel, **options):
    return GaussianProcessRegressor(KERNELS[kernel], optimizer=None, alpha=0.1, **options)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("inference", CLASSIFYING)
def test_whole_weights_are_repeated_rows(inference, kernel):
    """Predictions, evidence, its gradient and leave-one-out agree with repeated rows."""
    X, y, w, X_new = data()
    weighted = classifier(kernel, inference=inference).fit(X, y, sample_weight=w)
    repeated = classifier(kernel, inference=inference).fit(X.repeat(w, axis=0), y.repeat(w))
    np.testing.assert_allclose(
        weighted.predict_proba(X_new), repeated.predict_proba(X_new), atol=SAME
    )
    value = repeated.log_marginal_likelihood_value_
    assert weighted.log_marginal_likelihood_value_ == pytest.approx(value, abs=SAME)
    theta = weighted.kernel_.theta + 0.2
    gradients = [m.log_marginal_likelihood(theta, True)[1] for m in (weighted, repeated)]
    # Differences, where a method needs them, divide by 2e-4.
    np.testing.assert_allclose(*gradients, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
# One sweep gives each copy of an example a site of its own: leaving out one is not another.
@pytest.mark.parametrize("inference", [name for name in CLASSIFYING if name != "sequential"])
def test_leave_one_out_takes_one_copy(inference, kernel):
    """Leave-one-out of an example with a weight is that of one of its copies."""
    X, y, w, _ = data()
    weighted = classifier(kernel, inference=inference).fit(X, y, sample_weight=w)
    repeated = classifier(kernel, inference=inference).fit(X.repeat(w, axis=0), y.repeat(w))
    copies = weighted.loo_proba_[w > 0].repeat(w[w > 0], axis=0)
    np.testing.assert_allclose(copies, repeated.loo_proba_, atol=SAME)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("inference", CLASSIFYING)
def test_rows_without_weight_are_left_out(inference, kernel):
    """Zero weight is the same as no row, and the row's leave-one-out is its prediction."""
    X, y, _, X_new = data()
    w = np.arange(20) % 3 > 0
    weighted = classifier(kernel, inference=inference).fit(X, y, sample_weight=w)
    fewer = classifier(kernel, inference=inference).fit(X[w], y[w])
    # The same numbers, summed in another order of the rows.
    new, known = weighted.predict_proba(X_new), fewer.predict_proba(X_new)
    np.testing.assert_allclose(new, known, rtol=1e-12)
    assert weighted.loo_proba_.shape == (20, 2)
    # The same products in blocks of another size.
    np.testing.assert_allclose(weighted.loo_proba_[~w], fewer.predict_proba(X[~w]), rtol=1e-12)
    np.testing.assert_allclose(weighted.loo_proba_[w], fewer.loo_proba_, rtol=1e-12)


@pytest.mark.parametrize("inference", BELOW_ONE)
def test_fractional_weights_lie_between(inference):
    """The pull of an example grows steadily with its weight."""
    X, y, _, _ = data()
    means = []
    for weight in (0.25, 0.5, 1.0, 1.5, 2.0, 2.5):
        w = np.where(np.arange(20) == 3, weight, 1.0)
        model = classifier("smooth", inference=inference).fit(X, y, sample_weight=w)
        means.append(model.latent_mean_and_variance(X[3:4])[0][0])
    assert (np.diff(means) * (2 * y[3] - 1) > 0).all()


def test_several_classes_with_weights():
    """Weights reach every binary problem, and classes without weight do not exist."""
    rng = np.random.default_rng(2)
    X, y, w = rng.normal(size=(24, 2)), np.arange(24) % 4, rng.integers(1, 3, size=24)
    w[y == 3] = 0
    for multi_class in ("one_vs_rest", "one_vs_one"):
        weighted = classifier("smooth", multi_class=multi_class).fit(X, y, sample_weight=w)
        repeated = classifier("smooth", multi_class=multi_class).fit(X.repeat(w, 0), y.repeat(w))
        np.testing.assert_array_equal(weighted.classes_, [0, 1, 2])
        np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))


@pytest.mark.parametrize("make", [classifier, regressor])
@pytest.mark.parametrize(
    ("weight", "text"),
    [
        (np.r_[-1.0, np.ones(19)], "Negative values"),
        (np.zeros(20), "zero"),
        (np.ones(7), "shape"),
        (np.full(20, np.nan), "NaN"),
    ],
    ids=["negative", "zero", "short", "nan"],
)
def test_bad_weights_are_refused(make, weight, text):
    """Weights that mean nothing are refused with a reason."""
    X, y, _, _ = data()
    with pytest.raises(ValueError, match=text):
        make("smooth").fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("inference", ["exact", "ep", "laplace", "variational", "sequential"])
def test_regression_with_whole_weights(inference, normalize_y, kernel):
    """Regression with weights is regression on repeated rows, leave-one-out included."""
    X, _, w, X_new = data()
    y = np.sin(X[:, 0]) + 3.0
    options = {"inference": inference, "normalize_y": normalize_y}
    weighted = regressor(kernel, **options).fit(X, y, sample_weight=w)
    repeated = regressor(kernel, **options).fit(X.repeat(w, axis=0), y.repeat(w))
    for found, known in zip(
        weighted.predict(X_new, return_std=True),
        repeated.predict(X_new, return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(found, known, atol=SAME)
    value = repeated.log_marginal_likelihood_value_
    assert weighted.log_marginal_likelihood_value_ == pytest.approx(value, abs=SAME)
    for name in ("loo_mean_", "loo_std_"):
        found = getattr(weighted, name)[w > 0].repeat(w[w > 0])
        np.testing.assert_allclose(found, getattr(repeated, name), atol=SAME)


def test_regression_with_fractional_weights():
    """A weight divides the noise variance of a regression example."""
    X, _, _, X_new = data()
    y, w = np.sin(X[:, 0]), np.random.default_rng(4).uniform(0.2, 3.0, size=20)
    weighted = regressor("smooth").fit(X, y, sample_weight=w)
    same = GaussianProcessRegressor(KERNELS["smooth"], optimizer=None, alpha=0.1 / w).fit(X, y)
    # Equal algebra in another order.
    np.testing.assert_allclose(weighted.predict(X_new), same.predict(X_new), rtol=1e-10)


def test_ensemble_refuses_weights_below_one():
    """A factorised posterior of less than one copy is refused with a way out."""
    X, y, _, _ = data()
    model = classifier("smooth", inference="ensemble")
    with pytest.raises(ValueError, match=r"at least one: scale them up, or use inference=.ep."):
        model.fit(X, y, sample_weight=np.full(20, 0.5))


@pytest.mark.parametrize("inference", BELOW_ONE)
def test_small_weights_under_a_wide_prior(inference):
    """Weights far below one leave every answer a probability, leave-one-out too."""
    X, y, _, X_new = data()
    model = GaussianProcessClassifier(50.0 * RBF(0.5), optimizer=None, inference=inference)
    model.fit(X, y, sample_weight=np.where(np.arange(20) == 5, 2.0, 0.1))
    assert np.isfinite(model.log_marginal_likelihood_value_)
    for proba in (model.loo_proba_, model.predict_proba(X_new)):
        assert ((proba > 0.0) & (proba < 1.0)).all()


def test_leave_one_out_of_a_fraction_is_retraining():
    """An example of weight below one is left out whole, and no more than whole."""
    X, _, _, _ = data()
    y, w = np.sin(X[:, 0]), np.full(20, 0.5)
    model = regressor("smooth").fit(X, y, sample_weight=w)
    for i in range(20):
        rest = np.arange(20) != i
        other = regressor("smooth").fit(X[rest], y[rest], sample_weight=w[rest])
        # Equal algebra in another order.
        np.testing.assert_allclose(model.loo_mean_[[i]], other.predict(X[[i]]), rtol=1e-8)


@pytest.mark.parametrize("likelihood", ["poisson", "gamma"])
def test_weights_keep_the_order_of_a_sequential_regression(likelihood):
    """One sweep learns rows in the order given, with weights too; columns have no order."""
    X, _, w, X_new = data()
    y = np.round(np.exp(X[:, 0])) + 1.0

    def fit(X, y, weight=None):
        options = {"inference": "sequential", "likelihood": likelihood, "optimizer": None}
        return GaussianProcessRegressor(KERNELS["smooth"], **options).fit(X, y, weight)

    weighted = fit(X, y, w).predict(X_new)
    np.testing.assert_allclose(weighted, fit(X.repeat(w, axis=0), y.repeat(w)).predict(X_new))
    np.testing.assert_allclose(weighted, fit(X[:, ::-1], y, w).predict(X_new[:, ::-1]))
