"""Functions of several classes are drawn from their joint posterior."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessClassifier, feature_effect, feature_importance
from cavity.likelihoods.multinomial import class_log_proba, independent_log_proba
from cavity.sites import ClassMarginals

SOFTMAX = {"likelihood": "logit", "inference": "laplace"}


def fitted(n_classes=3, weight=None, **options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = np.argmax(X @ rng.normal(size=(2, n_classes)) + rng.normal(size=(30, n_classes)), axis=1)
    y[:n_classes] = np.arange(n_classes)
    clf = GaussianProcessClassifier(
        2.0 * RBF(1.0), multi_class="multinomial", optimizer=None, **options
    )
    return clf.fit(X, y, sample_weight=weight), X


@pytest.mark.parametrize(
    ("options", "weighted"),
    [({}, False), ({"n_classes": 5}, False), ({}, True), (SOFTMAX, False)],
    ids=["projected", "class by class", "weights", "softmax"],
)
def test_draws_have_the_moments_of_predictions(options, weighted):
    """Mean and covariance over many draws are those of the posterior at each new input."""
    weight = 1.0 + np.arange(30) % 3 if weighted else None
    clf, _ = fitted(weight=weight, **options)
    [process], new = clf._model.processes, np.array([[0.0, 0.5], [1.5, -1.0], [4.0, 4.0]])
    drawn = process.draws(new, 4000, np.random.default_rng(1))
    [q] = process.predict(new)
    # Classes are compared with each other; the level that they share is not in the softmax.
    centre = np.eye(len(drawn)) - 1.0 / len(drawn)
    f = np.moveaxis(drawn, 0, -1) @ centre
    covariance = centre @ q.covariance @ centre
    scale = np.max(np.einsum("icc->ic", covariance))
    # Five standard errors of 4,000 draws.
    off = 5.0 / np.sqrt(4000.0)
    assert_allclose(f.mean(axis=0), q.mean @ centre, atol=off * np.sqrt(scale))
    found = [np.cov(f[:, i], rowvar=False) for i in range(len(new))]
    assert_allclose(found, covariance, atol=1.5 * off * scale)


def test_draws_belong_together():
    """Values that are drawn at two inputs covary as functions do: equal inputs, equal values."""
    clf, X = fitted()
    drawn = clf._model.processes[0].draws(X[[4, 4]], 5, np.random.default_rng(2))
    # The square root of rounding, from a singular covariance.
    assert_allclose(drawn[..., 0], drawn[..., 1], atol=1e-6)


def test_probabilities_of_drawn_values():
    """The quick average over independent values is the class probability."""
    rng = np.random.default_rng(3)
    f, v = 3.0 * rng.standard_normal((100, 3)), rng.uniform(0.0, 3.0, 100)
    truth = class_log_proba(ClassMarginals(f, v[:, None, None] * np.eye(3)))
    # The error of 24 nodes.
    assert_allclose(np.exp(independent_log_proba(f, v)), np.exp(truth), atol=1e-7)


@pytest.mark.parametrize("options", [{}, SOFTMAX], ids=["probit", "softmax"])
def test_which_inputs_matter(options):
    """Importance and effects of inputs are there for all classes at once."""
    X, y = load_iris(return_X_y=True)
    clf = GaussianProcessClassifier(
        4.0 * RBF(2.0), multi_class="multinomial", optimizer=None, **options
    ).fit(X[::3], y[::3])
    table = feature_importance(clf, X[::3], n_draws=30, random_state=0)
    assert {row.feature for row in list(table)[:2]} == {"x2", "x3"}
    assert all(0.0 <= row.low <= row.importance <= row.high <= 1.0 for row in table)
    assert feature_effect(clf, X[::3], 2, grid=[1.0, 6.0]).mean.shape == (2, 3)
