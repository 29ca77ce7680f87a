"""Targets that are off: how many, which, and where they should be."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessRegressor, find_suspects
from cavity.model_selection.outliers import outliers


def drawn(n, share, rng):
    """Errors of which a share is of another kind, and which these are."""
    wrong = rng.random(n) < share
    usual = 0.8 * rng.standard_t(5.0, n)
    return np.where(wrong, 10.0 * rng.standard_normal(n), usual), wrong


@pytest.mark.parametrize("share", [0.03, 0.15])
def test_number_of_outliers(share):
    """Of errors drawn from the model itself, 90 % intervals hold their number about as often."""
    rng, inside = np.random.default_rng(1), []
    for _ in range(12):
        errors, wrong = drawn(200, share, rng)
        low, high = outliers(errors).interval(0.9)
        inside.append(low <= wrong.sum() <= high)
    # Fewer than 8 of 12 at a coverage of 0.9 have a probability below 1 %.
    assert np.sum(inside) >= 8


def test_probabilities_are_calibrated():
    """The probabilities of all errors sum to the number of outliers."""
    errors, wrong = drawn(5000, 0.1, np.random.default_rng(2))
    found = outliers(errors)
    assert found.wrong.sum() == pytest.approx(wrong.sum(), rel=0.1)
    assert found.wrong[np.abs(errors) > 8.0].min() > 0.9
    assert found.wrong[np.abs(errors) < 0.5].max() < 0.1


def test_nothing_is_too_far_off():
    """The farther off, the likelier an outlier, beyond any size that the others suggest."""
    errors, _ = drawn(300, 0.1, np.random.default_rng(4))
    found = outliers(np.append(errors, [1e2, 1e4, 1e8]))
    assert np.all(found.wrong[-3:] > 0.999)
    order = np.argsort(np.abs(errors))
    assert np.all(np.diff(found.wrong[order]) >= -1e-12)


def test_unit_of_the_errors_does_not_matter():
    """A model that expects errors ten times as large finds the same outliers."""
    errors, _ = drawn(150, 0.1, np.random.default_rng(3))
    np.testing.assert_allclose(outliers(errors).wrong, outliers(-0.1 * errors).wrong, atol=1e-6)


def test_normal_errors_have_no_outliers():
    """Where all errors are normal, hardly any can be an outlier."""
    low, high = outliers(np.random.default_rng(0).standard_normal(300)).interval(0.9)
    assert low == 0
    assert high <= 12


def test_without_errors():
    """Where most targets are as predicted exactly, all others are outliers."""
    found = outliers(np.array([0.0, 0.0, 0.0, 5.0]))
    assert found.wrong.tolist() == [0.0, 0.0, 0.0, 1.0]
    assert found.interval(0.9) == (1, 1)


def noisy(rng):
    X = rng.uniform(0.0, 6.0, (120, 1))
    y = 50.0 + 10.0 * np.sin(X[:, 0]) + rng.standard_normal(120)
    wrong = rng.choice(120, 8, replace=False)
    y[wrong] += rng.choice([-1.0, 1.0], 8) * rng.uniform(10.0, 30.0, 8)
    return X, y, wrong


def test_outliers_of_a_fit():
    """Targets that are off come first, with what they should be and from which rows that comes."""
    X, y, wrong = noisy(np.random.default_rng(0))
    model = GaussianProcessRegressor(1.0 * RBF(1.0), likelihood="student_t", normalize_y=True)
    found = find_suspects(model.fit(X, y))
    assert set(wrong) <= {s.index for s in found}
    assert found.count_interval[0] <= 8 <= found.count_interval[1]
    assert repr(found).startswith("Outliers: about")
    for s in found[:8]:
        truth = 50.0 + 10.0 * np.sin(X[s.index, 0])
        assert s.label == pytest.approx(y[s.index])
        assert s.suggestion == pytest.approx(truth, abs=2.0)  # noise of one, eight rows nearby
        assert s.interval[0] < truth < s.interval[1]
        assert not s.interval[0] < s.label < s.interval[1]
        near = [abs(X[r.index, 0] - X[s.index, 0]) for r in s.reasons]
        assert max(near) < 1.0
        assert all(r.label == pytest.approx(y[r.index]) for r in s.reasons)
    assert list(found.to_frame())[-2:] == ["reasons", "interval"]


@pytest.mark.parametrize("likelihood", ["gaussian", "poisson"])
def test_outliers_of_other_likelihoods(likelihood):
    """A gross error comes first whatever the likelihood; an interval belongs to each."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 6.0, (80, 1))
    y = rng.poisson(np.exp(2.0 + np.sin(X[:, 0]))).astype(float)
    y[7] = 60.0
    model = GaussianProcessRegressor(1.0 * RBF(2.0), optimizer=None, likelihood=likelihood)
    if likelihood == "gaussian":
        model.set_params(alpha=0.3, normalize_y=True)
    first = find_suspects(model.fit(X, y), k=1)[0]
    assert first.index == 7
    assert first.interval[0] < first.suggestion < first.interval[1] < 60.0


def test_several_targets_are_refused():
    """There is one number for one target."""
    X = np.linspace(0.0, 1.0, 10)[:, None]
    model = GaussianProcessRegressor(RBF(1.0), optimizer=None).fit(X, np.hstack([X, X]))
    with pytest.raises(ValueError, match="one target"):
        find_suspects(model)
