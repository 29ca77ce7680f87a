"""Tables larger than memory: the same rules, the same numbers, in batches of rows."""

import numpy as np
import polars as pl
import pytest

from cavity.tables import large, table
from cavity.tables.prepare import prepare
from cavity.tables.read import read_table
from cavity.tables.table import StoredTable

N = 3000


def stream(monkeypatch):
    """Let every file be too large for memory, and its batches small."""
    monkeypatch.setattr(table, "IN_MEMORY", 0)
    monkeypatch.setattr(table, "_FEWEST", 100)
    monkeypatch.setattr(table, "_MOST", 700)
    monkeypatch.setattr(large, "_CHUNK", 5000)
    monkeypatch.setattr(large, "_ROWS", 700)


def made(n=N, seed=0):
    """A table with all kinds of columns, and with gaps."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n).round(4)
    words = rng.choice(["u", "v", "w", None], n, p=[0.5, 0.3, 0.19, 0.01])
    words[:-5][words[:-5] == "w"] = "v"
    words[-3] = "w"
    words[-4] = "w"
    return pl.DataFrame(
        {
            "number": pl.Series(x).set(pl.Series(rng.random(n) < 0.1), None),
            "whole": rng.integers(0, 100, n),
            "word": pl.Series(words.tolist()),
            "flag": rng.random(n) < 0.5,
            "constant": [7] * n,
            "nothing": pl.Series([None] * n, dtype=pl.String),
            "counter": np.arange(5, n + 5),
            "visit_id": rng.permutation(n),
            "remark": [f"a remark, the {i}th" for i in range(n)],
            "t": pl.Series(np.where(x + rng.standard_normal(n) > 0, "yes", "no")).set(
                pl.Series(rng.random(n) < 0.05), None
            ),
            "q": (3.0 * x + rng.standard_normal(n)).round(3),
        }
    )


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize("options", [{"target": "t"}, {"target": "q", "test_size": 0.2}])
def test_batches_prepare_what_memory_prepares(tmp_path, monkeypatch, suffix, options):
    """Columns, encodings, notes, rows and inputs are those of the table in memory."""
    path, frame = tmp_path / f"t.{suffix}", made()
    if suffix == "parquet":
        frame.write_parquet(path, row_group_size=900)
    else:
        frame.write_csv(path, separator="\t" if suffix == "tsv" else ",")
    small = prepare(read_table(path), **options, drop=["t"] if options["target"] == "q" else [])
    stream(monkeypatch)
    found = read_table(path)
    assert isinstance(found, StoredTable)
    big = prepare(found, **options, drop=["t"] if options["target"] == "q" else [])
    assert big.counts == small.counts
    assert big.notes[len(big.notes) - len(small.notes) :] == small.notes
    assert big.classes == small.classes
    assert big.encoder.columns == small.encoder.columns
    # Two orders of summation.
    np.testing.assert_allclose(big.encoder.mean, small.encoder.mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(big.encoder.scale, small.encoder.scale, rtol=1e-12)
    for name in ("y", "rows", "y_test", "test_rows"):
        np.testing.assert_array_equal(getattr(big, name), getattr(small, name))
    np.testing.assert_allclose(big.X_test, small.X_test, atol=1e-12)
    np.testing.assert_allclose(np.concatenate([X for X, _ in big.stored()]), small.X, atol=1e-12)
    np.testing.assert_array_equal(np.concatenate([y for _, y in big.stored()]), small.y)
    places = np.array([17, 3, 2000, 3])
    np.testing.assert_allclose(big.inputs_at(places), small.X[places], atol=1e-12)
