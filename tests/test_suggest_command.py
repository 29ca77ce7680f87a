"""The command that names rows to label: what Python says, for a table."""

import json

import numpy as np
import polars as pl
import pytest

from cavity import suggest
from cavity.cli import main
from cavity.tables.model import load_model

N = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with two models and a pool."""
    folder = tmp_path_factory.mktemp("suggest")
    made(0).write_csv(folder / "labelled.csv")
    made(1).drop("t", "q").with_columns(note=pl.Series([f"n{i}" for i in range(N)])).write_csv(
        folder / "pool.csv"
    )
    for target, other in (("t", "q"), ("q", "t")):
        args = ["--target", target, "--drop", other, "--kernel", "rbf", "--quiet"]
        path = str(folder / f"{target}.model")
        assert main(["fit", str(folder / "labelled.csv"), *args, "-o", path]) == 0
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def made(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 2))
    kind = rng.choice(["u", "v"], N)
    return pl.DataFrame(
        {
            "a": X[:, 0],
            "b": X[:, 1],
            "c": kind,
            "t": np.where(X.sum(axis=1) + 0.3 * rng.standard_normal(N) > 0, "yes", "no"),
            "q": 3.0 * X[:, 0] + 0.5 * rng.standard_normal(N),
        }
    )


def run(capsys, *arguments):
    code = main(["suggest", *arguments])
    return code, *capsys.readouterr()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["t", "q"])
@pytest.mark.parametrize("criterion", ["error", "information"])
def test_rows_are_those_of_python(capsys, name, criterion):
    """Rows are counted from 1, gains are those of `cavity.suggest` for the encoded pool."""
    words = [f"{name}.model", "pool.csv", "-k", "4", "--criterion", criterion, "--json"]
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    found = json.loads(out)
    model = load_model(f"{name}.model")
    X = model.encoder.transform(pl.read_csv("pool.csv"), "pool.csv")
    truth = suggest(model.estimator, X, 4, criterion=criterion)
    assert [row["row"] for row in found["rows"]] == (truth.index + 1).tolist()
    assert [row["gain"] for row in found["rows"]] == pytest.approx([row.gain for row in truth])
    assert found["verdict"] == truth.verdict
    assert found["stop"] == truth.stop


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["chosen.csv", "chosen.parquet"])
def test_chosen_rows_are_written_in_order(capsys, name):
    """The file has the pool's own rows, all columns, in the order of the suggestions."""
    code, out, err = run(capsys, "t.model", "pool.csv", "-k", "5", "-o", name)
    assert (code, err) == (0, "")
    written = (pl.read_csv if name.endswith("csv") else pl.read_parquet)(name)
    pool = pl.read_csv("pool.csv")
    assert written.columns[4:] == pool.columns
    index = written["suggested_row"].to_numpy() - 1
    assert written["note"].to_list() == pool["note"].gather(index).to_list()
    printed = [line.split()[0] for line in out.splitlines()[1:6]]
    assert printed == written["suggested_row"].cast(str).to_list()
    assert f"These rows are in {name}." in out
    code, *_ = run(capsys, "t.model", name, "-k", "2", "-o", "again.csv")
    assert code == 0
    assert pl.read_csv("again.csv").columns == written.columns


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["t.model", "pool.csv", "-k", "61"], 1, "between 1 and the 60 rows of the pool; got 61"),
        (["t.model", "pool.csv", "-k", "0"], 2, "-k"),
        (["t.model", "pool.csv", "-o", "rows.xlsx"], 2, "must end in"),
        (["t.model", "pool.csv", "-o", "pool.csv"], 2, "would replace pool.csv"),
        (["t.model", "nowhere.csv"], 1, "no such file"),
        (["pool.csv", "pool.csv"], 1, "not a model file"),
        (["t.model", "few.csv"], 1, "few.csv"),
    ],
)
def test_mistakes_are_one_line(capsys, words, code, said):
    """What is wrong is said in one line, with the exit code of its kind."""
    pl.read_csv("pool.csv").drop("b").write_csv("few.csv")
    found, out, err = run(capsys, *words)
    assert (found, out, err.count("\n")) == (code, "", 1)
    assert said in err
