"""Tables larger than memory: the same rules, the same numbers, in batches of rows."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from cavity.cli import main
from cavity.tables import facts, large, table
from cavity.tables.facts import all_different, facts_of
from cavity.tables.model import Settings, fit_model, save_model
from cavity.tables.output import TableError, write_frames
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


TEXTS = [
    "a,b\n1.5,x\n-2.5,y\n",
    'a,b\n1.5,x\n-2.5,"y, z"\n',
    'a,b\n1.5,x\n-2.5,"y\nz"\n,\n',
    "\ufeffa,b\n1.5,x\n-2.5,y\n",
    '\ufeff"a","b"\n1.5,x\n-2.5,y\n',
    "a,b\r\n1.5,x\r\n\r\n-2.5,y\r\n\r\n\r\n",
    "a;b\n1,5;x\n-2,5;y\n",
    "a\tb\n1.5\tx\n-2.5\ty",
    "a,b\n NA ,x\n1, true\n2,?\n",
    "a,b\nTrue,x\nfalse,1\n,2.5\n",
    "a,\n1,2\n3,4\n\n\n",
    "a\n1\n\n3\n\n\n",
    "a,b\n1,\n2,NA\n",
    "a,b\n1,1\n2,2.5\n3,inf\n",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("rows", [1, 2, 100])
def test_text_is_read_as_in_memory(tmp_path, monkeypatch, text, rows):
    """Separators, quotes, line ends, blanks and types make no difference, in batches or whole."""
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    whole = read_table(path).frame
    stream(monkeypatch)
    monkeypatch.setattr(large, "_CHUNK", 64)
    monkeypatch.setattr(large, "_ROWS", rows)
    monkeypatch.setattr(table, "_MOST", rows)
    monkeypatch.setattr(table, "_FEWEST", 1)
    found = read_table(path)
    assert found.height == whole.height
    assert dict(found.schema) == dict(whole.schema)
    assert pl.concat(found.batches()).equals(whole)
    quick = table.faster(found)
    assert pl.concat(quick.batches()).equals(whole)
    quick.close()


LONG = "".join(f"{i},{i % 7}\n" for i in range(3000)).encode()
REFUSED = [
    (b"a,b\n" + LONG + b"3\n", "line 3002 has 1 fields where the header has 2"),
    (b"a,b\n" + LONG + b"3,4,5\n" + LONG, "line 3002 has 3 fields"),
    (b"a,b\n" + LONG + b'"3"\n', "line 3002 has 1 fields"),
    (b'a,b\n"1\n",2\n' + LONG + b"3\n", "line 3004 has 1 fields"),
    (b"a,b\n" + LONG + b'"3,4\n', "line 3002 has 1 fields"),
    (b"a,b\n" + LONG + b"\xe9,4\n", "line 3002 is not UTF-8 .byte 0xe9."),
    (b"a,b\n" + LONG + b"1,\x00\n", "is binary"),
    (b"a,a\n" + LONG, "column 'a': two columns have this name"),
    (b"1,2\n" + LONG, "line 1 holds numbers"),
    (b"a,b\n\n\n\n", "has no rows"),
    (b"\n" * 9, "is empty"),
    (b"PK\x03\x04a,b\n1,2\n", "is a zip archive"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_improper_text_is_refused(tmp_path, monkeypatch, text, message):
    """What is wrong anywhere in a large text is refused as it is in a small one."""
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    stream(monkeypatch)
    with pytest.raises(TableError, match=message) as caught:
        table.faster(read_table(path))
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def csv(path, frame):
    frame.write_csv(path)
    return path


def test_a_type_that_changes_late_counts(tmp_path, monkeypatch):
    """One fraction, or one word, in the last row decides the type of a whole column."""
    stream(monkeypatch)
    whole = [str(i) for i in range(N)]
    made_of = {"a": [*whole[:-1], "0.5"], "b": [*whole[:-1], "x"], "c": ["true"] * (N - 1) + ["1"]}
    found = read_table(csv(tmp_path / "t.csv", pl.DataFrame(made_of)))
    assert dict(found.schema) == {"a": pl.Float64, "b": pl.String, "c": pl.String}


def test_rows_in_messages_are_those_of_the_table(tmp_path, monkeypatch):
    """A stray word in a late batch is named with its row, as is a target that is no number."""
    stream(monkeypatch)
    values = [f"{i / 7:.3f}" for i in range(N)]
    values[2716] = "n.a."
    frame = pl.DataFrame({"k": values, "x": np.arange(N) / 3, "t": ["a", "b"] * (N // 2)})
    found = read_table(csv(tmp_path / "t.csv", frame))
    with pytest.raises(TableError, match=r"column 'k', row 2717: 'n\.a\.' is not a number, though"):
        prepare(found, "t")
    with pytest.raises(TableError, match=r"column 'k', row 2717: 'n\.a\.' is not a number"):
        prepare(found, "k", "regression")


def test_a_row_without_target_far_down_is_counted(tmp_path, monkeypatch):
    """A missing target in any batch is left out, and later rows keep their numbers."""
    stream(monkeypatch)
    labels = pl.Series([None if i == 2200 else "ab"[i % 2] for i in range(N)])
    frame = pl.DataFrame({"x": np.sqrt(np.arange(N)), "t": labels})
    data = prepare(read_table(csv(tmp_path / "t.csv", frame)), "t")
    assert data.counts["rows_without_target"] == 1
    assert data.rows[2200] == 2202
    assert any(note.startswith("1 row without a value of 't'") for note in data.notes)


def test_text_without_end_is_not_collected(tmp_path, monkeypatch):
    """Of free-form text only so many values are kept, and the note says so."""
    stream(monkeypatch)
    monkeypatch.setattr(facts, "MOST_VALUES", 100)
    monkeypatch.setattr("cavity.tables.columns.MOST_VALUES", 100)
    found = read_table(csv(tmp_path / "t.csv", made()))
    about = facts_of(found, ["remark"])["remark"]
    assert about.levels is None
    assert len(about.values) < 1000
    data = prepare(found, "t")
    assert any("'remark'" in note and "more than 100 different" in note for note in data.notes)
    with pytest.raises(TableError, match="column 'remark': has more than 100 different values"):
        prepare(found, "t", keep=["remark"])


@pytest.mark.parametrize("repeated", [False, True])
def test_different_values_are_counted_exactly(tmp_path, monkeypatch, repeated):
    """Whether all values differ is found part by part, however far apart two equal ones are."""
    stream(monkeypatch)
    monkeypatch.setattr(facts, "_COUNTED", 400)
    values = np.random.default_rng(0).permutation(N)
    values[-1] = values[0] if repeated else values[-1]
    found = read_table(csv(tmp_path / "t.csv", pl.DataFrame({"id": values})))
    assert all_different(found, facts_of(found, ["id"])["id"]) != repeated


def test_a_sample_of_a_large_table(tmp_path, monkeypatch):
    """--rows draws from a large table what it draws from a small one."""
    path = csv(tmp_path / "t.csv", made())
    small = prepare(read_table(path), "t", max_rows=200, seed=3)
    stream(monkeypatch)
    monkeypatch.setattr(table, "IN_MEMORY", 20_000)
    big = prepare(read_table(path), "t", max_rows=200, seed=3)
    # Few rows are held in memory, whatever the size of their table.
    assert isinstance(big.X, np.ndarray)
    np.testing.assert_array_equal(big.rows, small.rows)
    # Two orders of summation.
    np.testing.assert_allclose(big.X, small.X, atol=1e-12)
    np.testing.assert_allclose(big.X_test, small.X_test, atol=1e-12)


def test_a_table_that_changes_is_noticed(tmp_path, monkeypatch):
    """Rows that vanish between two passes are an error, not another table."""
    stream(monkeypatch)
    path = csv(tmp_path / "t.csv", made())
    found = read_table(path)
    csv(path, made(N // 2))
    with pytest.raises(TableError, match="had 3,000 rows and now has 1,500"):
        list(found.batches())


def test_the_temporary_file_goes_away(tmp_path, monkeypatch):
    """The converted copy is removed when the table is closed, or forgotten."""
    stream(monkeypatch)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    quick = table.faster(read_table(csv(tmp_path / "t.csv", made())))
    assert any("temporary" in remark for remark in quick.remarks)
    assert len(os.listdir(scratch)) == 1
    quick.close()
    assert os.listdir(scratch) == []
    quick = table.faster(read_table(tmp_path / "t.csv"))
    del quick
    assert os.listdir(scratch) == []


def test_a_full_disk_is_one_line(tmp_path, monkeypatch):
    """If the copy cannot be written, the message says where and what to do, and nothing stays."""
    stream(monkeypatch)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))

    def fail(*_):
        raise pl.exceptions.ComputeError("No space left on device (os error 28)")

    monkeypatch.setattr(large, "write_parquet", fail)
    found = read_table(csv(tmp_path / "t.csv", made()))
    with pytest.raises(TableError, match=r"No space left.*TMPDIR") as caught:
        table.faster(found)
    assert "\n" not in str(caught.value)
    assert os.listdir(scratch) == []


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of a small table, in a file."""
    path = tmp_path_factory.mktemp("model") / "m.model"
    frame = made(300).with_columns(word=pl.Series(["u", "v", "w"] * 100))
    data = prepare(table.Table(frame, "made.csv"), "t", drop=["q"])
    fitted, _ = fit_model(data, Settings("rbf"))
    save_model(path, data, fitted, Settings("rbf"))
    return path


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predictions_in_batches_are_those_in_memory(tmp_path, monkeypatch, capsys, model, suffix):
    """`cavity predict` writes the same answers and counts, whether it streams or not."""
    frame = made(seed=1).with_columns(
        word=pl.when(pl.int_range(pl.len()) == N - 1).then(pl.lit("new")).otherwise("word")
    )
    source = tmp_path / f"new.{suffix}"
    frame.write_csv(source) if suffix == "csv" else frame.write_parquet(source)
    said = []
    for name in ("whole", "parts"):
        for end in (".parquet", ".csv"):
            assert main(["predict", str(model), str(source), "-o", f"{tmp_path / name}{end}"]) == 0
        assert main(["predict", str(model), str(source)]) == 0
        assert main(["predict", str(model), str(source), "--json"]) == 0
        out, err = capsys.readouterr()
        assert not err
        said.append(out)
        stream(monkeypatch)
        monkeypatch.setattr("cavity.tables.model._BLOCK", 250)
    told = [[line for line in text.splitlines() if "rows have a value" in line] for text in said]
    assert told[0] == told[1] != []
    assert len(said[0].splitlines()) == len(said[1].splitlines())
    whole, parts = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("whole", "parts"))
    assert whole["prediction"].equals(parts["prediction"])
    # Sums over other blocks round differently.
    np.testing.assert_allclose(whole["probability_of_no"], parts["probability_of_no"], rtol=1e-10)
    assert pl.read_csv(tmp_path / "parts.csv").equals(parts)


def test_what_cannot_be_predicted_is_known_before(tmp_path, monkeypatch, capsys, model):
    """A word among numbers in a late row is refused with its row, and nothing is written."""
    stream(monkeypatch)
    source, out = tmp_path / "new.csv", tmp_path / "p.csv"
    frame = made(seed=1).with_columns(number=pl.col("number").cast(pl.String))
    frame[2901, "number"] = "oops"
    frame.write_csv(source)
    assert main(["predict", str(model), str(source)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "column 'number', row 2902: 'oops' is not a number" in said.err
    frame.drop("number").write_csv(source)
    assert main(["predict", str(model), str(source), "-o", str(out)]) == 1
    assert "column 'number': the model needs this column" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_failure_half_way_leaves_the_old_answers(tmp_path, suffix):
    """Whatever stops the writing after some parts, the old file is whole and no scrap is left."""
    path = tmp_path / f"p{suffix}"
    path.write_text("old")

    def parts():
        yield pl.DataFrame({"a": [1.0]})
        raise TableError("new.csv", "it changed")

    with pytest.raises(TableError, match="it changed"):
        write_frames(path, parts())
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_all_of_a_hundred_thousand_rows_are_used(tmp_path, monkeypatch, capsys, suffix):
    """`cavity fit` uses every row of a table that it reads in batches, and says so."""
    n, rng = 100_000, np.random.default_rng(0)
    x, z = rng.standard_normal((2, n)).round(3)
    labels = np.where(np.sin(x) + z + rng.standard_normal(n) > 0, "yes", "no")
    frame, source = pl.DataFrame({"x": x, "z": z, "t": labels}), tmp_path / f"big.{suffix}"
    frame.write_csv(source) if suffix == "csv" else frame.write_parquet(source)
    monkeypatch.setattr(table, "IN_MEMORY", 1_000_000)
    path = str(tmp_path / "m.model")
    options = ["--target", "t", "--kernel", "rbf", "--inducing", "10", "-o", path, "--json"]
    assert main(["fit", str(source), *options]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == ""
    assert found["counts"]["rows_trained_on"] == found["left_out"]["rows"] == n
    assert found["inducing"]["points"] == 10
    assert "read in batches" in found["notes"][0]
    # The signs of sin(x) + z are wrong for a quarter of the labels, an integral's value.
    assert found["left_out"]["error"] == pytest.approx(0.24, abs=0.03)
    assert os.path.getsize(path) < 20_000


def test_a_report_of_a_table_in_batches(tmp_path, monkeypatch, capsys):
    """The page of a large table counts all rows, shows a sample of them, and is small."""
    n, rng = 4000, np.random.default_rng(1)
    x, z = rng.standard_normal((2, n)).round(3)
    y = np.sin(x) + z + 0.3 * rng.standard_normal(n)
    y[3210] = 30.0
    source = csv(tmp_path / "big.csv", pl.DataFrame({"x": x, "z": z, "y": y}))
    stream(monkeypatch)
    page = tmp_path / "r.html"
    options = ["--target", "y", "--kernel", "rbf", "--inducing", "15", "-o", str(page)]
    assert main(["report", str(source), *options]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "summarises the 4,000 rows by 15 representative points" in said.out
    assert "row 3211: its value is 30" in said.out
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) < 1_500_000
    assert "random sample of 2,000 of 4,000 rows" in text
    numbers = json.loads(re.search(r'id="numbers">(.*?)</script>', text, re.S)[1])
    assert numbers["left_out"]["rows"] == sum(numbers["certainty"]["counts"]["rows"]) == n
    assert len(numbers["points"]["row"]) == 2000


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path):
    """A CSV of three million rows is read and encoded, twice over, in 700 MB; whole, in 2 GB."""
    pytest.importorskip("resource")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3_000_000, 8)).round(4)
    frame = pl.DataFrame({f"x{i}": X[:, i] for i in range(8)})
    frame = frame.with_columns(t=pl.Series(np.where(X[:, 0] > 0, "yes", "no")))
    csv(tmp_path / "big.csv", frame)
    program = (
        "import resource, sys; from cavity.tables.prepare import prepare; "
        "from cavity.tables.read import read_table; "
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; "
        "data = prepare(read_table(sys.argv[1]), 't'); "
        "assert sum(len(X) for X, _ in data.stored()) == data.X.n_rows == 3_000_000; "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "big.csv"],
        capture_output=True,
        text=True,
        check=True,
    )
    # In kilobytes.
    assert int(done.stdout) < 700_000
