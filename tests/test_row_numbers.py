"""Rows are counted from 1, the first below the header, wherever a row is named."""

import json

import numpy as np
import polars as pl
import pytest

from cavity.cli import main
from cavity.tables import large, table
from cavity.tables.output import write_frames

N = 60
FAULTY = 41


def made():
    """A table whose first column has line breaks and quotes in it, and whose first rows say
    nothing about the target."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(N)
    labels = [None, None, *np.where(x > 0, "yes", "no")[2:]]
    remarks = [f'line\n"{i}"\n' if i % 3 else "" for i in range(N)]
    numbers = np.round(rng.standard_normal(N), 3)
    return pl.DataFrame({"remark": remarks, "x": x, "z": numbers, "t": labels})


@pytest.fixture(params=["csv", "parquet", "batches"])
def write(request, tmp_path, monkeypatch):
    """What writes a table to a file of some kind, and returns its name."""
    monkeypatch.chdir(tmp_path)
    if request.param == "batches":
        # The file is too large, the inputs are not.
        monkeypatch.setattr(table, "IN_MEMORY", 1000)
        monkeypatch.setattr(table, "_FEWEST", 7)
        monkeypatch.setattr(table, "_MOST", 7)
        monkeypatch.setattr(large, "_CHUNK", 200)
        monkeypatch.setattr(large, "_ROWS", 7)
        monkeypatch.setattr("cavity.tables.model._BLOCK", 4)

    def written(frame, name="t"):
        path = tmp_path / f"{name}.{'parquet' if request.param == 'parquet' else 'csv'}"
        write_frames(path, [frame])
        return path.name

    return written


def run(capsys, *arguments):
    code = main(list(arguments))
    return code, *capsys.readouterr()


OPTIONS = ["--target", "t", "--drop", "remark", "--kernel", "rbf", "--rows", "30"]
FAULTS = {
    "a word": (
        lambda z: pl.Series(["oops" if i == FAULTY - 1 else str(v) for i, v in z]),
        "'oops'",
    ),
    "too large": (lambda z: pl.Series([1e101 if i == FAULTY - 1 else v for i, v in z]), "1e+101"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("command", ["report", "compare", "curve", "fit", "predict"])
def test_every_command_names_the_same_row(write, capsys, command, fault):
    """A fault in one row is reported with that row's number by each command, for any file."""
    spoil, word = FAULTS[fault]
    frame = made()
    good = write(frame, "good")
    bad = write(frame.with_columns(spoil(list(enumerate(frame["z"]))).alias("z")), "bad")
    words = [command, bad, *OPTIONS, *(["-o", "m.model"] if command == "fit" else [])]
    if command == "predict":
        assert run(capsys, "fit", good, *OPTIONS, "-o", "m.model")[0] == 0
        words = ["predict", "m.model", bad, "-o", "p.csv"]
    code, out, err = run(capsys, *words)
    assert (code, out) == (1, "")
    assert f"{bad}: column 'z', row {FAULTY}: {word}" in err


def test_a_target_that_is_no_number_is_named_by_its_row(write, capsys):
    """So is a word in the column to predict, and in that to score predictions by."""
    frame = made()
    words = pl.Series(
        "z", ["oops" if i == FAULTY - 1 else str(v) for i, v in enumerate(frame["z"])]
    )
    options = ["--target", "z", "--task", "regression", *OPTIONS[2:]]
    code, _, err = run(capsys, "report", write(frame.with_columns(words), "bad"), *options)
    assert code == 1
    assert f"column 'z', row {FAULTY}: 'oops' is not a number" in err
    assert run(capsys, "fit", write(frame), *options, "-o", "m.model")[0] == 0
    code, _, err = run(capsys, "predict", "m.model", write(frame.with_columns(words)), "--score")
    assert code == 1
    assert f"column 'z', row {FAULTY}: 'oops' is not a number" in err


def test_results_name_the_rows_of_the_table(write, capsys):
    """Suspects, uncertain rows and shown inputs have the numbers that the table's rows have."""
    frame = made()
    labels = frame["t"].to_list()
    labels[FAULTY - 1] = "no" if labels[FAULTY - 1] == "yes" else "yes"
    x = frame["x"].to_list()
    x[FAULTY - 1] = 3.0 if labels[FAULTY - 1] == "no" else -3.0
    path = write(frame.with_columns(t=pl.Series(labels), x=pl.Series(x)))
    code, out, _ = run(capsys, "report", path, *OPTIONS[:6], "--json")
    found = json.loads(out)
    assert code == 0
    assert found["suspects"][0]["row"] == FAULTY
    assert float(found["inputs"][str(FAULTY)]["x"]) == x[FAULTY - 1]
    assert min(found["points"]["row"]) == 3
    assert max(found["points"]["row"]) == N
    assert found["data"]["counts"]["rows_without_target"] == 2


def test_a_text_that_is_no_table_is_named_by_its_line(tmp_path, monkeypatch, capsys):
    """Where there are no rows yet, a message says line, and counts those of the file."""
    monkeypatch.chdir(tmp_path)
    text = 'remark,x,t\n"a\nb",1,u\n"c",2\n'
    (tmp_path / "t.csv").write_text(text)
    code, _, err = run(capsys, "report", "t.csv", "--target", "t")
    assert code == 1
    assert "t.csv: line 4 has 2 fields where the header has 3" in err
    _, out, _ = run(capsys, "--help")
    assert "Rows are counted from 1, the first below the header" in " ".join(out.split())
