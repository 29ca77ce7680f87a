"""The automatic kernel: no scaling, no overfitting, and a table of what was tried."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.datasets import load_pima
from cavity.kernels import Linear, rule
from cavity.testing import check_kernel


def classes(n, d, seed, signal=2.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (signal * np.sin(2.0 * X[:, 0]) + 0.5 * rng.standard_normal(n) > 0).astype(int)


def test_units_do_not_matter():
    """Inputs in other units, and shifted ones, give the same predictions."""
    X, y = classes(80, 3, 0)
    unit, shift = np.array([1e-3, 1.0, 1e4]), np.array([5.0, -3.0, 2e5])
    plain = GaussianProcessClassifier("auto").fit(X, y).predict_proba(X)
    other = GaussianProcessClassifier("auto").fit(X * unit + shift, y)
    # Distances of shifted inputs lose five digits.
    np.testing.assert_allclose(other.predict_proba(X * unit + shift), plain, atol=1e-4)


def test_targets_in_other_units():
    """A target in other units gives the same predictions in these units."""
    X, _ = classes(60, 2, 1)
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    plain = GaussianProcessRegressor("auto").fit(X, y).predict(X, return_std=True)
    other = GaussianProcessRegressor("auto").fit(X, 1e4 * y - 7e5).predict(X, return_std=True)
    # Rounding of the target, and the search's own tolerance.
    np.testing.assert_allclose((other[0] + 7e5) / 1e4, plain[0], atol=1e-5)
    np.testing.assert_allclose(other[1] / 1e4, plain[1], rtol=1e-4)


def test_coin_flips_are_coin_flips():
    """On labels that nothing predicts, the reported log loss is not below that of guessing."""
    losses = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((100, 10)), rng.integers(0, 2, 100)
        losses.append(log_loss(y, GaussianProcessClassifier("auto").fit(X, y).loo_proba_))
    assert np.mean(losses) > 0.685


def test_one_real_input_among_many():
    """One real input among thirty is used, and leave-one-out agrees with fresh rows."""
    X, y = classes(1200, 30, 2)
    clf = GaussianProcessClassifier("auto").fit(X[:200], y[:200])
    fresh = log_loss(y[200:], clf.predict_proba(X[200:]))
    assert fresh < 0.3
    # Two standard errors of the mean of 200 losses, about.
    assert abs(log_loss(y[:200], clf.loo_proba_) - fresh) < 0.08


def test_a_table_of_what_was_tried():
    """The comparison has all candidates, the best first, and only the best is chosen."""
    X, y = load_pima(return_X_y=True)
    tried = GaussianProcessClassifier("auto").fit(X, y).kernel_comparison_
    assert {row.kernel for row in tried} == {
        "constant",
        "linear",
        "rbf",
        "matern52",
        "rbf + linear",
        "matern52 + linear",
    }
    values = [row.log_evidence for row in tried]
    assert values == sorted(values, reverse=True)
    assert [row.chosen for row in tried] == [True, *[False] * 5]
    assert "log_evidence" in repr(tried)
    assert len(tried.to_frame()) == 6


def test_no_choice_no_table():
    """A kernel of the user's own has no comparison."""
    X, y = classes(30, 2, 3)
    clf = GaussianProcessClassifier().fit(X, y)
    with pytest.raises(AttributeError, match="auto"):
        _ = clf.kernel_comparison_


def test_several_classes():
    """Each class has its own hyperparameters of the kernel that is best for all."""
    X, y = load_iris(return_X_y=True)
    clf = GaussianProcessClassifier("auto").fit(X, y)
    assert len(clf.kernel_.kernels) == 3
    assert log_loss(y, clf.loo_proba_) < 0.12


def test_constant_column_and_tiny_table():
    """A constant column, and fewer rows than inputs, are no trouble."""
    X, y = classes(12, 20, 4)
    X[:, 3] = 7.0
    assert np.isfinite(GaussianProcessClassifier("auto").fit(X, y).loo_proba_).all()


def test_weights_and_clones():
    """Weights of zero leave rows out, and a clone is not fitted."""
    X, y = classes(60, 2, 5)
    weight = np.r_[np.ones(40), np.zeros(20)]
    clf = GaussianProcessClassifier("auto").fit(X, y, weight)
    assert clf.loo_proba_.shape == (60, 2)
    assert not hasattr(clone(clf), "_model")


def test_no_prior_before_fitting():
    """An automatic kernel has no prior to predict from."""
    with pytest.raises(NotFittedError):
        GaussianProcessRegressor("auto").predict([[0.0]])


def test_progress_is_printed(capsys):
    """With verbose a line is printed for each problem."""
    X, y = classes(30, 2, 6)
    GaussianProcessClassifier("auto", verbose=1).fit(X, y)
    assert "evaluations" in capsys.readouterr().out


def test_linear_kernel_keeps_the_contract():
    """The linear kernel's rule computes what the kernel object does."""
    X = np.random.default_rng(7).standard_normal((9, 3))
    kernel = 2.0 * Linear(np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.0, -1.0]))
    np.testing.assert_allclose(rule(kernel).matrix(X), kernel(X), rtol=1e-12)
    check_kernel(kernel, X)
    assert kernel == clone(kernel)
    assert kernel != 2.0 * Linear(1.0)
