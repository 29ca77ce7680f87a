"""Learning curves with inducing points, on rows in blocks."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    learning_curve,
    simulate_learning_curve,
)
from cavity.inference import EP, Problem
from cavity.kernels import rule
from cavity.likelihoods import Gaussian, Logit, Probit
from cavity.priors import DensePrior, InducingPrior
from cavity.resampling import (
    BlockPool,
    Pool,
    block_sizes,
    solve_on_blocks,
    solve_sizes,
)
from cavity.rows import BatchRows, MemoryBlocks
from cavity.sites import Marginals, Rows

KERNEL = rule(4.0 * Matern(1.5))
ROUGH = 4.0 * Matern(1.5)
TIGHT = {"tol": 1e-10, "max_iter": 1000}
AVERAGES = ["test_error", "test_log_loss", "test_brier", "pool_error", "posterior_variance"]
POINTS = ["error", "log_loss", "support", "doubt", "mean", "variance"]


def table(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    f = 2.0 * np.sin(X[:, 0]) + X[:, 1]
    return X, f + 0.5 * rng.normal(size=n)


def classes(n=60, seed=0):
    X, f = table(n, seed)
    return X, np.where(f > 0.0, "yes", "no")


def target_of(likelihood, f):
    return f if likelihood.quadratic else np.sign(f)


def pool_of(likelihood, Z, size=None, n=40, share=None, kernel=KERNEL):
    """Return a pool in blocks of a given size, with a fit to it."""
    X, f = table(n)
    y = target_of(likelihood, f)
    blocks = MemoryBlocks(Rows(y, np.ones(n), X), size)
    prior = InducingPrior.of(kernel, X[:Z])
    fit = EP(tol=1e-10, max_iter=500).fit(Problem(likelihood, prior, blocks))
    share = 1.0 / n if share is None else share
    return BlockPool(prior, blocks, likelihood, n, share, 0.0, fit.posterior, fit.start.sites)


def averages_of(pool, found):
    """Return held-out averages and those of the whole pool of all rows."""
    parts = list(pool.blocks.collect(lambda rows, kept, _: kept, None, found.state.name))
    each = [[*part.held_out[:3], *part.pool[:3]] for part in parts]
    return [np.concatenate(column) for column in zip(*each, strict=True)]


@pytest.mark.parametrize(
    ("likelihood", "law"),
    [
        (Probit(), "subsample"),
        (Logit(), "subsample"),
        (Gaussian(0.1), "subsample"),
        (Probit(), "bootstrap"),
        (Gaussian(0.1), "bootstrap"),
    ],
)
def test_all_points_are_no_points(likelihood, law):
    """With every row an inducing point, the averages are those under the whole matrix."""
    X, f = table(40)
    y, sizes = target_of(likelihood, f), np.array([6.0, 25.0])
    share = np.random.default_rng(1).uniform(0.5, 1.0, 40)
    share /= share.sum()
    dense = Pool(DensePrior(KERNEL.matrix(X)), y, likelihood, share)
    pool = pool_of(likelihood, 40, 17, share=share)
    about = (sizes, law, "cavity")
    for want, got in zip(
        solve_sizes(dense, *about, **TIGHT), solve_on_blocks(pool, *about, **TIGHT), strict=True
    ):
        assert want.converged
        assert got.converged
        parts = [*want.held_out[:3], *want.pool[:3]]
        # Both stop at a residual of 1e-10.
        for a, b in zip(parts, averages_of(pool, got), strict=True):
            assert_allclose(b, a, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("likelihood", "law"),
    [(Probit(), "subsample"), (Probit(), "bootstrap"), (Gaussian(0.1), "bootstrap")],
)
def test_blocks_change_nothing(likelihood, law):
    """The averages do not depend on where the blocks end."""
    sizes, found = np.array([8.0, 20.0]), []
    for size in (None, 7, 39):
        pool = pool_of(likelihood, 15, size)
        solved = solve_on_blocks(pool, sizes, law, "cavity", tol=1e-3, max_iter=200)
        found.append(np.concatenate([averages_of(pool, s) for s in solved]))
    for other in found[1:]:
        # The same rounds: nothing but the order of sums differs.
        assert_allclose(other, found[0], rtol=1e-10, atol=1e-10)


def test_without_a_fit():
    """From the prior upwards, or from predictions downwards, the solution is the same."""
    pool, sizes = pool_of(Probit(), 15, 20), np.array([8.0, 20.0, 40.0])
    starts = [pool, pool._replace(fitted=None), pool._replace(fitted=None, posterior=None)]
    found = [
        [averages_of(p, s) for s in solve_on_blocks(p, sizes, "subsample", "cavity", **TIGHT)]
        for p in starts
    ]
    for other in found[1:]:
        assert_allclose(other, found[0], rtol=1e-8, atol=1e-8)


class Losing(MemoryBlocks):
    """Blocks that lose what one of them keeps in the third visit of every state."""

    visits = 0

    def reduce(self, visit, shared, state, start=None):
        self.visits += 1
        if self.visits == 7:
            self._states[state][1] = None
        return super().reduce(visit, shared, state, start)


def test_a_lost_block_begins_anew():
    """A block that has lost its sites ends where it would have ended."""
    likelihood, (X, f) = Probit(), table(40)
    pool, sizes = pool_of(likelihood, 15, 20), np.array([15.0, 30.0])
    blocks = Losing(Rows(np.sign(f), np.ones(40), X), 20)
    lossy = pool._replace(blocks=blocks, fitted=None)
    want = solve_on_blocks(pool, sizes, "subsample", "cavity", **TIGHT)
    got = solve_on_blocks(lossy, sizes, "subsample", "cavity", **TIGHT)
    for a, b in zip(want, got, strict=True):
        assert b.converged
        assert_allclose(averages_of(lossy, b), averages_of(pool, a), rtol=1e-8, atol=1e-8)


def test_variance_falls_with_the_size():
    """More examples leave less variance; with all of them the averages are leave-one-out."""
    pool, sizes = pool_of(Probit(), 15, 20), np.array([2.0, 5.0, 10.0, 20.0, 40.0])
    solved = solve_on_blocks(pool, sizes, "subsample", "cavity", **TIGHT)
    G = [np.mean(averages_of(pool, s)[3]) for s in solved]
    assert np.all(np.diff(G) < 0.0)
    problem = Problem(Probit(), pool.prior, pool.blocks)
    m, v = EP(tol=1e-10, max_iter=500).fit(problem).cavities
    held_out = averages_of(pool, solved[-1])
    assert_allclose(held_out[0], v, rtol=1e-8)
    assert_allclose(held_out[1], m, rtol=1e-7, atol=1e-8)
    assert_allclose(held_out[2], 0.0, atol=1e-12)


def estimators(kind, **options):
    if kind == "targets":
        kernel = ROUGH + WhiteKernel(0.1)
        return GaussianProcessRegressor(
            kernel, alpha=0.05, normalize_y=True, optimizer=None, **options
        )
    return GaussianProcessClassifier(ROUGH + WhiteKernel(0.2), optimizer=None, tol=1e-9, **options)


def labels_of(kind, f):
    cuts = {"two": [0.0], "three": [-1.0, 1.0]}
    return 3.0 + f if kind == "targets" else np.array(["a", "b", "c"])[np.digitize(f, cuts[kind])]


@pytest.mark.parametrize(
    ("kind", "law"),
    [("two", "bootstrap"), ("two", "subsample"), ("three", "subsample"), ("targets", "bootstrap")],
)
def test_curves_of_estimators(kind, law):
    """With every row an inducing point, an estimator's curve and its answers are the dense ones."""
    X, f = table(40)
    y, new = labels_of(kind, f), table(5, seed=3)[0]
    about = {"resampling": law, "theory": "cavity", "train_sizes": [10, 30], "tol": 1e-9}
    about["max_iter"] = 500
    want = learning_curve(estimators(kind).fit(X, y), X, y, retune=False, **about)
    model = estimators(kind, inducing_points=X).fit(X, y)
    got = learning_curve(model, X, y, **about)
    assert got.source.inputs.pools[0].fitted is not None
    close = {"rtol": 1e-7, "atol": 1e-7}
    for name in [*AVERAGES, "apparent_error", "apparent_log_loss"]:
        if getattr(want, name) is not None:
            assert_allclose(getattr(got, name), getattr(want, name), **close, err_msg=name)
    for name in [f"point_{name}" for name in POINTS]:
        assert_allclose(getattr(got, name), getattr(want, name), **close, err_msg=name)
    for a, b in zip(got.predict(new), want.predict(new), strict=True):
        assert_allclose(a, b, **close)
    assert str(got.suspects(4)) == str(want.suspects(4))
    assert_array_equal(got.y, y)
    if kind != "three":

        def square(p, truth):
            return (p - truth) ** 2

        assert_allclose(got.measure(square), want.measure(square), **close)


@pytest.mark.parametrize("kind", ["two", "targets"])
def test_forecasts(kind):
    """Forecasts go on from the leave-one-out, as without inducing points."""
    X, f = table()
    y = labels_of(kind, f)
    about = {"theory": "cavity", "train_sizes": [10, 40], "tol": 1e-6, "max_iter": 500}
    want = learning_curve(estimators(kind).fit(X, y), X, y, retune=False, **about)
    got = learning_curve(estimators(kind, inducing_points=X).fit(X, y), **about)
    for measure in ("error", "log_loss"):
        # Both stop at a residual of 1e-6.
        assert_allclose(got.forecast(300, measure), want.forecast(300, measure), rtol=1e-4)
    goal = want.test_error[1] * 1.2
    assert abs(got.size_for(error=goal) - want.size_for(error=goal)) <= 1


def test_weighted_populations():
    """Sample weights are shares of the population, as without inducing points."""
    X, y = classes()
    weight = np.random.default_rng(2).integers(1, 4, 60).astype(float)
    about = {"sample_weight": weight, "train_sizes": [5, 15], **TIGHT}
    want = learning_curve(estimators("two").fit(X, y), X, y, **about)
    got = learning_curve(estimators("two", inducing_points=X).fit(X, y), X, y, **about)
    for name in AVERAGES:
        assert_allclose(getattr(got, name), getattr(want, name), rtol=1e-7, err_msg=name)


def test_the_rows_of_the_fit_or_others():
    """Without a table, the rows of the fit are the pool; other rows may be the pool, too."""
    X, y = classes(120)
    model = estimators("two", inducing_points=X[:20]).fit(X[:80], y[:80])
    about = {"train_sizes": [20, 80], "tol": 1e-8, "max_iter": 500}
    own, given = learning_curve(model, **about), learning_curve(model, X[:80], y[:80], **about)
    assert_allclose(own.test_log_loss, given.test_log_loss, rtol=1e-12)
    assert_array_equal(own.y, y[:80])
    other = learning_curve(model, X[40:], y[40:], **about)
    assert other.source.inputs.pools[0].fitted is None
    assert other.source.inputs.n == 80
    assert np.all(other.converged)
    assert abs(other.test_log_loss[0] - own.test_log_loss[0]) < 0.1


def test_leave_one_out_is_the_end():
    """At the size of the table the curve is the estimator's leave-one-out."""
    X, y = classes(200)
    model = estimators("two", inducing_points=X[:30]).fit(X, y)
    curve = learning_curve(model, train_sizes=[200], tol=1e-8)
    p = model.loo_proba_[np.arange(200), np.searchsorted(model.classes_, y)]
    assert_allclose(curve.test_log_loss[0], -np.mean(np.log(p)), rtol=1e-6)
    assert_allclose(curve.forecast(200, "log_loss").value, -np.mean(np.log(p)), rtol=1e-3)


def test_tuning_counts_on_small_tables():
    """A kernel that was tuned on a small table is tuned again with every training set."""
    X, y = classes(80)
    kernel = 1.0 * RBF([1.0, 1.0])
    with warnings.catch_warnings():
        # A table this small may leave a hyperparameter at a bound.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GaussianProcessClassifier(kernel, n_inducing=25).fit(X, y)
    assert model.base_estimator_.responds
    tuned, fixed = (learning_curve(model, retune=r, train_sizes=[20, 80]) for r in (True, False))
    assert tuned.test_log_loss[0] > fixed.test_log_loss[0]
    p = model.loo_proba_[np.arange(80), np.searchsorted(model.classes_, y)]
    assert_allclose(tuned.test_log_loss[1], -np.mean(np.log(p)), rtol=1e-3)


def test_flipped_labels_lead_the_suspects():
    """Labels that were flipped far from the boundary are the strongest suspects."""
    X, f = table(400)
    y = np.where(f > 0.0, 1, 0)
    flipped = np.random.default_rng(3).choice(np.flatnonzero(np.abs(f) > 1.5), 8, replace=False)
    y[flipped] = 1 - y[flipped]
    model = estimators("two", inducing_points=X[:40]).fit(X, y)
    found = learning_curve(model, X, y, train_sizes=[200, 390]).suspects(10)
    assert len({suspect.index for suspect in found} & set(flipped.tolist())) >= 7
    for suspect in found:
        assert suspect.label == y[suspect.index]
        assert suspect.suggestion != suspect.label


def refits(likelihood, X, y, Z, size, count, seed):
    """Return each row's held-out error and log loss over training sets, and its variance."""
    rng, n = np.random.default_rng(seed), len(y)
    prior = InducingPrior.of(KERNEL, X[:Z])
    sums, seen = np.zeros((3, count)), prior.features(Rows(y, np.ones(n), X))
    for k in range(count):
        drawn = np.sort(rng.permutation(n)[:size])
        part = Rows(y[drawn], np.ones(size), X[drawn])
        q = EP().fit(Problem(likelihood, prior, part)).posterior.predict(seen.P, seen.prior)
        out = np.setdiff1d(np.arange(n), drawn)
        m, v = q.mean[out], q.variance[out]
        loss = -likelihood.tilted(y[out], Marginals(m, v)).log_z
        wrong = (m - y[out]) ** 2 if likelihood.quadratic else 1.0 * (m * y[out] < 0.0)
        sums[:, k] = wrong.mean(), loss.mean(), v.mean()
    return sums


@pytest.mark.parametrize(("likelihood", "n"), [(Probit(), 400), (Gaussian(0.25), 300)])
def test_refits_of_the_same_points(likelihood, n):
    """The curve agrees with refits on the same inducing points."""
    X, f = table(n, seed=4)
    y = target_of(likelihood, f)
    sizes, close = np.array([30.0, 100.0, 250.0]), []
    blocks = MemoryBlocks(Rows(y, np.ones(n), X), 128)
    pool = BlockPool(InducingPrior.of(KERNEL, X[:40]), blocks, likelihood, n, 1.0 / n)
    solved = solve_on_blocks(pool, sizes, "subsample", "cavity", tol=1e-4, max_iter=200)
    for size, found in zip(sizes, solved, strict=True):
        truth = refits(likelihood, X, y, 40, int(size), 40, seed=int(size))
        error = np.std(truth, axis=1, ddof=1) / np.sqrt(40)
        R, V, G = (averages_of(pool, found)[k] for k in (1, 2, 0))
        theory = scores_of(likelihood, y, G, R, V)
        gap = np.abs(theory - truth.mean(axis=1))
        close += list((gap < 2.0 * error) | (gap < 0.05 * np.abs(truth.mean(axis=1))))
    # As without inducing points, the theory of single examples is low for few real targets.
    assert np.mean(close) >= 0.85, close


def scores_of(likelihood, y, G, R, V):
    """Return error, log loss and variance by averages over draws of the fields."""
    x, weight = np.polynomial.hermite_e.hermegauss(60)
    h = R + np.sqrt(V) * x[:, None]
    loss = -likelihood.tilted(y, Marginals(h, G)).log_z
    wrong = (h - y) ** 2 if likelihood.quadratic else 1.0 * (h * y < 0.0)
    p = weight / weight.sum()
    return np.array([np.mean(p @ wrong), np.mean(p @ loss), np.mean(G)])


def test_visits_are_few(monkeypatch):
    """A size costs few rounds; features are made once a visit, and kept in memory."""
    made, features = [], InducingPrior._features
    monkeypatch.setattr(
        InducingPrior, "_features", lambda self, X: made.append(len(X)) or features(self, X)
    )
    pool = pool_of(Probit(), 30, 500, n=2000)
    made.clear()
    sizes = 2000 * np.array([0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0])
    solved = solve_on_blocks(pool, sizes, "subsample", "cavity", tol=3e-4, max_iter=100)
    rounds = [found.n_iter for found in solved]
    # An evaluation of the evidence takes about ten rounds and the gradient, of the same size.
    assert np.mean(rounds) < 9.0, rounds
    assert max(rounds) <= 12, rounds
    assert not made, "what the prior makes of the rows is kept from the fit"


@pytest.mark.parametrize("failed", [40.0, 20.0])
def test_no_size_starts_from_one_that_failed(monkeypatch, failed):
    """What is found after a size that was not solved is the same as without that size."""
    solve = block_sizes._solve

    def stuck(pool, now, *about):
        found = solve(pool, now, *about)
        return found._replace(converged=now.equations.size != failed)

    monkeypatch.setattr(block_sizes, "_solve", stuck)
    pool, sizes = pool_of(Probit(), 15, 20), np.array([8.0, 20.0, 40.0])
    about = ("subsample", "cavity")
    got = solve_on_blocks(pool, sizes, *about, tol=3e-4, max_iter=100)[0]
    want = solve_on_blocks(pool, sizes[sizes != failed], *about, tol=3e-4, max_iter=100)[0]
    # The same rounds from the same start: nothing differs but for rounding.
    assert_allclose(averages_of(pool, got), averages_of(pool, want), rtol=1e-12)


def test_what_inducing_points_do_not_have():
    """What needs the covariances of all rows is refused, and says what to use."""
    X, y = classes()
    model = estimators("two", inducing_points=X[:10]).fit(X, y)
    with pytest.raises(ValueError, match="use theory='cavity'"):
        learning_curve(model, X, y, theory="pairs")
    with pytest.raises(ValueError, match="use learning_curve"):
        simulate_learning_curve(model, X, y)
    with pytest.raises(ValueError, match="Give X and y"):
        learning_curve(estimators("two").fit(X, y))
    regressor = GaussianProcessRegressor(ROUGH, inducing_points=X[:10], optimizer=None)
    with pytest.raises(ValueError, match="one target"):
        learning_curve(regressor.fit(X, X), X, X[:, 0])


def batches(X, y, size):
    """Return a table that is read anew in every pass."""
    return BatchRows(lambda: ((X[i : i + size], y[i : i + size]) for i in range(0, len(y), size)))


@pytest.mark.parametrize("kind", ["two", "three", "targets"])
def test_tables_that_are_read_anew(kind):
    """The curve of a table outside memory is that of the same rows in memory."""
    X, f = table(80)
    y, about = labels_of(kind, f), {"train_sizes": [20, 60], "tol": 1e-6}
    model = estimators(kind, inducing_points=X[:15])
    want = learning_curve(model.fit(X, y), X, y, **about)
    rows = batches(X, y, 32)
    model = estimators(kind, inducing_points=X[:15]).fit(rows, None)
    for got in (learning_curve(model, **about), learning_curve(model, rows, **about)):
        for name in AVERAGES:
            if getattr(want, name) is not None:
                # The fits that they start from stop at their own tolerance.
                assert_allclose(getattr(got, name), getattr(want, name), rtol=1e-5, err_msg=name)
        assert str(got.suspects(3)) == str(want.suspects(3))
        assert_array_equal(got.y, y)
        assert_allclose(got.point_log_loss, want.point_log_loss, rtol=1e-3, atol=1e-5)


def test_a_table_with_weights():
    """Rows of a table that count several times are drawn as many times as often."""
    X, y = classes(60)
    weight = np.random.default_rng(5).integers(1, 4, 60).astype(float)
    rows = Weighted(Rows(y, weight, X), 25)
    model = estimators("two", inducing_points=X[:15]).fit(rows, None)
    got = learning_curve(model, rows, train_sizes=[5, 15], tol=1e-8, max_iter=500)
    about = {"train_sizes": [5, 15], "sample_weight": weight, "tol": 1e-8, "max_iter": 500}
    want = learning_curve(
        estimators("two", inducing_points=X[:15]).fit(X, y, weight), X, y, **about
    )
    for name in AVERAGES:
        assert_allclose(getattr(got, name), getattr(want, name), rtol=1e-5, err_msg=name)
    assert_allclose(got.share, weight / weight.sum())


class Weighted(MemoryBlocks):
    """A table in memory that is no array."""

    n_features, feature_names = 2, None

    def with_targets(self, y):
        raise AssertionError("the table has its targets")


def test_curves_can_be_pickled():
    """A curve that was stored answers as before."""
    X, y = classes()
    model = estimators("two", inducing_points=X[:10]).fit(X, y)
    curve = learning_curve(model, X, y, train_sizes=[20, 50])
    again = pickle.loads(pickle.dumps(curve))
    assert_array_equal(again.point_error, curve.point_error)
    assert str(again.suspects(3)) == str(curve.suspects(3))
