"""kernel="precomputed": the same answers as the kernel object whose matrix it is."""

import numpy as np
import pytest
from common import CLASSIFYING
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.model_selection import cross_val_score
from sklearn.utils import get_tags

from cavity import GaussianProcessClassifier, GaussianProcessRegressor

KERNEL = 2.0 * RBF(0.9)
UNEVEN = DotProduct(0.7)


def data(n=24, seed=0):
    rng = np.random.default_rng(seed)
    X, X_new = rng.normal(size=(n, 2)), rng.normal(size=(9, 2))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int), X_new


def classifier(kernel, **options):
    return GaussianProcessClassifier(kernel, optimizer=None, **options)


@pytest.mark.parametrize("inference", CLASSIFYING)
def test_classifier_on_a_matrix(inference):
    """Evidence and probabilities are those of the kernel object, to rounding."""
    X, y, X_new = data()
    ours = classifier("precomputed", inference=inference).fit(KERNEL(X), y)
    same = classifier(KERNEL, inference=inference).fit(X, y)
    K_new = KERNEL(X_new, X)
    # Two ways to round a distance, then inference converged to 1e-8.
    np.testing.assert_allclose(ours.predict_proba(K_new), same.predict_proba(X_new), atol=1e-7)
    np.testing.assert_array_equal(ours.predict(K_new), same.predict(X_new))
    value = same.log_marginal_likelihood_value_
    assert ours.log_marginal_likelihood_value_ == pytest.approx(value, abs=1e-7)
    np.testing.assert_allclose(ours.loo_proba_, same.loo_proba_, atol=1e-7)


@pytest.mark.parametrize("multi_class", ["one_vs_rest", "one_vs_one"])
def test_several_classes_with_weights_on_a_matrix(multi_class):
    """Binary problems pick their own rows and columns of the matrix, weights included."""
    X, _, X_new = data()
    y, w = np.arange(24) % 3, np.arange(24) % 5
    ours = classifier("precomputed", multi_class=multi_class).fit(KERNEL(X), y, sample_weight=w)
    same = classifier(KERNEL, multi_class=multi_class).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(ours.predict(KERNEL(X_new, X)), same.predict(X_new))
    if multi_class == "one_vs_rest":
        np.testing.assert_allclose(ours.loo_proba_, same.loo_proba_, atol=1e-7)


@pytest.mark.parametrize("estimator", [GaussianProcessClassifier, GaussianProcessRegressor])
def test_cross_validation_cuts_rows_and_columns(estimator):
    """The pairwise tag makes scikit-learn's splitters cut the matrix both ways."""
    X, y, _ = data()
    options = {"alpha": 0.1} if estimator is GaussianProcessRegressor else {}
    assert get_tags(estimator("precomputed")).input_tags.pairwise
    assert not get_tags(estimator(KERNEL)).input_tags.pairwise
    ours = cross_val_score(estimator("precomputed", **options), KERNEL(X), y, cv=4)
    same = cross_val_score(estimator(KERNEL, optimizer=None, **options), X, y, cv=4)
    np.testing.assert_allclose(ours, same, atol=1e-6)


def test_uneven_variances_have_to_be_given():
    """New examples' prior variances are asked for where they cannot be guessed."""
    X, y, X_new = data()
    ours = classifier("precomputed").fit(UNEVEN(X), y)
    same = classifier(UNEVEN).fit(X, y)
    K_new, variance = UNEVEN(X_new, X), UNEVEN.diag(X_new)
    np.testing.assert_array_equal(ours.predict(K_new), same.predict(X_new))
    np.testing.assert_allclose(
        ours.with_prior_variance(variance).predict_proba(K_new),
        same.predict_proba(X_new),
        atol=1e-7,
    )
    for found, known in zip(
        ours.with_prior_variance(variance).latent_mean_and_variance(K_new),
        same.latent_mean_and_variance(X_new),
        strict=True,
    ):
        np.testing.assert_allclose(found, known, atol=1e-7)
    with pytest.raises(ValueError, match="predict with with_prior_variance"):
        ours.predict_proba(K_new)
    with pytest.raises(ValueError, match=r"must have shape \(9,\); got \(3,\)"):
        ours.with_prior_variance([1.0, 1.0, 1.0]).predict_proba(K_new)
    with pytest.raises(ValueError, match="precomputed"):
        same.with_prior_variance(variance)


def test_rows_without_weight_know_their_own_variance():
    """Leave-one-out of a row that was never in uses the variance on the matrix's diagonal."""
    X, y, _ = data()
    w = np.where(np.arange(24) < 3, 0.0, 1.0)
    ours = classifier("precomputed").fit(UNEVEN(X), y, sample_weight=w)
    same = classifier(UNEVEN).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(ours.loo_proba_, same.loo_proba_, atol=1e-7)
    targets = {"alpha": 0.1, "optimizer": None}
    ours = GaussianProcessRegressor("precomputed", **targets).fit(UNEVEN(X), y, sample_weight=w)
    same = GaussianProcessRegressor(UNEVEN, **targets).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(ours.loo_std_, same.loo_std_, rtol=1e-7)


def test_regressor_on_a_matrix():
    """Mean, standard deviation, evidence and leave-one-out are those of the kernel object."""
    X, y, X_new = data()
    ours = GaussianProcessRegressor("precomputed", alpha=0.1).fit(KERNEL(X), y)
    same = GaussianProcessRegressor(KERNEL, alpha=0.1, optimizer=None).fit(X, y)
    K_new = KERNEL(X_new, X)
    for found, known in zip(
        ours.predict(K_new, return_std=True), same.predict(X_new, return_std=True), strict=True
    ):
        np.testing.assert_allclose(found, known, rtol=1e-10)
    np.testing.assert_allclose(ours.loo_mean_, same.loo_mean_, rtol=1e-9)
    value = same.log_marginal_likelihood_value_
    assert ours.log_marginal_likelihood_value_ == pytest.approx(value, rel=1e-12)
    with pytest.raises(ValueError, match="return_cov needs a kernel object"):
        ours.predict(K_new, return_cov=True)


@pytest.mark.parametrize("estimator", [GaussianProcessClassifier, GaussianProcessRegressor])
def test_matrices_that_are_no_covariances(estimator):
    """A matrix that is not square, symmetric or positive definite is refused with a reason."""
    X, y, _ = data()
    K = KERNEL(X)
    with pytest.raises(ValueError, match=r"square matrix .* got shape \(24, 20\)"):
        estimator("precomputed").fit(K[:, :20], y)
    with pytest.raises(ValueError, match="symmetric"):
        estimator("precomputed").fit(K + np.triu(np.ones((24, 24)), 1), y)
    with pytest.raises(ValueError, match="positive definite"):
        estimator("precomputed").fit(K - 1.5 * np.eye(24), y)


def test_fitted_model_keeps_its_own_matrix():
    """Changing the caller's matrix after the fit changes no answer."""
    X, y, X_new = data()
    K, K_new = KERNEL(X), KERNEL(X_new, X)
    model = classifier("precomputed").fit(K, y)
    before = model.predict_proba(K_new), model.log_marginal_likelihood(np.empty(0))
    K *= 2.0
    np.testing.assert_array_equal(model.predict_proba(K_new), before[0])
    assert model.log_marginal_likelihood(np.empty(0)) == before[1]
