"""Tables in blocks that cause trouble: refused in one sentence, or fitted, and never half."""

import copy
import pickle
import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    cross_val_tuned,
    feature_effect,
    feature_importance,
    learning_curve,
    simulate_learning_curve,
)
from cavity.arrays import one_thread, side_by_side, threads
from cavity.inference import EP, Problem
from cavity.kernels import rule
from cavity.likelihoods import Probit
from cavity.priors import InducingPrior
from cavity.rows import BatchRows, MemoryBlocks
from cavity.sites import Rows

KERNEL = 4.0 * RBF([1.0, 2.0])
N = 150


def table(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.4 * rng.normal(size=n)


X, TARGET = table()
LABELS = np.where(TARGET > 0.0, "yes", "no")
BOTH = np.column_stack([TARGET, X[:, 0]])


def blocks(y, X=X, size=40, weight=None):
    return MemoryBlocks(Rows(y, np.ones(len(X)) if weight is None else weight, X), size)


def classifier(**options):
    options = {"kernel": KERNEL, "optimizer": None, "n_inducing": 12, "random_state": 0} | options
    return GaussianProcessClassifier(**options)


def regressor(**options):
    options = {"kernel": KERNEL, "optimizer": None, "n_inducing": 12, "random_state": 0} | options
    return GaussianProcessRegressor(alpha=0.2, **options)


def test_blocks_in_memory_are_a_table():
    """`MemoryBlocks` goes where a table goes, its targets with it or apart from it."""
    truth = classifier().fit(X, LABELS)
    table = blocks(LABELS)
    assert (table.n_rows, table.n_features, table.feature_names) == (N, 2, None)
    for model in (classifier().fit(table), classifier().fit(blocks(None), LABELS)):
        assert_allclose(model.predict_proba(table), truth.predict_proba(X), atol=1e-12)
        assert_allclose(model.loo_proba_, truth.loo_proba_, atol=1e-12)
        assert model.score(blocks(None), LABELS) == truth.score(X, LABELS)
    with pytest.raises(ValueError, match="Expected 150 targets; got shape"):
        table.with_targets(LABELS[:-1])


MIXED = np.where(TARGET > 0.0, "yes", None)


@pytest.mark.parametrize(
    ("model", "y", "weight", "message"),
    [
        (classifier(), TARGET, None, "Unknown label type: continuous"),
        (classifier(), BOTH > 0.0, None, "of one column; got shape"),
        (classifier(), LABELS[:, None], None, "of one column; got shape"),
        (classifier(), np.ones(N), None, "2 or more distinct classes"),
        (classifier(), MIXED, None, "has no target"),
        (classifier(), LABELS, np.where(np.arange(N) == 77, np.inf, 1.0), "Row 77 .* a weight"),
        (classifier(), LABELS, np.where(np.arange(N) == 78, np.nan, 1.0), "Row 78 .* a weight"),
        (classifier(), LABELS, np.where(np.arange(N) == 79, -1.0, 1.0), "Row 79 .* a weight"),
        (regressor(), LABELS, None, "must be numbers"),
        (regressor(), BOTH[:, None], None, "a column for each target; got shape"),
        (regressor(n_targets=1), BOTH, None, "number of targets"),
        (regressor(), np.where(np.arange(N) == 80, np.inf, TARGET), None, "Row 80 .* a target"),
    ],
)
def test_targets_and_weights_are_checked(model, y, weight, message):
    """What a table says about its rows has to make sense; the estimator stays as it was."""
    before = set(vars(model))
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(blocks(y, weight=weight))
    assert str(caught.value).count("\n") == 0
    assert set(vars(model)) == before


def test_what_tables_cannot_have():
    """Joint covariances, draws and latent values of a table are asked for by arrays of rows."""
    model, table = regressor().fit(blocks(TARGET)), blocks(None)
    for ask in (lambda: model.predict(table, return_cov=True), lambda: model.sample_y(table)):
        with pytest.raises(ValueError, match="pass some rows as an array"):
            ask()
    with pytest.raises(ValueError, match="needs an array, not a table"):
        classifier().fit(blocks(LABELS)).latent_mean_and_variance(table)
    mean, std = model.predict(table, return_std=True)
    assert_allclose((mean, std), model.predict(X, return_std=True), rtol=1e-12)
    assert model.predict(X[:3], return_cov=True)[1].shape == (3, 3)


class Interrupted(MemoryBlocks):
    """A table whose user has had enough at some visit."""

    visits, last = 0, 3

    def reduce(self, *args, **kwargs):
        self.visits += 1
        if self.visits > self.last:
            raise KeyboardInterrupt
        return super().reduce(*args, **kwargs)


@pytest.mark.parametrize("last", [0, 1, 4])
@pytest.mark.parametrize("task", ["classes", "targets"])
def test_an_interrupted_fit_changes_nothing(task, last):
    """After a fit to another table that did not end, the model is the one from before."""
    model, y = (classifier(), LABELS) if task == "classes" else (regressor(), TARGET)
    model.set_params(kernel=4.0 * RBF(1.0), optimizer="fmin_l_bfgs_b")
    model.fit(blocks(y))
    truth, state = model.predict(X), dict(vars(model))
    wide = Interrupted(Rows(y[::-1], np.ones(N), np.column_stack([X, X[:, 0]])), 40)
    wide.feature_names, wide.last = ["a", "b", "c"], last
    with pytest.raises(KeyboardInterrupt):
        model.fit(wide)
    assert vars(model).keys() == state.keys()
    assert all(vars(model)[name] is value for name, value in state.items())
    assert_array_equal(model.predict(X), truth)
    fresh = clone(model)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(wide)
    assert not hasattr(fresh, "n_features_in_")


@pytest.mark.parametrize("inducing", [None, 12])
def test_a_failed_fit_changes_nothing(inducing):
    """A fit that an error ends, without points as well, leaves the model of before."""
    model = regressor(n_inducing=inducing, kernel=4.0 * RBF(1.0)).fit(X, TARGET)
    truth = model.predict(X)
    with pytest.raises(ValueError, match="alpha"):
        model.set_params(alpha=np.ones(7)).fit(X[:, :1], TARGET)
    assert_array_equal(model.set_params(alpha=0.2).predict(X), truth)


def test_a_class_that_the_sample_has_not_seen():
    """Three rows of one class among thousands: their rate is learned all the same."""
    n = 2500
    big, f = table(n)
    y = (f > 0.0).astype(int)
    y[[700, 1500, 2400]] = 2
    kernel = ConstantKernel(1.0, "fixed") * RBF(1.0, (1e-3, 1e3)) + ConstantKernel(4.0, "fixed")
    model = classifier(kernel=kernel, n_inducing=10).fit(big, y)
    tuned = clone(model).set_params(optimizer="fmin_l_bfgs_b").fit(big, y == 2)
    assert_array_equal(model.classes_, [0, 1, 2])
    for rate in (model.predict_proba(big)[:, 2].mean(), tuned.predict_proba(big)[:, 1].mean()):
        assert 0.3 * 3 / n < rate < 3 * 3 / n


def test_units_do_not_matter_to_auto():
    """A chosen kernel predicts the same in any units of inputs and targets."""
    model = regressor(kernel="auto", optimizer="fmin_l_bfgs_b")
    truth = clone(model).fit(X, TARGET).predict(X, return_std=True)
    for scale in (1e-8, 1e8):
        found = model.fit(X * scale, TARGET / scale).predict(X * scale, return_std=True)
        # The tuning stops where a step gains too little, which rounding moves.
        assert_allclose(np.array(found) * scale, truth, rtol=1e-4, atol=1e-4)


def test_constants():
    """A constant column, a constant target, and a table of one row many times are fitted."""
    tuned = {"kernel": "auto", "optimizer": "fmin_l_bfgs_b"}
    plain = classifier(**tuned).fit(X, LABELS)
    more = classifier(**tuned).fit(np.column_stack([X, np.full(N, 7.0)]), LABELS)
    losses = [log_loss(LABELS, model.loo_proba_) for model in (plain, more)]
    assert abs(losses[1] - losses[0]) < 0.05
    same = classifier(**tuned).fit(np.ones((N, 2)), LABELS)
    assert_allclose(same.predict_proba(np.ones((1, 2)))[0, 1], np.mean(LABELS == "yes"), atol=0.02)
    flat = regressor(**tuned).fit(X, np.full(N, 3.0))
    assert_allclose(flat.predict(X), 3.0, atol=1e-6)


def test_warm_starts_on_other_tables():
    """A search that begins where the last one ended does so on any table of the same kernel."""
    model = classifier(optimizer="fmin_l_bfgs_b", warm_start=True).fit(X, LABELS)
    first = model.log_marginal_likelihood_value_
    model.fit(blocks(LABELS))
    # Other points are drawn under another kernel.
    assert model.log_marginal_likelihood_value_ > first - 3.0
    model.fit(*table(200, seed=1)[:1], np.digitize(table(200, seed=1)[1], [-1.0, 1.0]))
    assert len(model.kernel_.kernels) == 3
    model.set_params(kernel=1.0 * RBF(1.0)).fit(X[:, :1], LABELS)
    assert model.n_features_in_ == 1


def test_an_optimizer_of_ones_own():
    """A user's optimizer tunes the kernel of the first rung; the ladder goes on from there."""
    calls = []

    def stay(objective, theta, bounds):
        calls.append(objective(theta)[0])
        return theta, calls[-1]

    model = classifier(optimizer=stay).fit(X, LABELS)
    assert len(calls) == 1
    fixed = classifier().fit(X, LABELS)
    assert model.log_marginal_likelihood_value_ > fixed.log_marginal_likelihood_value_ - 3.0


def test_copies():
    """Pickles and deep copies answer as the model, also when the model is gone."""
    for model in (classifier().fit(blocks(LABELS)), regressor().fit(X, TARGET)):
        name = "loo_proba_" if hasattr(model, "classes_") else "loo_std_"
        truth = getattr(model, name)
        copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), copy.copy(model)]
        assert_array_equal(getattr(copies[2], name), truth)
        del copies[2]
        assert_array_equal(getattr(model, name), truth)
        del model
        for other in copies:
            assert_array_equal(getattr(other, name), truth)


CASES = [(classifier(), LABELS), (classifier(), np.digitize(TARGET, [-1, 1])), (regressor(), BOTH)]


@pytest.mark.parametrize(("model", "y"), CASES, ids=["two classes", "three classes", "two targets"])
def test_everything_else_works_or_says_why_not(model, y):
    """Importance, effects, cross-validation and curves of inducing fits: answers, or reasons."""
    model = clone(model).fit(X, y)
    assert {row.feature for row in feature_importance(model, X, random_state=0)} == {"x0", "x1"}
    assert np.isfinite(feature_effect(model, X, 0).mean).all()
    if y.ndim == 2:
        with pytest.raises(ValueError, match="Cross-validation needs one target"):
            cross_val_tuned(model, X, y, cv=3)
        with pytest.raises(ValueError, match="Learning curves need one target"):
            learning_curve(model)
        return
    assert len(cross_val_tuned(model, X, y, cv=3)) == N
    curve = learning_curve(model, train_sizes=[30, 100], theory="cavity")
    assert np.isfinite(curve.test_log_loss).all()
    with pytest.raises(ValueError, match="leave n_inducing at None"):
        simulate_learning_curve(model, X, y)


def fitted_in_blocks(table):
    """Return evidence and predictions of a fit at a fixed kernel, with 30 points."""
    prior = InducingPrior.of(rule(KERNEL), table.points)
    fit = EP(tol=1e-9).fit(Problem(Probit(), prior, table))
    return fit.log_evidence, *fit.posterior.at(X)


def engines():
    big, f = table(1200)
    signs = np.where(f > 0.0, 1.0, -1.0)
    cuts = [(big[k : k + 130], signs[k : k + 130]) for k in range(0, 1200, 130)]
    found = [blocks(signs, big, 100), BatchRows(lambda: iter(cuts), batch_rows=100)]
    for engine in found:
        engine.points = big[:30]
    return found


@pytest.mark.parametrize("which", [0, 1], ids=["memory", "batches"])
def test_number_of_threads(which):
    """Blocks side by side give the numbers of blocks one after the other, every time the same."""
    found = []
    for count in (1, 2, 2):
        with threadpool_limits(count, "blas"):
            found.append(np.hstack(fitted_in_blocks(engines()[which])))
    # Products of m × m matrices may be shared among threads, and are then rounded differently.
    assert_allclose(found[1], found[0], rtol=1e-10, atol=1e-12)
    assert_array_equal(found[2], found[1])


def test_fits_at_the_same_time():
    """Two fits in two threads of Python give what they give alone, and BLAS its threads back."""
    alone, found = [fitted_in_blocks(engine) for engine in engines()], {}

    def fit(k, engine):
        found[k] = fitted_in_blocks(engine)

    with threadpool_limits(2, "blas"):
        before = threads._threads()
        both = [threading.Thread(target=fit, args=pair) for pair in enumerate(engines())]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join(60)
        assert threads._threads() == before
    for k, truth in enumerate(alone):
        # BLAS may have had another number of threads meanwhile.
        assert_allclose(np.hstack(found[k]), np.hstack(truth), rtol=1e-9, atol=1e-12)


def test_contexts_that_overlap():
    """BLAS gets its threads back from the last context of one thread, whichever that is."""
    with threadpool_limits(2, "blas"):
        before = threads._threads()
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert threads._threads() == 1
        second.__exit__(None, None, None)
        assert threads._threads() == before


@pytest.mark.parametrize("count", [1, 2])
def test_a_visit_that_fails(count, monkeypatch):
    """An error in one block arrives, nothing hangs, and what was kept before is kept."""
    monkeypatch.setattr(threads, "_threads", lambda: count)
    seen = []

    def number(rows, kept, _):
        if 7.0 in rows.X[:, 0]:
            raise ArithmeticError("row seven")
        seen.append(rows.place.start)
        return (rows.X[:, 0] * 2.0,), 1

    for wrong in (6, 8):
        some = np.column_stack([np.arange(40.0), np.zeros(40)])
        good = blocks(np.ones(40), np.where(some == 7.0, 7.5, some), 4)
        good.reduce(number, None, "kept")
        bad = blocks(np.ones(40), some, wrong)
        with pytest.raises(ArithmeticError, match="row seven"):
            bad.reduce(number, None, "kept")
        with pytest.raises(ArithmeticError, match="row seven"):
            list(side_by_side(number, ((Rows(0, 0, some[k : k + 1]), 0, 0) for k in range(40))))

        def fail(rows, kept, _):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            good.reduce(fail, None, "kept")
        kept = np.concatenate([k[0] for k in good.collect(lambda r, k, s: k, None, "kept")])
        assert_array_equal(kept, np.where(some == 7.0, 7.5, some)[:, 0] * 2.0)
    assert threading.active_count() < 10


def test_noise_alone():
    """On coin flips a chosen kernel's leave-one-out loss is that of a coin, and of new rows."""
    rng = np.random.default_rng(4)
    coins, flips = rng.normal(size=(1000, 3)), rng.integers(2, size=1000)
    model = classifier(kernel="auto", optimizer="fmin_l_bfgs_b", n_inducing=30).fit(coins, flips)
    loss = log_loss(flips, model.loo_proba_)
    new, y = rng.normal(size=(1000, 3)), rng.integers(2, size=1000)
    # A constant loses 0.693; two standard errors of either loss are below 0.01.
    assert 0.685 < loss < 0.703
    assert abs(log_loss(y, model.predict_proba(new)) - loss) < 0.02
    white = regressor(kernel=1.0 * RBF([1.0, 1.0, 1.0]) + WhiteKernel(1.0), n_inducing=30)
    white.set_params(optimizer="fmin_l_bfgs_b", hyperprior="hierarchical").fit(coins, new[:, 0])
    assert np.mean((white.loo_mean_ - new[:, 0]) ** 2) < 1.02 * np.var(new[:, 0])
