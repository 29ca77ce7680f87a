"""Examples with equal inputs, near twins and ties: curves agree with refits, or say that not."""

from itertools import combinations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, Matern

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    learning_curve,
    simulate_learning_curve,
)
from cavity.likelihoods import Gaussian
from cavity.priors import DensePrior
from cavity.resampling import LAWS, Pool, RegressionScores, solve_sizes
from cavity.resampling.groups import groups_of

MEASURES = ("test_error", "test_log_loss", "posterior_variance", "pool_error")


def twins(n=40, apart=0.0, seed=1):
    """Every input twice, with the same function's values and little noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    y = np.sin(X[:, 0]) + X[:, 1]
    X = np.vstack([X, X + apart * rng.standard_normal(X.shape)])
    return X, np.tile(y, 2) + 0.01 * rng.standard_normal(2 * n)


def agrees_with_refits(reg, X, y, sizes, resampling="subsample"):
    """Compare within four standard errors or a tenth, the theory's accuracy."""
    curve = learning_curve(reg, X, y, train_sizes=sizes, resampling=resampling)
    refits = simulate_learning_curve(
        reg, X, y, train_sizes=sizes, resampling=resampling, n_repeats=100, random_state=0
    )
    assert np.all(curve.converged)
    for name in MEASURES:
        found, truth = getattr(curve, name), getattr(refits, name)
        allowed = np.maximum(4.0 * refits.standard_error[name], 0.1 * np.abs(truth))
        assert np.all(np.abs(found - truth) < allowed), (name, found, truth)


@pytest.mark.parametrize("resampling", ["subsample", "bootstrap"])
@pytest.mark.parametrize("noise", [1e-4, 1e-2, 0.3])
def test_every_row_twice(noise, resampling):
    """With every row given twice the curve is that of refits, at any level of noise."""
    reg = GaussianProcessRegressor(4.0 * RBF(1.0), alpha=noise, optimizer=None)
    agrees_with_refits(reg, *twins(), [40, 72], resampling)


def test_repeated_rows_with_a_wide_prior():
    """A table drawn with replacement, under a prior of 60,000 times the noise, gives numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))[rng.integers(0, 60, 60)]
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    reg = GaussianProcessRegressor(6000.0 * Matern(2.0, nu=1.5), alpha=0.1, optimizer=None)
    agrees_with_refits(reg, X, y, [6, 30, 54])


def test_few_distinct_inputs():
    """Nine inputs of many rows each, with noisy targets: the curve is that of refits."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, (90, 2)).astype(float)
    y = X[:, 0] - X[:, 1] ** 2 + 0.5 * rng.standard_normal(90)
    reg = GaussianProcessRegressor(4.0 * RBF(1.5), alpha=0.25, optimizer=None)
    agrees_with_refits(reg, X, y, [20, 45, 81])
    agrees_with_refits(reg, X, y, [20, 90], "bootstrap")


@pytest.mark.parametrize(("law", "size"), list(product(["subsample", "bootstrap"], [1, 2, 3])))
def test_one_input_is_averaged_exactly(law, size):
    """Rows of one input: averages over all training sets of a size come out exactly."""
    y, noise = np.array([0.3, -0.5, 1.1, 0.2]), 0.2
    pool = Pool(DensePrior(np.full((4, 4), 2.0)), y, Gaussian(noise), np.full(4, 0.25))
    [found] = solve_sizes(pool, np.array([float(size)]), law, "pairs", tol=1e-9, max_iter=50)
    scores = RegressionScores([pool]).held_out([found.held_out])
    error, loss = np.zeros((2, 4))
    for i in range(4):
        others = np.delete(y, i)
        sets = combinations(others, size) if law == "subsample" else product(others, repeat=size)
        for drawn in (sets := list(sets)):
            shrink = 2.0 / (noise + 2.0 * size)
            square, variance = (shrink * sum(drawn) - y[i]) ** 2, noise * shrink + noise
            error[i] += square / len(sets)
            loss[i] += 0.5 * (np.log(2.0 * np.pi * variance) + square / variance) / len(sets)
    # The number of draws, the average of their targets and its spread are all there is: rounding.
    assert_allclose(scores.error, error, rtol=1e-8)
    assert_allclose(scores.log_loss, loss, rtol=1e-8)


def test_chain_of_neighbours():
    """A dense row of inputs under much noise is not one input, though neighbours are alike."""
    x = np.linspace(0.0, 10.0, 300)[:, None]
    reg = GaussianProcessRegressor(RBF(10.0), alpha=50.0, optimizer=None)
    agrees_with_refits(reg, x, np.sin(x[:, 0]), [100, 200])


@pytest.mark.parametrize("resampling", ["subsample", "bootstrap"])
@pytest.mark.parametrize("values", [(0.0, 1.0), (1.0, 2.0)])
def test_weighted_rows_given_twice(values, resampling):
    """Rows without a weight are never drawn, and those of unequal weight each by itself."""
    X, y = twins(20)
    weight = np.random.default_rng(0).choice(values, 20)
    reg = GaussianProcessRegressor(4.0 * RBF(1.0), alpha=0.1, optimizer=None).fit(X, y)
    about = {"train_sizes": [6, 12], "resampling": resampling, "sample_weight": np.tile(weight, 2)}
    curve = learning_curve(reg, X, y, **about)
    refits = simulate_learning_curve(reg, X, y, **about, n_repeats=200, random_state=0)
    for name in ("test_error", "pool_error", "posterior_variance"):
        # A tenth is the theory's accuracy.
        near = np.maximum(4.0 * refits.standard_error[name], 0.1 * getattr(refits, name))
        assert np.all(np.abs(getattr(curve, name) - getattr(refits, name)) < near), name


@pytest.mark.parametrize("resampling", ["subsample", "bootstrap"])
def test_clusters(resampling):
    """Rows in a few tight clusters, drawn or not as a whole: the curve is that of refits."""
    rng = np.random.default_rng(0)
    X = 1e-5 * rng.standard_normal((24, 2)) + np.repeat(np.arange(3.0), 8)[:, None]
    reg = GaussianProcessRegressor(Matern(0.5, nu=0.5), alpha=0.05, optimizer=None)
    agrees_with_refits(reg, X, X[:, 0] + 0.3 * rng.standard_normal(24), [16, 20], resampling)


def test_what_is_left_out_of_a_law_is_not_absent():
    """The probability of no draw is exact, however many numbers of draws are left out."""
    rate = np.array([0.01, 1.0, 27.0])
    drawn = LAWS["bootstrap"](rate, 30.0).probability.sum(axis=0)
    # Sums of thirty numbers up to one round at 1e-16 each.
    assert_allclose(1.0 - drawn, np.exp(-rate), rtol=0.0, atol=1e-14)


def test_curve_does_not_depend_on_equality():
    """Inputs moved by less than the noise can tell give the curve of equal inputs."""
    reg = GaussianProcessRegressor(4.0 * RBF(1.0), alpha=0.1, optimizer=None)
    X, y = twins()
    rng = np.random.default_rng(0)
    moved = X + 1e-7 * rng.standard_normal(X.shape)
    one, other = (learning_curve(reg, table, y, train_sizes=[40]) for table in (X, moved))
    # The table itself differs by 1e-7.
    assert_allclose(one.test_error, other.test_error, rtol=1e-4)


def test_own_measure_and_new_inputs():
    """`measure` averages over the twins drawn, and `predict` is about the rows' own sites."""
    X, y = twins()
    reg = GaussianProcessRegressor(4.0 * RBF(1.0), alpha=0.1, optimizer=None).fit(X, y)
    curve = learning_curve(reg, X, y, train_sizes=[40])
    assert_allclose(curve.measure(lambda p, y: (p - y) ** 2), curve.test_error, rtol=1e-6)
    new = np.array([[0.3, 0.2], [-1.0, 1.0]])
    mean, variance = curve.predict(new)
    rng = np.random.default_rng(0)
    rows = [rng.permutation(80)[:40] for _ in range(200)]
    seen = np.array([reg.fit(X[r], y[r]).predict(new) for r in rows])
    # Four standard errors of 200 draws; variances of a small pool within a third.
    assert_allclose(mean[0], seen.mean(axis=0), atol=4.0 * seen.std(axis=0).max() / 14.0 + 0.01)
    assert_allclose(variance[0], seen.var(axis=0), rtol=0.35)


def test_groups_keep_apart_what_differs():
    """Rows of equal inputs but unequal noise or share are not merged; distinct ones never."""
    K, y = np.ones((4, 4)) + np.diag([0.0, 0.0, 0.0, 1.0]), np.arange(4.0)
    pool = Pool(DensePrior(K), y, Gaussian(0.1), np.full(4, 0.25))
    assert groups_of(pool).index.tolist() == [0, 0, 0, 1]
    noisy = pool._replace(likelihood=Gaussian(np.array([0.1, 0.2, 0.1, 0.1])))
    assert groups_of(noisy).index.tolist() == [0, 1, 0, 2]
    weighed = pool._replace(share=np.array([0.2, 0.2, 0.3, 0.3]))
    assert groups_of(weighed).index.tolist() == [0, 0, 1, 2]
    assert groups_of(pool._replace(prior=DensePrior(np.eye(4)))) is None


@pytest.mark.parametrize("apart", [1e-4, 1e-2, 0.1])
def test_near_twins_are_marked(apart):
    """Where whether a near twin is drawn decides, the sizes are marked and warned of once."""
    reg = GaussianProcessRegressor(4.0 * RBF(1.0), alpha=1e-4, optimizer=None)
    with pytest.warns(ConvergenceWarning, match="near twin") as caught:
        curve = learning_curve(reg, *twins(apart=apart), train_sizes=[8, 40, 72])
    assert len(caught) == 1
    assert curve.converged.tolist() == [True, False, False]
    assert np.all(np.isfinite(curve.test_log_loss))


@pytest.mark.parametrize("classes", [2, 3])
def test_ties_are_half_an_error(classes):
    """Inputs so far apart that nothing is learned about each other: half of them are wrong."""
    rng = np.random.default_rng(0)
    X = 1e4 * rng.standard_normal((40, 2))
    clf = GaussianProcessClassifier(4.0 * RBF(1.0), optimizer=None)
    curve = learning_curve(clf, X, np.arange(40) % classes, train_sizes=[8, 20, 36])
    assert_allclose(curve.test_error, 0.5, rtol=1e-12)
    # Examples drawn are right.
    assert_allclose(curve.pool_error, 0.5 * (1.0 - curve.train_sizes / 40.0), atol=1e-6)


@pytest.mark.parametrize("near", [0.01, 0.1])
def test_a_neighbour_of_many_equal_rows_is_no_reason_for_distrust(near):
    """Hardly any training set leaves out all of them: the theory holds, as refits say."""
    x = np.concatenate([np.zeros(30), [near], 3.0 * np.arange(3, 13)])
    X, y = x[:, None], np.sin(x) + 0.1 * np.random.default_rng(0).standard_normal(41)
    model = GaussianProcessRegressor(RBF(1.0), alpha=0.01, optimizer=None).fit(X, y)
    options = {"train_sizes": [10, 20, 30]}
    found = learning_curve(model, X, y, **options)
    assert found.converged.all()
    refits = simulate_learning_curve(model, X, y, n_repeats=60, random_state=0, **options)
    error = refits.standard_error["posterior_variance"]
    off = np.abs(found.posterior_variance - refits.posterior_variance)
    # The theory's own error is a few percent.
    assert np.all(off < 4.0 * error + 0.05 * refits.posterior_variance)
