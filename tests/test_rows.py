"""Rows wherever they live: files, batches and memory maps give the numbers of memory."""

from itertools import pairwise

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
