"""Rows on a Dask cluster: the same numbers as in memory, whatever happens to the workers."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.dask import DaskBlocks, DaskGaussianProcessClassifier, DaskGaussianProcessRegressor
from cavity.inference import EP, Laplace, Problem
from cavity.kernels import rule
from cavity.likelihoods import Logit
from cavity.priors import InducingPrior
from cavity.rows import MemoryBlocks
from cavity.sites import Rows
from cavity.testing import check_rows

distributed = pytest.importorskip("distributed", reason="the rows are on a Dask cluster")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

KERNEL = rule(3.0 * RBF([1.2, 1.7, 2.5]) + WhiteKernel(0.1))
N = 3000
# Any free port of this machine, as other tests may have a cluster at the same time.
QUIET = {"dashboard_address": "127.0.0.1:0", "memory_limit": 0}


@pytest.fixture(scope="module")
def processes():
    """A client of two worker processes."""
    how = {**QUIET, "host": "127.0.0.1", "death_timeout": 120}
    # A busy machine takes its time to start a worker again. By default the cluster gives it up
    # if it is not there 15 seconds after it was lost, or was lost again at that moment.
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        distributed.LocalCluster(2, threads_per_worker=1, **how) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def here():
    """A client of a worker in this process, which starts at once."""
    with distributed.Client(n_workers=1, threads_per_worker=2, processes=False, **QUIET) as client:
        yield client


def table(n=N):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = np.sign(X[:, 0] + X[:, 1] ** 2 - 0.7 + 0.3 * rng.normal(size=n))
    return X, y, 1.0 + (np.arange(n) % 3 == 0)


def problem(rows, m=20):
    return Problem(Logit(), InducingPrior.of(KERNEL, table()[0][:m]), rows)


def on(client, X, y, weight=None, chunks=400, **options):
    return DaskBlocks(da.from_array(X, chunks=(chunks, 2)), y, weight, client=client, **options)


def in_memory():
    X, y, weight = table()
    return problem(MemoryBlocks(Rows(y, weight, X), 1000))


@pytest.mark.parametrize("method", [EP(), Laplace()], ids=str)
def test_the_same_as_in_memory(processes, method):
    """Evidence, gradient and leave-one-out are those in memory; blocks are of unequal sizes."""
    X, y, weight = table()
    chunks = ((1, 1299, 200, 1500),)
    blocks = on(processes, X, da.from_array(y, chunks=700), weight, *chunks)
    got, want = method.fit(problem(blocks)), method.fit(in_memory())
    # Sums in another order: rounding only.
    assert got.log_evidence == pytest.approx(want.log_evidence, rel=1e-10)
    np.testing.assert_allclose(got.gradient(), want.gradient(), rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(got.cavities.mean, want.cavities.mean, rtol=1e-9, atol=1e-10)
    assert blocks.n_rows == N
    assert blocks.n_features == 3


class Deadly:
    """An engine of which a worker dies in a certain round."""

    def __init__(self, blocks, fatal, delay):
        self.blocks, self.fatal, self.delay, self.rounds = blocks, fatal, delay, 0
        self.collect, self.drop = blocks.collect, blocks.drop

    def reduce(self, *args):
        self.rounds += 1
        if self.rounds == self.fatal:
            pid = min(self.blocks.client.run(os.getpid).values())
            threading.Timer(self.delay, os.kill, (pid, signal.SIGKILL)).start()
        return self.blocks.reduce(*args)


@pytest.mark.parametrize(
    ("fatal", "delay"), [(1, 0.0), (2, 0.0), (3, 0.003), (5, 0.01), (8, 0.03)], ids=str
)
def test_a_killed_worker(processes, fatal, delay):
    """A worker that is killed in the middle of a fit costs rounds, not digits."""
    processes.wait_for_workers(2, timeout=120)
    X, y, weight = table()
    method = EP(tol=1e-10)
    rows = Deadly(on(processes, X, y, weight), fatal, delay)
    got, want = method.fit(problem(rows)), method.fit(in_memory())
    assert rows.rounds >= fatal
    assert got.report.converged
    # The evidence changes with the square of the tolerance: the rest is rounding.
    assert got.log_evidence == pytest.approx(want.log_evidence, rel=1e-8)
    np.testing.assert_allclose(got.gradient(), want.gradient(), rtol=1e-6, atol=1e-6)


def test_all_workers_killed_after_a_fit(processes):
    """Even then the gradient is right, as soon as the workers are back."""
    processes.wait_for_workers(2, timeout=120)
    X, y, weight = table()
    got = EP(tol=1e-10).fit(problem(on(processes, X, y, weight, patience=120)))
    for pid in processes.run(os.getpid).values():
        os.kill(pid, signal.SIGKILL)
    want = EP(tol=1e-10).fit(in_memory()).gradient()
    np.testing.assert_allclose(got.gradient(), want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("end", ["workers", "scheduler"])
def test_nobody_left(end):
    """Without workers, or without a scheduler, there is one clear error after a while."""
    X, y, _ = table(200)
    with (
        distributed.LocalCluster(1, threads_per_worker=1, processes=False, **QUIET) as cluster,
        distributed.Client(cluster, timeout=5) as client,
    ):
        blocks = on(client, X, y, chunks=100, patience=1.0)
        if end == "workers":
            cluster.scale(0)
        else:
            cluster.close()
        begin = time.monotonic()
        with pytest.raises(RuntimeError, match="call fit again"):
            _fit_often(blocks)
        assert time.monotonic() - begin < 60.0


def _fit_often(blocks):
    for _ in range(100):
        EP().fit(problem(blocks))


def test_contract_of_rows(here):
    """Dask passes the contract of places for rows."""
    check_rows(lambda rows, size: on(here, rows.X, rows.y, rows.weight, size))


def test_the_client(here, monkeypatch):
    """By default it is the one made last; without any, the error has the code that makes one."""
    X, y, _ = table(50)
    assert on(None, X, y).client is here
    monkeypatch.setattr(distributed, "get_client", _no_client)
    with pytest.raises(ValueError, match="client = Client"):
        on(None, X, y)


def _no_client():
    raise ValueError("No global client found")


def test_unknown_sizes_and_empty_partitions(here):
    """Rows that remain of a filter are counted where they are; chunks without any are skipped."""
    X, y, _ = table()
    keep = X[:, 0] > 0.0
    keep[400:800] = False
    lazy_X, lazy_y, lazy_keep = (da.from_array(a, chunks=400) for a in (X, y, keep))
    lazy_X = lazy_X.rechunk((400, 3))[lazy_keep]
    want = EP().fit(problem(Rows(y[keep], np.ones(keep.sum()), X[keep])))
    for targets in (lazy_y[lazy_keep], y[keep], da.from_array(y[keep], chunks=500)):
        blocks = DaskBlocks(lazy_X, targets, client=here)
        assert blocks.n_rows == keep.sum()
        got = EP().fit(problem(blocks))
        assert got.log_evidence == pytest.approx(want.log_evidence, rel=1e-10)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (lambda X: np.where(X[1234, 1] == X, np.nan, X), None, "row 1234 of the table.*row 34 of"),
        (lambda X: X.astype(str).astype(object) + "a", None, "not numbers"),
        (lambda X: X[:, 0], None, "two dimensions"),
        (lambda X: X, np.where(np.arange(N) == 7, None, "a"), "y has an entry that is missing"),
        (lambda X: X, np.ones(7), "X has 3000 rows, but"),
        (lambda X: X[:0], None, "no rows"),
    ],
)
def test_tables_that_cannot_be_used(here, X, y, message):
    """What is wrong is said, and where."""
    lazy = da.from_array(X(table()[0]), chunks=400)
    with pytest.raises(ValueError, match=message):
        DaskBlocks(lazy, y, client=here)


def test_filtered_columns_that_do_not_match(here):
    """Chunks of unknown sizes that do not belong together are found on the workers."""
    X, y, _ = table()
    lazy_X, lazy_y = da.from_array(X, chunks=(400, 3)), da.from_array(y, chunks=400)
    with pytest.raises(ValueError, match="but y has 4"):
        DaskBlocks(lazy_X[lazy_X[:, 0] > 0.0], lazy_y[lazy_y > -9.0], client=here)
    with pytest.raises(ValueError, match="from_array"):
        DaskBlocks(X, y, client=here)


def test_data_frames(here):
    """Columns of all numeric types are inputs; targets are a series, or named."""
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y, weight = table()
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["d"] = pd.array(np.arange(N) % 5, dtype="Int64")
    frame["e"] = X[:, 1] > 0.0
    frame["weight"], frame["kind"] = weight, np.where(y > 0, "yes", "no")
    lazy = dd.from_pandas(frame, npartitions=4)
    blocks = DaskBlocks(lazy, "kind", "weight", client=here)
    assert blocks.feature_names == list("abcde")
    found = list(blocks.collect(_rows, None, ""))
    np.testing.assert_array_equal(
        np.concatenate([rows[0] for rows in found]), frame[list("abcde")].astype(float)
    )
    assert list(np.concatenate([rows[1] for rows in found])) == list(frame["kind"])
    np.testing.assert_array_equal(np.concatenate([rows[2] for rows in found]), weight)
    again = DaskBlocks(lazy.drop(columns="kind"), client=here).with_targets("e")
    assert again.feature_names == ["a", "b", "c", "d", "weight"]
    with pytest.raises(ValueError, match=r"\['kind'\] hold no numbers"):
        DaskBlocks(lazy, "e", client=here)
    with pytest.raises(ValueError, match=r"the columns \['colour'\]"):
        DaskBlocks(lazy, "colour", client=here)


def _rows(rows, kept, shared):
    return rows.X, rows.y, rows.weight


def test_states_are_dropped(here):
    """What blocks have kept for a fit is gone with it, and the rows with the engine."""
    X, y, _ = table(500)
    blocks = on(here, X, y, chunks=100)
    own = {row.key for row in blocks._rows}
    fit = EP().fit(problem(blocks))
    assert _eventually(lambda: sum(here.run(_kept).values()) == 5)
    # What was sent for a round is gone after it: only the rows are left.
    assert _eventually(lambda: here.run(_keys).popitem()[1] == own)
    del fit
    assert _eventually(lambda: not any(here.run(_kept).values()))
    EP().fit(problem(blocks))
    del blocks
    assert _eventually(lambda: not here.run(_keys).popitem()[1])
    assert not any(here.run(_kept).values())


def _eventually(true):
    """Wait for what Dask does in the background."""
    for _ in range(200):
        if true():
            return True
        # What earlier tests have left may be in cycles.
        gc.collect()
        time.sleep(0.05)
    return False


def _kept(dask_worker):
    engines = vars(dask_worker).get("cavity_states", {})
    return sum(len(blocks) for states in engines.values() for blocks in states.values())


def _keys(dask_worker):
    return {str(key) for key in dask_worker.data}


def test_long_messages_go_in_pieces(here, monkeypatch):
    """Dask's warning about large graphs is not for the posterior of many inducing points."""
    monkeypatch.setattr("cavity.rows.dask._MESSAGE", 1000)
    X, y, _ = table(300)
    got = EP().fit(problem(on(here, X, y)))
    want = EP().fit(problem(Rows(y, np.ones(300), X)))
    assert got.log_evidence == pytest.approx(want.log_evidence, rel=1e-10)


def test_an_error_in_a_visit_is_not_repeated(here):
    """What a visit raises arrives as it is, at once."""
    blocks = on(here, *table(100)[:2])
    with pytest.raises(ZeroDivisionError):
        blocks.reduce(_fail, None, "a")


def _fail(rows, kept, shared):
    raise ZeroDivisionError


def test_blocks_move_from_worker_to_worker():
    """Blocks of a lost worker, and those above a fair share, are given to those with room."""
    blocks = DaskBlocks.__new__(DaskBlocks)
    blocks._sizes, blocks._homes = [10] * 8, ["a"] * 6 + ["b"] * 2
    blocks._settle({"a": 1, "b": 1}, False)
    assert blocks._homes.count("a") == 6
    blocks._settle({"a": 1, "b": 1}, True)
    assert blocks._homes.count("a") == 4
    blocks._settle({"b": 1, "c": 3}, False)
    assert blocks._homes.count("c") == 4
    blocks._settle({"b": 1, "c": 3}, True)
    assert blocks._homes.count("c") == 6


def test_classifier(processes):
    """Classes that are strings, one against the rest, as the ordinary estimator finds them."""
    processes.wait_for_workers(2, timeout=120)
    X, _, _ = table(1500)
    y = np.array(["sand", "silt", "clay"])[(X[:, 0] > 0.0) + (X[:, 1] > 0.5).astype(int)]
    options = {"n_inducing": 25, "optimizer": None, "random_state": 0}
    ordinary = GaussianProcessClassifier(2.0 * RBF(1.0), **options).fit(X, y)
    lazy = da.from_array(X, chunks=(400, 3))
    estimator = DaskGaussianProcessClassifier(2.0 * RBF(1.0), **options, client=processes)
    got = estimator.fit(lazy, da.from_array(y, chunks=400))
    assert got.client_ is processes
    assert list(got.classes_) == ["clay", "sand", "silt"]
    assert got.log_marginal_likelihood_value_ == pytest.approx(
        ordinary.log_marginal_likelihood_value_, rel=1e-10
    )
    want = ordinary.predict_proba(X)
    proba = got.predict_proba(lazy)
    assert proba.chunks == (lazy.chunks[0], (3,))
    # The sites agree to the tolerance of the inference.
    np.testing.assert_allclose(proba.compute(), want, rtol=1e-6)
    np.testing.assert_allclose(got.predict_log_proba(lazy), np.log(want), rtol=1e-5, atol=1e-8)
    predicted = got.predict(lazy)
    assert predicted.dtype == got.classes_.dtype
    np.testing.assert_array_equal(predicted.compute(), ordinary.predict(X))
    assert got.score(lazy, y) == ordinary.score(X, y)
    np.testing.assert_allclose(got.predict_proba(X[:5]), want[:5], rtol=1e-6)
    with pytest.raises(ValueError, match="3 columns, got 2"):
        got.predict(lazy[:, :2])


def test_regressor(here):
    """Mean and standard deviation are those of the ordinary estimator; the kernel is tuned."""
    X, _, _ = table(1000)
    y = np.sin(2.0 * X[:, 0]) + X[:, 1]
    kernel = 1.0 * RBF([1.0, 1.0, 1.0])
    lazy, options = da.from_array(X, chunks=(300, 3)), {"alpha": 0.05, "n_inducing": 40}
    ordinary = GaussianProcessRegressor(kernel, **options, random_state=0).fit(X, y)
    got = DaskGaussianProcessRegressor(kernel, **options, random_state=0).fit(lazy, y)
    # Tuning ends at the same place, to its tolerance.
    mean, std = got.predict(lazy, return_std=True)
    want = ordinary.predict(X, return_std=True)
    np.testing.assert_allclose(mean, want[0], atol=1e-2)
    np.testing.assert_allclose(std, want[1], atol=1e-2)
    np.testing.assert_allclose(got.predict(lazy).compute(), mean, rtol=1e-9, atol=1e-9)
    assert got.score(lazy, y) == pytest.approx(ordinary.score(X, y), abs=1e-2)


class InMemory(MemoryBlocks):
    n_features = 3


def test_several_targets_and_weights(here):
    """Targets share the rows; weights count rows, in whichever kind of array they come."""
    X, _, weight = table(400)
    Y = np.stack([np.sin(X[:, 0]), 3.0 + X[:, 1]], axis=1)
    options = {"alpha": 0.1, "n_inducing": 20, "optimizer": None, "random_state": 0}
    ordinary = GaussianProcessRegressor(1.0 * RBF(1.0), **options, normalize_y=True)
    want = ordinary.fit(InMemory(Rows(Y, weight, X), 170)).predict(X, return_std=True)
    lazy = da.from_array(X, chunks=(150, 2))
    got = DaskGaussianProcessRegressor(1.0 * RBF(1.0), **options, normalize_y=True)
    for y, w in ((Y, weight), (da.from_array(Y, chunks=(90, 1)), da.from_array(weight))):
        got.fit(lazy, y, w)
        assert got.predict(lazy).chunks == (lazy.chunks[0], (2,))
        for a, b in zip(got.predict(lazy, return_std=True), want, strict=True):
            np.testing.assert_allclose(a.compute(), b, rtol=1e-8, atol=1e-9)


def test_estimators_share_the_rows(here):
    """Rows that are on the cluster can be fitted as often as one likes, and left out one by one."""
    X, y, _ = table(400)
    options = {"n_inducing": 20, "optimizer": None, "random_state": 0}
    blocks = on(here, X, y, chunks=150)
    for inference in ("ep", "laplace"):
        model = DaskGaussianProcessClassifier(2.0 * RBF(1.0), inference=inference, **options)
        ordinary = GaussianProcessClassifier(2.0 * RBF(1.0), inference=inference, **options)
        got, want = model.fit(blocks), ordinary.fit(X, y)
        np.testing.assert_allclose(got.loo_proba_, want.loo_proba_, rtol=1e-7)
    turned, before = blocks.with_targets(-y), model.predict(X)
    np.testing.assert_array_equal(model.fit(turned).predict(X), -before)
    np.testing.assert_array_equal(list(turned.collect(_rows, None, ""))[1][1], -y[150:300])


def test_what_a_prior_makes_of_the_rows_is_kept(here):
    """Between rounds the features stay with the rows, as long as there is memory for them."""
    X, y, _ = table(400)
    prior = InducingPrior.of(KERNEL, X[:10])
    for kept, expected in ((1e9, 1), (0.0, 2)):
        blocks = on(here, X, y, chunks=200, kept=kept)
        first, second = (list(blocks.collect(_features_at, prior, "")) for _ in range(2))
        assert len({*first, *second}) == 2 * expected


def _features_at(rows, kept, prior):
    """Mark the features when they are made, and return the mark."""
    mark = rows.memo.of(prior.name, lambda: (np.array(time.perf_counter_ns()), np.empty(9)))
    return int(mark[0])


def test_a_copy_that_is_local(here):
    """What is pickled, or made local, predicts without Dask; clones have the same client."""
    X, y, _ = table(300)
    lazy = da.from_array(X, chunks=(100, 3))
    got = DaskGaussianProcessClassifier(
        2.0 * RBF(1.0), optimizer=None, n_inducing=15, client=here
    ).fit(lazy, y)
    want = got.predict_proba(X)
    assert type(got.to_local()) is GaussianProcessClassifier
    for copied in (got.to_local(), pickle.loads(pickle.dumps(got.to_local()))):
        np.testing.assert_allclose(copied.predict_proba(X), want, rtol=1e-12)
    copied = pickle.loads(pickle.dumps(got))
    assert copied.client is None
    np.testing.assert_allclose(copied.predict_proba(lazy), want, rtol=1e-12)
    with pytest.raises(RuntimeError, match="stayed on the Dask cluster"):
        _ = copied.fixed_kernel_loo_proba_
    assert clone(got).client is here
    assert not hasattr(clone(got), "local_")
    with pytest.raises(AttributeError, match="has no attribute 'classes_'"):
        _ = clone(got).classes_


def test_frames_in_arrays_out(here):
    """Columns of a data frame have to be those of the fit; predictions are arrays."""
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y, _ = table(300)
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["y"] = y > 0.0
    lazy = dd.from_pandas(frame, npartitions=3)
    got = DaskGaussianProcessClassifier(2.0 * RBF(1.0), optimizer=None, n_inducing=15)
    got.fit(lazy, "y")
    assert list(got.feature_names_in_) == list("abc")
    few = lazy[lazy["a"] > 1.0][list("abc")]
    want = got.to_local().predict(frame[frame["a"] > 1.0][list("abc")])
    np.testing.assert_array_equal(got.predict(few).compute(), want)
    with pytest.raises(ValueError, match=r"Expected the columns \['a', 'b', 'c'\]"):
        got.predict(lazy[["b", "a", "c"]])


@pytest.mark.parametrize(
    ("lazy", "ordinary"),
    [
        (DaskGaussianProcessClassifier, GaussianProcessClassifier),
        (DaskGaussianProcessRegressor, GaussianProcessRegressor),
    ],
)
def test_parameters(lazy, ordinary):
    """The parameters are those of the ordinary estimator, and the client."""
    assert lazy().get_params() == ordinary().get_params() | {"client": None}


def test_dask_is_imported_when_it_is_needed():
    """Neither the package nor its estimators for Dask import it."""
    code = "import sys, cavity, cavity.dask; print({'dask', 'distributed'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert found.stdout == "set()\n"


@pytest.mark.parametrize("n_classes", [3, 5])
def test_all_classes_at_once(here, n_classes):
    """Joint classes on a cluster are those of an array; leave-one-out is in the order of rows."""
    X, _, _ = table(600)
    rng = np.random.default_rng(3)
    F = X @ rng.normal(size=(3, n_classes)) + rng.gumbel(size=(600, n_classes))
    y = np.array(list("abcde"))[np.argmax(F, axis=1)]
    options = {"multi_class": "multinomial", "inducing_points": X[:20], "optimizer": None}
    options |= {"kernel": 4.0 * RBF(2.0), "tol": 1e-9}
    one = GaussianProcessClassifier(**options).fit(X, y)
    chunks = da.from_array(X, chunks=(170, 3))
    many = DaskGaussianProcessClassifier(client=here, **options).fit(chunks, y)
    assert many.log_marginal_likelihood_value_ == pytest.approx(
        one.log_marginal_likelihood_value_, rel=1e-9
    )
    found = many.predict_proba(chunks).compute()
    np.testing.assert_allclose(found, one.predict_proba(X), rtol=1e-6)
    np.testing.assert_allclose(many.loo_proba_, one.loo_proba_, rtol=1e-6)
