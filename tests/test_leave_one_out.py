"""Scores of rows that are left out, and whether the inputs help."""

import numpy as np
import pytest

from cavity.model_selection.leave_one_out import inputs_help, loo_class_losses


def shares(y):
    """Class probabilities of each row by the rule of succession, from all other rows."""
    counts = np.bincount(y)
    rest = counts - np.eye(2, dtype=int)[y]
    return (rest + 1.0) / (len(y) + 1.0)


@pytest.mark.parametrize("ones", [46, 48, 49, 50, 51, 53, 60])
def test_shares_alone_are_wrong_for_the_rarer_class(ones):
    """Where nothing but shares is known, the rows of the rarer class are wrong; half if equal."""
    y = np.r_[np.ones(ones, int), np.zeros(100 - ones, int)]
    expected = 0.5 if ones == 50 else min(ones, 100 - ones) / 100
    assert np.mean(loo_class_losses(shares(y), y).error) == pytest.approx(expected)


def test_guessing_does_not_help():
    """Neither the shares nor one half everywhere count as help from the inputs."""
    y = np.array([0, 1] * 30)
    for proba in (shares(y), np.full((60, 2), 0.5)):
        losses = -np.log(proba[np.arange(60), y])
        assert not inputs_help(losses, y, classes=True).helps


def test_real_inputs_help():
    """Losses well below those of the shares count as help, for targets too."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    assert inputs_help(np.full(60, 0.3), y, classes=True).helps
    target = rng.standard_normal(60)
    assert inputs_help(np.full(60, 0.5), target, classes=False).helps
    guess = 0.5 * np.log(2.0 * np.pi) + 0.5 * target**2
    assert not inputs_help(guess, target, classes=False).helps
