"""Hard inputs: a converged answer or exactly one ConvergenceWarning; never NaN, never a crash."""

import warnings

import numpy as np
import pytest
import sklearn.gaussian_process as reference
from common import CLASSIFYING
from farm.truth import EP_ERROR, ep, orthant
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, WhiteKernel

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.arrays import NotPositiveDefiniteError
from cavity.estimators.fitted import fitted_model


def separable(n, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)


def assert_answers(X, y, kernel, *, X_new=None, **options):
    """Fit, check how the fit ended, and check that every answer is a number."""
    model = GaussianProcessClassifier(kernel, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
        assert_numbers(model, X if X_new is None else X_new)
    unconverged = [] if model.converged_ else ["stopped without converging"]
    about_inference = [w for w in caught if "The optimal value" not in str(w.message)]
    assert [w.category for w in about_inference] == [ConvergenceWarning] * len(unconverged)
    assert len(caught) - len(about_inference) <= len(model.kernel_.theta)
    return model


def assert_numbers(model, X):
    assert np.isfinite(model.log_marginal_likelihood_value_)
    theta = model.kernel_.theta
    value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    mean, variance = model.latent_mean_and_variance(X)
    assert np.isfinite(mean).all()
    assert np.isfinite(variance).all()
    assert (variance > 0).all()
    assert np.isfinite(model.predict_log_proba(X)).all()
    for proba in (model.predict_proba(X), model.loo_proba_):
        # Rounding of two exponentials.
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)


def test_twins_of_both_classes():
    """Two labels at one place: an extrapolated step made sites of no weight, called converged."""
    X, y = np.array([[2.0], [6.4e-7], [1.01e-6]]), np.array([1, 1, 0])
    kernel = 7.5 * RBF(0.125)
    model = assert_answers(X, y, kernel, optimizer=None)
    # The place of its own has evidence 1/2.
    truth = np.log(0.5) + orthant(kernel(X[1:]), np.array([1.0, -1.0]))
    # EP is that far from the truth with two rows.
    assert abs(model.log_marginal_likelihood_value_ - truth) < 0.01
    np.testing.assert_allclose(model.predict_proba(X[1:]), 0.5, atol=1e-6)


def test_means_follow_the_variances():
    """Sixteen counts at one place: variances settle at once, the means that go with them later."""
    y = np.array([4.0, 5, 0, 1, 3, 2, 7, 4, 2, 1, 0, 3, 5, 2, 4, 403])
    model = GaussianProcessRegressor(
        1.66 * RBF(1.0), likelihood="poisson", inference="variational", optimizer=None
    )
    model.fit(np.arange(16.0)[:, None] * 1e-7, y)
    [q] = fitted_model(model).latents(np.zeros((1, 1)))
    best = optimize.minimize(negative_bound, [3.0, np.log(0.003)], (y, 1.66), tol=1e-12).x
    assert abs(q.mean[0] - best[0]) < 1e-3 * np.sqrt(q.variance[0])
    np.testing.assert_allclose(q.variance[0], np.exp(best[1]), rtol=1e-3)


def negative_bound(at, y, prior):
    """The variational bound of counts that share one latent value N(m, v), up to a constant."""
    m, v = at[0], np.exp(at[1])
    fit = np.sum(y * m - np.exp(m + 0.5 * v))
    return -(fit - 0.5 * (m**2 + v) / prior + 0.5 * at[1])


def test_plain_loops_of_ep():
    """EP in plain loops, which the farm compares with, is near the truth where EP is good."""
    K, y = RBF(1.0)(np.array([[0.0], [0.5], [2.0]])), np.array([1.0, -1.0, 1.0])
    assert abs(ep(K, y) - orthant(K, y)) < 1e-3
    model = GaussianProcessClassifier("precomputed", optimizer=None, tol=1e-10).fit(K, y)
    # Both have converged to ten digits.
    np.testing.assert_allclose(model.log_marginal_likelihood_value_, ep(K, y), rtol=1e-9)
    three = ep(1e8 * np.ones((3, 3)), np.ones(3)) - orthant(1e8 * np.ones((3, 3)), np.ones(3))
    assert -EP_ERROR < three < -0.18


@pytest.mark.parametrize("amplitude", [1e4, 1e8], ids=["variance-1e4", "variance-1e8"])
@pytest.mark.parametrize("inference", CLASSIFYING)
def test_separable_points_under_a_wide_prior(inference, amplitude):
    """Separable points under a huge prior variance, few enough for every method to be quick."""
    X, y = separable(60)
    model = assert_answers(X, y, amplitude * RBF(1.0), optimizer=None, inference=inference)
    assert model.score(X, y) > 0.95 or not model.converged_


@pytest.mark.slow
@pytest.mark.parametrize("amplitude", [1e4, 1e8], ids=["variance-1e4", "variance-1e8"])
@pytest.mark.parametrize("inference", CLASSIFYING)
def test_a_thousand_separable_points(inference, amplitude):
    """The same for a thousand points."""
    X, y = separable(1000)
    model = assert_answers(X, y, amplitude * RBF(1.0), optimizer=None, inference=inference)
    assert model.score(X, y) > 0.95 or not model.converged_


@pytest.mark.parametrize("inference", CLASSIFYING)
@pytest.mark.parametrize("labels", ["equal", "contradicting"])
def test_duplicated_rows(inference, labels):
    """Rows that stand there four times, with equal or with contradicting labels."""
    X, y = separable(20)
    X, y = np.tile(X, (4, 1)), np.tile(y, 4)
    if labels == "contradicting":
        y[:20] = 1 - y[:20]
    assert_answers(X, y, 10.0 * RBF(1.0), optimizer=None, inference=inference)


@pytest.mark.parametrize("inference", CLASSIFYING)
def test_constant_columns(inference):
    """Columns that never change, one of them huge, and tuning over their length scales."""
    X, y = separable(25)
    X = np.column_stack([X, np.zeros(25), np.full(25, 1e6)])
    assert_answers(X, y, 1.0 * RBF([1.0] * 4), inference=inference)


@pytest.mark.parametrize("inference", CLASSIFYING)
def test_constant_table(inference):
    """A table without any information: all rows are the same."""
    y = np.arange(12) % 2
    model = assert_answers(np.ones((12, 2)), y, 4.0 * RBF(1.0), optimizer=None, inference=inference)
    # As many of each class; one sweep leans towards the last example it saw.
    tolerance = 0.2 if inference == "sequential" else 1e-6
    np.testing.assert_allclose(model.predict_proba(np.ones((1, 2))), 0.5, atol=tolerance)


@pytest.mark.parametrize("kernel", [RBF, Matern], ids=["RBF", "Matern"])
@pytest.mark.parametrize("scale", [1e-5, 1e5])
@pytest.mark.parametrize("inference", CLASSIFYING)
def test_extreme_length_scales(inference, scale, kernel):
    """Length scales that make the covariance a unit matrix or a constant."""
    X, y = separable(40)
    model = assert_answers(X, y, 2.0 * kernel(scale), optimizer=None, inference=inference)
    if scale < 1.0:
        # Independent examples: each label is a fair coin.
        value = model.log_marginal_likelihood_value_
        assert value == pytest.approx(-40 * np.log(2.0), abs=1e-6) or inference in LOOSE


LOOSE = {"laplace", "variational", "mixture"}
"""Methods that are not exact for a single example."""


@pytest.mark.parametrize("inference", CLASSIFYING)
def test_two_examples(inference):
    """The smallest problem there is, tuned."""
    X, y = np.array([[0.0], [1.0]]), [0, 1]
    model = assert_answers(X, y, 1.0 * RBF(1.0), inference=inference)
    np.testing.assert_array_equal(model.predict(X), y)


@pytest.mark.parametrize("power", [-150, 150])
@pytest.mark.parametrize(
    "kernel",
    [
        1.0 * RBF(1.0),
        1.0 * Matern(1.0, nu=1.5),
        1.0 * Matern(1.0, nu=2.5),
        DotProduct(1.0),
        DotProduct(1.0) + WhiteKernel(1.0),
    ],
    ids=["RBF", "Matern32", "Matern52", "DotProduct", "DotProduct+White"],
)
@pytest.mark.parametrize("inference", CLASSIFYING)
def test_inputs_of_absurd_scale(inference, kernel, power):
    """Inputs of 1e-150 or 1e150, whose squares only just exist."""
    X, y = separable(12)
    X = X * 10.0**power
    if power == 150 and "DotProduct" in str(kernel) and inference in LOSE_THE_UNIT:
        # Covariances of 1e300 leave no digit for the likelihood's unit scale, which these methods
        # start from: no answer exists in double precision, and the error has to say what to do.
        with pytest.raises(NotPositiveDefiniteError, match=r"DotProduct.*Check the scale of the"):
            assert_answers(X, y, kernel, optimizer=None, inference=inference)
    else:
        assert_answers(X, y, kernel, optimizer=None, inference=inference)


LOSE_THE_UNIT = {"laplace", "variational", "ensemble", "mixture"}


@pytest.mark.parametrize("inference", CLASSIFYING)
def test_one_example_of_its_class(inference):
    """One example of one class among many of the other."""
    X, _ = separable(200)
    y = (np.arange(200) == 7).astype(int)
    model = assert_answers(X, y, 4.0 * RBF(0.5), optimizer=None, inference=inference)
    assert model.predict_proba(X)[7, 1] > model.loo_proba_[7, 1]


@pytest.mark.slow
@pytest.mark.parametrize("inference", CLASSIFYING)
def test_one_example_among_a_thousand(inference):
    """One example of one class among 999 of the other, tuned."""
    X, _ = separable(1000)
    y = (np.arange(1000) == 7).astype(int)
    assert_answers(X, y, 4.0 * RBF(0.5), inference=inference)


def test_wider_priors_do_not_lose_certainty():
    """EP's probabilities of the true class do not fall with the amplitude, as Laplace's do."""
    X, y = separable(300)
    ours, theirs = [], []
    for amplitude in (1.0, 10.0, 100.0, 1e3, 1e4):
        kernel = amplitude**2 * RBF(1.0)
        model = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
        ours.append(median_of_true_class(model, X, y))
        other = reference.GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
        theirs.append(median_of_true_class(other, X, y))
    # At saturation EP's own fixed point moves by 2e-6, whatever its tolerance.
    assert (np.diff(ours) > -1e-5).all()
    assert (np.diff(theirs) < -0.01).any()


def median_of_true_class(model, X, y):
    return np.median(model.predict_proba(X)[np.arange(len(y)), y])


def test_inputs_whose_variance_overflows_are_refused():
    """A linear kernel has no answer at inputs of 1e200: a sentence and no NaN."""
    X, y = separable(20)
    model = GaussianProcessClassifier(DotProduct(1.0), optimizer=None).fit(X, y)
    with pytest.raises(ValueError, match="not finite at row 1: its inputs are too large"):
        model.predict(np.array([[0.0, 1.0], [1e200, 0.0]]))
    regressor = GaussianProcessRegressor(DotProduct(1.0), alpha=0.1, optimizer=None).fit(X, y)
    for options in ({}, {"return_std": True}):
        with pytest.raises(ValueError, match="scale the inputs"):
            regressor.predict(np.full((1, 2), 1e200), **options)


@pytest.mark.parametrize("normalize", [False, True])
def test_targets_whose_squares_overflow_are_refused(normalize):
    """Targets of 1e200 have no variance in double precision."""
    X, y = separable(20)
    with pytest.raises(ValueError, match=r"beyond ±1e\+100; scale the targets"):
        GaussianProcessRegressor(RBF(1.0), normalize_y=normalize).fit(X, 1e200 * y)


@pytest.mark.parametrize("inference", ["ep", "laplace"])
def test_amplitudes_near_the_largest_float_are_silent(inference):
    """A variance of 1e300, beyond which cavities have none: numbers, and no warning of NumPy's."""
    X, y = separable(12)
    model = GaussianProcessClassifier(1e300 * RBF(1.0), optimizer=None, inference=inference)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert np.all(np.isfinite(model.fit(X, y).predict_proba(X)))
        assert np.all(np.isfinite(model.loo_proba_))
        regressor = GaussianProcessRegressor(1e300 * RBF(1.0), alpha=1.0, optimizer=None)
        assert np.all(np.isfinite(regressor.fit(X, y).predict(X)))


def test_weights_beyond_squares_are_refused():
    """Weights of 1e200 leave no digit to compute with."""
    X, y = separable(12)
    with pytest.raises(ValueError, match="sample weight is beyond"):
        GaussianProcessClassifier(RBF(1.0)).fit(X, y, sample_weight=np.full(12, 1e200))


def test_a_method_that_fails_at_predicting_names_the_kernel():
    """Naive mean field factors nothing in the fit; where it cannot later, it says what to do."""
    X = 1e5 + np.random.default_rng(0).normal(size=(40, 4))
    kernel = 0.3 * DotProduct(0.5, "fixed")
    model = GaussianProcessRegressor(kernel, alpha=1e-5, inference="naive", optimizer=None)
    with pytest.warns(ConvergenceWarning, match="stopped without converging"):
        model.fit(X, np.sin(X[:, 0]))
    with pytest.raises(NotPositiveDefiniteError, match=r"The kernel, .* increasing the 'alpha'"):
        model.predict(X[:2], return_std=True)
