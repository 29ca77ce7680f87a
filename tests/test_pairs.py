"""Pairs of examples: the second-order part of the theory, against all training sets there are."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cavity.likelihoods.gaussian import Gaussian
from cavity.priors import DensePrior
from cavity.resampling.averaged import prior_cavities, solve_averages
from cavity.resampling.laws import LAWS
from cavity.resampling.pairs import with_pairs
from cavity.resampling.pool import Pool
from cavity.resampling.theories import cavity_theory

NOISE = 0.1


def small_pool(seed, n=10, perturbed=0.0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, n)
    K = np.exp(-0.5 * (x[:, None] - x) ** 2)
    y = np.sin(2.0 * x) + 0.3 * rng.standard_normal(n)
    return Pool(DensePrior(K + perturbed * np.outer(y, y)), y, Gaussian(NOISE), np.full(n, 1 / n))


def solved(pool, rate, tol=1e-9):
    occupancy = LAWS["subsample"](np.full(len(pool.y), rate))
    theory = cavity_theory(pool, occupancy)
    found = solve_averages(pool, theory, prior_cavities(pool.prior), tol=tol, max_iter=500)
    return found, occupancy


def all_training_sets(pool, rate):
    """Average variance and squared error at the pool, and held out, over every subset."""
    K, y, n = pool.prior.K, pool.y, len(pool.y)
    inside, outside, absent = np.zeros((2, n)), np.zeros((2, n)), np.zeros(n)
    for drawn in product([False, True], repeat=n):
        i = np.array(drawn)
        p = rate ** i.sum() * (1.0 - rate) ** (~i).sum()
        solve = np.linalg.solve(K[np.ix_(i, i)] + NOISE * np.eye(i.sum()), K[i])
        seen = np.stack([np.diag(K) - np.sum(K[i] * solve, axis=0), (y[i] @ solve - y) ** 2])
        inside += p * seen
        outside += p * seen * ~i
        absent += p * ~i
    return inside, outside / absent


@pytest.mark.parametrize("rate", [0.3, 0.6])
def test_pairs_bring_theory_closer_to_all_training_sets(rate):
    """With pairs, averages over all 1,024 subsets are missed by less, over several pools."""
    misses = np.zeros((2, 4))
    for seed in range(6):
        pool = small_pool(seed)
        found, occupancy = solved(pool, rate)
        truth = np.ravel([part.mean(axis=1) for part in all_training_sets(pool, rate)])
        for k, c in enumerate((found, with_pairs(pool, found, occupancy))):
            ours = [(o.G.mean(), mean_error(o, pool)) for o in (c.pool, c.held_out)]
            misses[k] += (np.ravel(ours) / truth - 1.0) ** 2
    assert np.all(misses[1] < misses[0])


def mean_error(order, pool):
    return np.mean((order.R - pool.y) ** 2 + order.V)


def test_error_is_the_slope_of_the_variance():
    """The squared error is −dG/dε for K − ε y yᵀ, with and without pairs."""
    step = 1e-4
    pool = small_pool(0)
    found, occupancy = solved(pool, 0.5, tol=1e-12)
    sides = []
    for perturbed in (step, -step):
        moved = small_pool(0, perturbed=perturbed)
        there, _ = solved(moved, 0.5, tol=1e-12)
        sides.append((there, with_pairs(moved, there, occupancy)))
    for k, c in enumerate((found, with_pairs(pool, found, occupancy))):
        slope = (sides[0][k].pool.G - sides[1][k].pool.G) / (2.0 * step)
        error = (c.pool.R - pool.y) ** 2 + c.pool.V
        # Central differences leave step²; the trust in a gain is itself taken for constant.
        assert_allclose(slope, error, rtol=1e-5 if k == 0 else 0.05, atol=1e-4)


def test_nothing_to_add_where_nothing_varies():
    """When every example is drawn for certain, pairs add nothing."""
    pool = small_pool(1)
    found, occupancy = solved(pool, 1.0)
    better = with_pairs(pool, found, occupancy)
    # Differences of products of numbers of order one.
    assert_allclose(better.pool.G, found.pool.G, rtol=1e-8)
    assert_allclose(better.held_out.V, found.held_out.V, atol=1e-8)


def test_variance_stays_below_the_prior():
    """However strong the coupling, the average posterior variance is at most the prior's."""
    pool = small_pool(2)._replace(likelihood=Gaussian(1e-6))
    found, occupancy = solved(pool, 0.2, tol=1e-7)
    better = with_pairs(pool, found, occupancy)
    assert np.max(better.pool.G - pool.prior.diag) <= 0.0
    assert np.all(np.isfinite(better.held_out.V))
