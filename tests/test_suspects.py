"""Suspects: labels that were turned round come first."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    find_suspects,
    learning_curve,
)
from cavity.datasets import load_crabs


def flipped_crabs(seed):
    """Crabs with 5 % of their labels turned round, and which they are."""
    X, y = load_crabs(return_X_y=True)
    wrong = np.zeros(len(y), dtype=bool)
    wrong[np.random.default_rng(seed).choice(len(y), len(y) // 20, replace=False)] = True
    return X, np.where(wrong, 1 - y, y), wrong


def crabs_curve(X, y):
    kernel = 1.0 * RBF([1.0] * X.shape[1]) + 1.0 * DotProduct()
    model = make_pipeline(StandardScaler(), GaussianProcessClassifier(kernel))
    with warnings.catch_warnings():
        # Inputs that do not matter get length scales at the upper bound.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return learning_curve(model, X, y, train_sizes=[len(y)])


def auc(seed):
    X, y, wrong = flipped_crabs(seed)
    return roc_auc_score(wrong, crabs_curve(X, y).point_doubt[-1])


def test_flipped_labels_come_first():
    """Wrong labels among the crabs rank above right ones: AUC of at least 0.9, two seeds."""
    assert np.mean([auc(seed) for seed in range(2)]) >= 0.9


@pytest.mark.slow
def test_flipped_labels_come_first_on_average():
    """The mean AUC over twenty random choices of wrong labels is at least 0.9."""
    assert np.mean([auc(seed) for seed in range(20)]) >= 0.9


def test_table_of_suspects():
    """The table is sorted by doubt, and suggests the other label where that is more probable."""
    X, y, _ = flipped_crabs(0)
    curve = crabs_curve(X, y)
    found = curve.suspects(15)
    doubt = [suspect.doubt for suspect in found]
    assert len(found) == 15
    assert doubt == sorted(doubt, reverse=True)
    assert doubt[0] == curve.point_doubt[-1].max()
    assert repr(found).split()[:5] == ["row", "label", "suggestion", "probability", "doubt"]
    assert list(found.to_frame()) == ["label", "suggestion", "probability", "doubt", "error"]
    with pytest.raises(ValueError, match="use find_suspects"):
        found.about  # noqa: B018 (it raises)
    for suspect in found:
        assert suspect.label == y[suspect.index]
        assert (suspect.probability < 0.5) == (suspect.doubt > 0.0)
        assert (suspect.suggestion != suspect.label) == (suspect.probability < 0.5)


def test_promised_precision():
    """A curve chooses as many examples as asked for, and says how many labels are wrong."""
    X, y, wrong = flipped_crabs(0)
    curve = crabs_curve(X, y)
    found = curve.suspects(precision=0.5)
    assert np.mean(wrong[[s.index for s in found]]) == pytest.approx(0.5, abs=0.15)
    assert found.count_interval[0] <= wrong.sum() <= found.count_interval[1]
    assert found[-1].precision >= 0.5
    assert len(curve.suspects(3, precision=0.5)) == 3
    assert "Wrong labels: about" in repr(found)


def test_promises_need_all_probabilities():
    """Of three classes a curve keeps too little to say how likely a label is wrong."""
    X = np.arange(30.0)[:, None]
    model = GaussianProcessClassifier(4.0 * RBF(5.0), optimizer=None)
    curve = learning_curve(model, X, np.repeat([0, 1, 2], 10), train_sizes=[30])
    with pytest.raises(ValueError, match="find_suspects"):
        curve.suspects(precision=0.5)


def test_wrong_target_comes_first():
    """A target that is off by many standard deviations is the first suspect of a regressor."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, (60, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(60)
    y[17] += 2.0
    model = GaussianProcessRegressor(1.0 * RBF(1.0), alpha=0.02, optimizer=None)
    curve = learning_curve(model, X, y, train_sizes=[60])
    first = curve.suspects(1)[0]
    assert first.index == 17
    assert first.label == y[17]
    assert first.suggestion == pytest.approx(np.sin(X[17, 0]), abs=0.3)  # three noise deviations
    assert curve.suspects(precision=0.9)[0].index == 17


@pytest.mark.parametrize("k", [0, 201])
def test_number_of_suspects(k):
    """There are at least one and at most as many suspects as examples."""
    X, y, _ = flipped_crabs(0)
    model = GaussianProcessClassifier(100.0 * RBF(10.0), optimizer=None)
    curve = learning_curve(model, X, y, train_sizes=[20])
    with pytest.raises(ValueError, match="between 1 and the 200 examples"):
        curve.suspects(k)


def test_former_names_still_answer():
    """Doubt was called evidence; the old names give the same numbers and a warning."""
    X, y, _ = flipped_crabs(0)
    model = GaussianProcessClassifier(100.0 * RBF(10.0), optimizer=None)
    curve = learning_curve(model, X, y, train_sizes=[20])
    with pytest.warns(DeprecationWarning, match="point_doubt"):
        assert curve.point_evidence is curve.point_doubt
    first = curve.suspects(1)[0]
    with pytest.warns(DeprecationWarning, match="doubt"):
        assert first.evidence == first.doubt


def test_a_number_that_is_open_is_not_said():
    """On coin flips the sentence says that the number is open; where it is known it says it."""
    rng = np.random.default_rng(0)
    coins = GaussianProcessClassifier("auto").fit(
        rng.normal(size=(120, 3)), rng.integers(0, 2, 120)
    )
    found = find_suspects(coins)
    assert found.about.startswith("Wrong labels: open how many of 120 (90% interval ")
    X, y, _ = flipped_crabs(0)
    assert "about" in find_suspects(GaussianProcessClassifier("auto").fit(X, y)).about
