"""Error, log loss and Brier score of predictions, against scikit-learn's metrics."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_softmax
from scipy.stats import norm
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, mean_squared_error

from cavity.resampling.scores import Losses, class_scores, target_scores


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_classes_as_in_scikit_learn(n_classes, weighted):
    """The averages are scikit-learn's, with and without weights."""
    rng = np.random.default_rng(n_classes)
    log_p = log_softmax(2.0 * rng.standard_normal((60, n_classes)), axis=1)
    codes = rng.integers(n_classes, size=60)
    weight = rng.exponential(size=60) if weighted else np.ones(60)
    weight /= weight.sum()
    p, classes = np.exp(log_p), np.arange(n_classes)
    found = Losses(*(part @ weight for part in class_scores(log_p, codes)[:3]))
    right = accuracy_score(codes, np.argmax(p, axis=1), sample_weight=weight)
    assert found.error == pytest.approx(1.0 - right, rel=1e-12)
    loss = log_loss(codes, p, sample_weight=weight, labels=classes)
    assert found.log_loss == pytest.approx(loss, rel=1e-12)
    brier = brier_score_loss(codes == 1, p[:, 1], sample_weight=weight)
    if n_classes > 2:
        # Releases of scikit-learn that know more than two classes do not halve the sum.
        one_by_one = [brier_score_loss(codes == k, p[:, k], sample_weight=weight) for k in classes]
        brier = np.sum(one_by_one)
    assert found.brier == pytest.approx(brier, rel=1e-12)


def test_ties_are_half_an_error():
    """Where the label shares the largest probability it is a guess, whichever class it is."""
    log_p = np.log([[0.5, 0.5], [0.5, 0.5]])
    assert class_scores(log_p, np.array([0, 1])).error.tolist() == [0.5, 0.5]


def test_several_predictions_at_a_time():
    """Leading axes are predictions of the same examples, each judged as by itself."""
    rng = np.random.default_rng(0)
    log_p, codes = log_softmax(rng.standard_normal((4, 9, 3)), axis=2), np.arange(9) % 3
    together = class_scores(log_p, codes)
    for k in range(4):
        for part, whole in zip(class_scores(log_p[k], codes)[:3], together[:3], strict=True):
            assert_allclose(whole[k], part, rtol=1e-14)


def test_targets_are_judged_by_normal_densities():
    """Squared errors are scikit-learn's, log losses those of scipy's normal density."""
    rng = np.random.default_rng(1)
    mean, y = rng.standard_normal((2, 30))
    variance, weight = rng.exponential(size=30), rng.exponential(size=30)
    weight /= weight.sum()
    found = Losses(*(part @ weight for part in target_scores(mean, variance, y)[:2]))
    square = mean_squared_error(y, mean, sample_weight=weight)
    assert found.error == pytest.approx(square, rel=1e-12)
    loss = -norm.logpdf(y, mean, np.sqrt(variance)) @ weight
    assert found.log_loss == pytest.approx(loss, rel=1e-12)
    assert found.brier is None
