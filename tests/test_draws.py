"""Draws from likelihoods have their mean and variance; limits and sites that faults change."""

import math

import numpy as np
import pytest

from cavity.likelihoods import (
    Censored,
    Gamma,
    Gaussian,
    Logit,
    NegativeBinomial,
    NoisyProbit,
    Poisson,
    Probit,
    StudentT,
)
from cavity.sites import Sites, change_of_sites

MANY = 200_000
MODELS = [
    Gaussian(0.3),
    Probit(),
    Logit(),
    NoisyProbit(),
    Poisson(),
    NegativeBinomial(2.5),
    Gamma(3.0),
    StudentT(9.0, 0.7),
    Censored(0.5, lower=-1.0, upper=0.8),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("f", [-0.7, 0.4])
def test_draws_have_mean_and_variance(model, f):
    """The average of many draws and of their squares, to five standard errors."""
    draws = np.asarray(model.sample(np.full(MANY, f), np.random.default_rng(0)), dtype=float)
    at = np.array([f])
    mean, variance = float(model.mean(at)[0]), float(model.variance(at)[0])
    off = draws - mean
    assert abs(off.mean()) < 5.0 * math.sqrt(variance / MANY)
    assert abs(np.mean(off**2) - variance) < 5.0 * np.std(off**2) / math.sqrt(MANY)


def test_a_limit_is_what_two_targets_share():
    """A largest or smallest target that occurs once is no limit, one that occurs twice is."""
    found = Censored().fitted_to(np.array([0.0, 0.0, 0.5, 1.0, 2.0, 2.0]))
    assert (found.lower, found.upper) == (0.0, 2.0)
    found = Censored().fitted_to(np.array([-1.0, 0.0, 0.5, 1.0, 2.0]))
    assert (found.lower, found.upper) == (-math.inf, math.inf)


def test_a_change_of_either_part_of_a_site_counts():
    """Precisions count with the variance, their means with the deviation; the larger of both."""
    old, variance = Sites(np.array([1.0]), np.array([2.0])), np.array([4.0])
    assert change_of_sites(Sites(np.array([1.5]), np.array([2.0])), old, variance) == 2.0
    assert change_of_sites(Sites(np.array([1.0]), np.array([2.5])), old, variance) == 1.0
