"""Rows wherever they live: files, batches and memory maps give the numbers of memory."""

import errno
import pickle
import subprocess
import sys
import tempfile
import tracemalloc
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from cavity.inference import EP, Problem
from cavity.kernels import rule
from cavity.likelihoods import Probit
from cavity.priors import InducingPrior
from cavity.rows import BatchRows, MemoryBlocks, ParquetRows
from cavity.sites import Rows

N = 230
KERNEL = rule(2.0 * RBF([1.0, 1.5, 2.0]) + WhiteKernel(0.1))


@pytest.fixture
def pa():
    """Return pyarrow, with what is needed to write files."""
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("pyarrow.dataset")
    return pyarrow


def rows_of(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=n) > 0.0, 1.0, -1.0)
    return Rows(y, 1.0 + (np.arange(n) % 3 == 0), X)


def table_of(pa, rows):
    columns = {name: rows.X[:, j] for j, name in enumerate("abc")}
    return pa.table(columns | {"label": rows.y, "times": rows.weight})


def write(pa, folder, rows, cuts=(), group=None):
    """Write the rows to one file, or to several, cut where it is said."""
    table, ends = table_of(pa, rows), [0, *cuts, len(rows.y)]
    for k, (a, b) in enumerate(pairwise(ends)):
        file = folder / f"part-{k}.parquet"
        pa.parquet.write_table(table.slice(a, b - a), file, row_group_size=group)
    return folder


def batches_of(rows, sizes):
    """Return a function that makes new iterators of batches of these sizes, over and over."""

    def make():
        begin, k = 0, 0
        while begin < len(rows.y):
            end = begin + sizes[k % len(sizes)]
            yield rows.X[begin:end], rows.y[begin:end], rows.weight[begin:end]
            begin, k = end, k + 1

    return make


def fitted(rows, engine):
    return EP(tol=1e-9).fit(Problem(Probit(), InducingPrior.of(KERNEL, rows.X[:20]), engine))


def assert_same(rows, engine):
    """Evidence, gradient and cavities are those of the rows in memory."""
    got, want = fitted(rows, engine), fitted(rows, rows)
    # Sums over other blocks: 1e-10 is what blocks may change.
    assert got.log_evidence == pytest.approx(want.log_evidence, rel=1e-10)
    np.testing.assert_allclose(got.gradient(), want.gradient(), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(got.cavities.mean, want.cavities.mean, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("size", [1, 37, 64, 1000])
@pytest.mark.parametrize(("cuts", "group"), [((), None), ((), 50), ((10, 11, 150), 40)])
def test_parquet_is_like_memory(pa, tmp_path, size, cuts, group):
    """One file or many, whatever their row groups and the blocks, give memory's numbers."""
    rows = rows_of()
    if size == 1:
        rows = Rows(rows.y[:30], rows.weight[:30], rows.X[:30])
        cuts = [cut for cut in cuts if cut < 30]
    path = write(pa, tmp_path, rows, cuts, group)
    assert_same(rows, ParquetRows(path, "label", weight="times", batch_rows=size))


@pytest.mark.parametrize("kept", [0, 1e9])
@pytest.mark.parametrize("size", [37, 64, 1000])
@pytest.mark.parametrize("sizes", [(1000,), (64,), (1, 0, 100, 7)], ids=str)
def test_batches_are_like_memory(sizes, size, kept):
    """Batches of any sizes, empty ones among them, give memory's numbers."""
    rows = rows_of()
    assert_same(rows, BatchRows(batches_of(rows, sizes), batch_rows=size, kept=kept))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_memory_maps_are_like_memory(tmp_path, dtype):
    """Mapped inputs of any type of number are converted a block at a time."""
    rows = rows_of()
    X = (4.0 * rows.X).astype(dtype)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    rows = rows._replace(X=X.astype(np.float64))
    assert_same(rows, MemoryBlocks(rows._replace(X=mapped), 60))


@pytest.mark.parametrize("how", ["file", "list", "glob", "folder", "dataset", "arrow", "filtered"])
def test_what_a_table_can_be(pa, tmp_path, how):
    """A table is a file, some of them, a pattern, a folder, or a dataset of pyarrow."""
    rows = rows_of()
    write(pa, tmp_path, rows, () if how == "file" else (100,))
    (tmp_path / "notes.txt").write_text("not a table")
    path = {
        "file": str(tmp_path / "part-0.parquet"),
        "list": [tmp_path / "part-0.parquet", str(tmp_path / "part-1.parquet")],
        "glob": str(tmp_path / "part-*.parquet"),
    }.get(how, tmp_path)
    if how in ("dataset", "filtered"):
        path = pa.dataset.dataset(sorted(tmp_path.glob("*.parquet")))
    if how == "filtered":
        path = path.filter(pa.dataset.field("times") > 0.0)
    if how == "arrow":
        path = tmp_path / "table.feather"
        pytest.importorskip("pyarrow.feather").write_feather(table_of(pa, rows), path)
    engine = ParquetRows(path, "label", weight="times", batch_rows=90)
    assert (engine.n_rows, engine.n_features, engine.feature_names) == (N, 3, ["a", "b", "c"])
    assert_same(rows, engine)


def keep(rows, kept, shared):
    """Keep what a fit would, two numbers for each row, and count the rows."""
    return (rows.X[:, 0].copy(), None, rows.weight), len(rows.weight)


def look(rows, kept, shared):
    return kept


def read(engine):
    """Read all rows once."""
    return engine.reduce(keep, None, "read")


def test_memory_is_that_of_a_few_blocks(pa, tmp_path):
    """A pass over a table of 32 MB and its states needs a fraction of that."""
    file, rng = tmp_path / "long.parquet", np.random.default_rng(0)
    X = rng.normal(size=(400_000, 10))
    table = pa.table({f"x{j}": X[:, j] for j in range(10)} | {"y": X[:, 0]})
    pa.parquet.write_table(table, file, row_group_size=50_000)
    del X, table
    engine = ParquetRows(file, "y", batch_rows=4096, kept=0)
    pool, before = pa.default_memory_pool(), pa.total_allocated_bytes()
    tracemalloc.start()
    for _ in range(2):
        assert read(engine) == 400_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A block is .3 MB, and there are a few of them for each thread.
    assert peak < 1e7
    assert pool.bytes_allocated() - before < 1e6


def test_a_memory_map_is_read_a_block_at_a_time(tmp_path):
    """What is made float64 is one block, not the table."""
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float32, (200_000, 20))
    rows = Rows(np.zeros(len(X)), np.ones(len(X)), X)
    tracemalloc.start()
    engine = MemoryBlocks(rows, 2000)
    assert engine.reduce(count, None, "count") == len(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A block is .3 MB as float64, with some for each thread; the table is 32 MB.
    assert peak < 1e7


def count(rows, kept, shared):
    assert type(rows.X) is np.ndarray
    assert rows.X.dtype == np.float64
    return None, len(rows.X)


def test_features_are_kept_if_there_is_memory(pa, tmp_path):
    """Blocks keep what a prior has made of them from pass to pass, if all of them can."""
    rows, made = rows_of(), []

    class Watched(InducingPrior):
        def _features(self, X):
            made.append(len(X))
            return super()._features(X)

    path = write(pa, tmp_path, rows)
    for kept, expected in ((1e9, 3), (1000, 6), (0, 6)):
        made.clear()
        engine = ParquetRows(path, "label", weight="times", batch_rows=100, kept=kept)
        prior = Watched(*InducingPrior.of(KERNEL, rows.X[:10]))
        for _ in range(2):
            list(engine.collect(lambda rows, kept, prior: prior.features(rows), prior, ""))
        assert len(made) == expected


def test_states_survive_a_copy_and_die_with_their_fit(pa, tmp_path):
    """A fit can be sent elsewhere, with what is kept of its rows; a dropped one leaves nothing."""
    rows = rows_of()
    engine = ParquetRows(write(pa, tmp_path, rows), "label", weight="times", batch_rows=100)
    fit = fitted(rows, engine)
    copied = pickle.loads(pickle.dumps(fit))
    # Arrays that begin elsewhere in memory are rounded in another way.
    np.testing.assert_allclose(copied.cavities.mean, fit.cavities.mean, rtol=1e-12)
    assert len(engine._states) == 1
    del fit
    assert not engine._states


def test_a_failed_pass_changes_nothing():
    """What a pass has kept before an error is not there after it."""
    rows = rows_of()
    engine = BatchRows(batches_of(rows, (50,)), batch_rows=60)
    read(engine)
    before = list(engine.collect(look, None, "read"))

    def fail(rows, kept, shared):
        if rows.place.start >= 120:
            raise RuntimeError("lost power")
        return kept, 0

    with pytest.raises(RuntimeError):
        engine.reduce(fail, None, "read")
    for got, want in zip(engine.collect(look, None, "read"), before, strict=True):
        np.testing.assert_array_equal(got[0], want[0])
        assert got[1] is None


def test_blocks_that_keep_nothing_need_no_file():
    """A visit may keep something of some blocks only."""
    rows = rows_of()
    engine = BatchRows(batches_of(rows, (50,)), batch_rows=100)

    def some(rows, kept, first):
        return (None if rows.place.start < first else rows.y), 1

    for first, expected in ((1000, [0, 0, 0]), (100, [0, 1, 1])):
        assert engine.reduce(some, first, "some") == 3
        assert [int(k is not None) for k in engine.collect(look, None, "some")] == expected


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_full_disk(monkeypatch):
    """A full disk is an error that says where and how much; the last round is still there."""
    rows = rows_of(2000)
    engine = BatchRows(batches_of(rows, (500,)), batch_rows=1000)
    read(engine)
    before = list(engine.collect(look, None, "read"))
    monkeypatch.setattr(tempfile, "TemporaryFile", partial(open, "/dev/full", "w+b", buffering=0))
    with pytest.raises(OSError, match=r"disk is full.*needs about 0\.1 MB.*TMPDIR") as caught:
        read(engine)
    assert caught.value.errno == errno.ENOSPC
    for got, want in zip(engine.collect(look, None, "read"), before, strict=True):
        np.testing.assert_array_equal(got[0], want[0])


def test_progress(pa, tmp_path):
    """Whoever asks is told how many rows are done, and of how many."""
    rows, seen = rows_of(), []
    told = {"batch_rows": 100, "progress": lambda *done: seen.append(done)}
    path = write(pa, tmp_path, rows)
    for engine, first in (
        (ParquetRows(path, **told), 230),
        (BatchRows(batches_of(rows, (40,)), **told), None),
    ):
        seen.clear()
        read(engine)
        assert [done for done, _ in seen] == [100, 200, 230]
        # With several threads the end of the table is known before the last block is done.
        assert {n for _, n in seen} <= {first, 230}
        read(engine)
        assert seen[3:] == [(100, 230), (200, 230), (230, 230)]


def targets(engine):
    return np.concatenate(list(engine.collect(lambda rows, kept, shared: rows.y, None, "")))


def test_targets_of_any_type(pa, tmp_path):
    """Targets come as they are: text as objects, numbers as numbers, several in columns."""
    text = np.array(["no", "yes", "perhaps"], dtype=object)[np.arange(90) % 3]
    columns = {
        "x": np.arange(90.0),
        "text": text,
        "category": pa.array(text).dictionary_encode(),
        "whole": np.arange(90),
        "flag": np.arange(90) % 2 == 0,
    }
    file = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table(columns), file, row_group_size=40)
    rows = ParquetRows(file, features=["x"], batch_rows=37)
    for name in ("text", "category"):
        got = targets(rows.with_targets(name))
        assert got.dtype == object
        assert got.tolist() == text.tolist()
    assert targets(rows.with_targets("whole")).dtype == np.int64
    assert targets(rows.with_targets("flag")).dtype == np.bool_
    two = ParquetRows(file, ["whole", "x"], features=["flag"], batch_rows=37)
    np.testing.assert_array_equal(targets(two), np.arange(90.0)[:, None] * np.ones(2))
    assert next(rows.collect(lambda rows, kept, shared: rows, None, "")).y is None
    assert targets(rows.with_targets(text)).tolist() == text.tolist()


def test_a_target_is_no_feature(pa, tmp_path):
    """A column that becomes the target leaves the features, and what was kept of them."""
    rows = rows_of()
    table = ParquetRows(write(pa, tmp_path, rows), weight="times", batch_rows=100)
    assert table.feature_names == ["a", "b", "c", "label"]
    assert read(table) == N
    assert_same(rows, table.with_targets("label"))
    assert table.n_features == 4
    with pytest.raises(ValueError, match=r"no column 'labels'.*'label'"):
        table.with_targets("labels")


def test_targets_given_as_an_array():
    """Targets may be kept elsewhere; there must be one for every row."""
    rows = rows_of()
    table = BatchRows(lambda: (rows.X[k : k + 50] for k in range(0, N, 50)), batch_rows=60)
    y = np.where(rows.y > 0.0, "yes", "no")
    assert targets(table.with_targets(y)).tolist() == y.tolist()
    with pytest.raises(ValueError, match="at least 180 rows"):
        read(table.with_targets(y[:150]))
    with pytest.raises(ValueError, match="231 targets for a table of 230 rows"):
        read(table.with_targets(np.append(y, "yes")))
    assert table.n_rows == N
    with pytest.raises(ValueError, match="150 targets for a table of 230 rows"):
        table.with_targets(y[:150])
    with pytest.raises(TypeError, match="no column 'y'"):
        table.with_targets("y")


def test_folders_that_say_what_is_in_a_column(pa, tmp_path):
    """Of a folder of folders called column=value, the column is read as well."""
    rows = rows_of()
    for k in range(2):
        (tmp_path / f"year={2020 + k}").mkdir()
        write(pa, tmp_path / f"year={2020 + k}", rows)
    table = ParquetRows(tmp_path, "label", weight="times")
    assert table.feature_names == ["a", "b", "c", "year"]
    X = np.concatenate(list(table.collect(lambda rows, kept, shared: rows.X, None, "")))
    np.testing.assert_array_equal(X[:, 3], np.repeat([2020.0, 2021.0], N))


def test_pyarrow_is_an_extra():
    """Everything else does without pyarrow, and opening a file says what to install."""
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import cavity, cavity.rows as rows; assert sorted(rows.ENGINES) == ['batches', 'memory']\n"
        "try: rows.ParquetRows('x.parquet')\n"
        "except ImportError as error: print(error)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert 'pip install "cavity[arrow]"' in found.stdout, found.stderr
