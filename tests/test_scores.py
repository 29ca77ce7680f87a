"""Error, log loss and Brier score of predictions, against scikit-learn's metrics."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_softmax
from scipy.stats import norm
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, mean_squared_error

from cavity.likelihoods import Probit
from cavity.priors import DensePrior
from cavity.resampling.classes import _wrong_side
from cavity.resampling.pool import Averages, Pool, mixed
from cavity.resampling.scores import Losses, checked_units, class_scores, target_scores


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


@pytest.mark.parametrize("y", [[0.0, 2e50], [0.0, 1e-51], [5e-60, 0.0]])
def test_targets_without_a_fourth_power_are_refused(y):
    """Squares of squared errors have to be numbers; equal targets have none that matter."""
    with pytest.raises(ValueError, match="use units"):
        checked_units(np.array(y))
    for fine in (np.zeros(3), np.full(3, 7.0), np.array([1e-49, 0.0]), np.array([-1e50, 1e50])):
        assert checked_units(fine) is fine


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e8])
def test_predictions_have_a_side_in_any_unit(unit):
    """Only a prediction that is zero up to rounding, beside its deviation, is half wrong."""
    sd = unit * np.ones(3)
    c = Averages(sd**2, sd * [0.5, -0.5, 1e-14], sd**2)
    pool = Pool(DensePrior(np.eye(3)), np.ones(3), Probit(), np.full(3, 1 / 3))
    assert_allclose(_wrong_side(pool, c), norm.cdf([-0.5, 0.5, 0.0]), rtol=1e-12)


def test_shares_of_a_mixture_sum_to_one():
    """Averages of a mixture do not depend on what its shares sum to."""
    rng = np.random.default_rng(0)
    parts = [Averages(*rng.uniform(1.0, 2.0, (3, 4))) for _ in range(2)]
    half = np.full(4, 0.5)
    found, other = (mixed(tuple((s * half, c) for c in parts)) for s in (1.0, 0.25))
    assert_allclose(found.G, 0.5 * (parts[0].G + parts[1].G), rtol=1e-14)
    apart = 0.25 * (parts[0].R - parts[1].R) ** 2
    assert_allclose(found.V, 0.5 * (parts[0].V + parts[1].V) + apart, rtol=1e-13)
    for one, two in zip(found[:3], other[:3], strict=True):
        assert_allclose(one, two, rtol=1e-14)
