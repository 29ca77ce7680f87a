"""`cavity predict`: columns carried along, intervals of any level, scores by given answers."""

import io
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm
from sklearn.metrics import brier_score_loss, log_loss

import cavity
from cavity.cli import main
from cavity.tables import large, table
from cavity.tables.marks import ClassMarks
from cavity.tables.model import load_model

N = 90


def made(seed, n=N):
    rng = np.random.default_rng(seed)
    X, noise = rng.standard_normal((n, 2)), rng.standard_normal(n)
    return pl.DataFrame(
        {
            "code": [f"{i:04d}" for i in range(n)],
            "remark": ["NA", " spaces ", "=1+1", '"quoted", and\nbroken', ""] * (n // 5),
            "a": X[:, 0],
            "b": X[:, 1],
            "t": np.where(X.sum(axis=1) + noise > 0, "yes", "no"),
            "k": np.digitize(X[:, 0] + 0.5 * noise, [-0.5, 0.5]) + 1,
            "q": 3.0 * X[:, 0] + noise,
        }
    )


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with a table, new rows, and a model of each target."""
    folder = tmp_path_factory.mktemp("models")
    made(0).write_csv(folder / "t.csv")
    made(1).write_csv(folder / "new.csv")
    for target in "tkq":
        others = [w for c in ("code", "remark", *"tkq") if c != target for w in ("--drop", c)]
        words = ["fit", str(folder / "t.csv"), "--target", target, *others, "--kernel", "rbf"]
        assert main([*words, "-o", str(folder / f"{target}.model"), "--quiet"]) == 0
    return folder


@pytest.fixture(params=["memory", "batches"])
def folder(request, models, monkeypatch):
    """The same as working folder; tables are in memory, or too large for it."""
    monkeypatch.chdir(models)
    if request.param == "batches":
        monkeypatch.setattr(table, "IN_MEMORY", 0)
        monkeypatch.setattr(table, "_FEWEST", 10)
        monkeypatch.setattr(table, "_MOST", 17)
        monkeypatch.setattr(large, "_CHUNK", 500)
        monkeypatch.setattr("cavity.tables.model._BLOCK", 13)
    return models


def run(capsys, *arguments):
    code = main(list(arguments))
    return code, *capsys.readouterr()


def answer(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_carried_columns_are_as_they_were_written(folder, capsys):
    """Leading zeros, spaces, words for missing values and line breaks go through unchanged."""
    code, _, err = run(
        capsys, "predict", "q.model", "new.csv", "--carry", "code,remark", "-o", "p.parquet"
    )
    assert (code, err) == (0, "")
    found, new = pl.read_parquet("p.parquet"), made(1)
    assert found.columns == ["code", "remark", "prediction", "std", "lower", "upper"]
    assert found["code"].to_list() == new["code"].to_list()
    # Of an empty text, CSV does not say whether it is empty or missing.
    assert found["remark"].fill_null("").to_list() == new["remark"].to_list()
    _, out, _ = run(capsys, "predict", "q.model", "new.csv", "--carry", "remark", "--carry", "code")
    shown = pl.read_csv(io.StringIO(out), infer_schema=False)
    assert shown.columns[:2] == ["remark", "code"]
    assert shown["code"].to_list() == new["code"].to_list()


def test_all_columns_are_carried(folder, capsys):
    """--carry all copies every column of the table in front of the answers."""
    rows = answer(capsys, "predict", "t.model", "new.csv", "--carry", "all")
    new = made(1)
    assert list(rows[0])[:7] == new.columns
    np.testing.assert_array_equal([row["a"] for row in rows], new["a"])
    assert [row["t"] for row in rows] == new["t"].to_list()


def test_what_cannot_be_carried(folder, capsys):
    """An unknown column gets a suggestion, and one that is named like an answer is refused."""
    code, out, err = run(capsys, "predict", "t.model", "new.csv", "--carry", "remrak")
    assert (code, out) == (1, "")
    assert "column 'remrak': there is no such column to carry; did you mean 'remark'?" in err
    pl.read_csv("new.csv").rename({"code": "prediction"}).write_csv("clash.csv")
    code, out, err = run(capsys, "predict", "t.model", "clash.csv", "--carry", "all")
    assert (code, out) == (1, "")
    assert "column 'prediction': cannot be carried" in err


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_the_level_is_that_of_the_interval(folder, capsys, level):
    """Lower and upper are the quantiles of the normal predictive distribution."""
    rows = pl.DataFrame(answer(capsys, "predict", "q.model", "new.csv", "--level", str(level)))
    ends = norm.interval(level, rows["prediction"], rows["std"])
    # Two ways to the same quantile.
    np.testing.assert_allclose(rows["lower"], ends[0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(rows["upper"], ends[1], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("words", [["q.model", "--level", "1"], ["q.model", "--level", "95"]])
def test_a_level_is_between_zero_and_one(folder, capsys, words):
    """Another level, or any for classes, is wrong use."""
    for some in (words, ["t.model", "--level", "0.9"]):
        code, out, err = run(capsys, "predict", some[0], "new.csv", *some[1:])
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "--level" in err


def test_scores_of_classes_are_those_of_scikit_learn(folder, capsys):
    """Error, log loss, Brier score and calibration are those of the probabilities written."""
    found = answer(capsys, "predict", "t.model", "new.csv", "-o", "p.parquet")["scores"]
    p, t = pl.read_parquet("p.parquet"), made(1)["t"].to_numpy()
    proba, yes = p["probability_of_yes"].to_numpy(), t == "yes"
    # Two orders of summation.
    close = {"rel": 1e-10}
    assert found["rows"] == N
    assert found["error"] == pytest.approx(np.mean(p["prediction"].to_numpy() != t), **close)
    assert found["log_loss"] == pytest.approx(log_loss(yes, proba), **close)
    assert found["brier"] == pytest.approx(brier_score_loss(yes, proba), **close)
    losses = -np.log(np.where(yes, proba, 1.0 - proba))
    assert found["log_loss_se"] == pytest.approx(losses.std(ddof=1) / N**0.5, **close)
    [calibration] = found["calibration"]
    for part in calibration["bins"]:
        inside = (proba >= part["lower"]) & (proba < part["upper"])
        assert part["count"] == inside.sum()
        assert part["predicted"] == pytest.approx(proba[inside].mean(), **close)
        assert part["observed"] == pytest.approx(yes[inside].mean(), **close)
    _, out, _ = run(capsys, "predict", "t.model", "new.csv", "-o", "p.parquet")
    assert f"Scored {N} of {N} rows." in out
    assert f"error {found['error']:.3f} ±" in out


def test_scores_of_a_quantity(folder, capsys):
    """RMSE, log loss, R² and coverage are those of the predictions written, at any level."""
    words = ["predict", "q.model", "new.csv", "--level", "0.8", "-o", "p.parquet"]
    found = answer(capsys, *words)["scores"]
    p, q = pl.read_parquet("p.parquet"), made(1)["q"].to_numpy()
    mean, std = p["prediction"].to_numpy(), p["std"].to_numpy()
    close = {"rel": 1e-9}
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((mean - q) ** 2)), **close)
    assert found["mae"] == pytest.approx(np.mean(np.abs(mean - q)), **close)
    assert found["r2"] == pytest.approx(1 - np.mean((mean - q) ** 2) / q.var(), **close)
    assert found["log_loss"] == pytest.approx(-norm.logpdf(q, mean, std).mean(), **close)
    inside = (p["lower"].to_numpy() <= q) & (q <= p["upper"].to_numpy())
    assert found["coverage"] == pytest.approx(inside.mean(), **close)
    assert found["level"] == 0.8
    _, out, _ = run(capsys, *words)
    assert f"the 80 % intervals hold {inside.mean():.1%} of the values" in out


def test_rows_that_cannot_be_scored_are_counted(folder, capsys):
    """Missing answers and classes that the model does not know are left out, and said to be."""
    frame = made(1).with_row_index("r")
    for target, wrong in (("t", "perhaps"), ("k", 7)):
        column = pl.when(pl.col("r") < 5).then(None).otherwise(target)
        column = pl.when(pl.col("r") == 50).then(pl.lit(wrong)).otherwise(column).alias(target)
        frame.with_columns(column).write_csv("gaps.csv")
        found = answer(capsys, "predict", f"{target}.model", "gaps.csv", "--score")["scores"]
        assert found["rows"] == N - 6
        assert found["rows_without_target"] == 5
        assert found["rows_of_other_classes"] == 1
        kept = frame.filter((pl.col("r") >= 5) & (pl.col("r") != 50))
        kept.write_csv("kept.csv")
        alone = answer(capsys, "predict", f"{target}.model", "kept.csv", "--score")["scores"]
        # Other blocks round differently.
        assert found["log_loss"] == pytest.approx(alone["log_loss"], rel=1e-9)
        _, out, _ = run(capsys, "predict", f"{target}.model", "gaps.csv", "--score")
        assert f"Scored 84 of 90 rows (no value of '{target}': 5; a class that the model" in out
    frame.with_columns(q=pl.lit(None)).write_csv("none.csv")
    code, out, err = run(capsys, "predict", "q.model", "none.csv", "--score")
    assert (code, err) == (0, "")
    assert out == "Scored 0 of 90 rows (no value of 'q': 90).\n"


def test_when_scores_are_printed(folder, capsys):
    """With --score alone only scores go out; with -o they come by themselves, unless forbidden."""
    code, out, err = run(capsys, "predict", "t.model", "new.csv")
    assert (code, err) == (0, "")
    assert out.startswith("prediction,probability_of_no,probability_of_yes\n")
    _, out, _ = run(capsys, "predict", "t.model", "new.csv", "--score")
    assert out.startswith("Scored 90 of 90 rows.\n")
    assert "prediction," not in out
    _, out, _ = run(capsys, "predict", "t.model", "new.csv", "-o", "p.csv", "--no-score")
    assert out == "90 predictions are in p.csv.\n"
    made(1).drop("t").write_csv("open.csv")
    _, out, _ = run(capsys, "predict", "t.model", "open.csv", "-o", "p.csv")
    assert out == "90 predictions are in p.csv.\n"
    made(1).rename({"t": "T"}).write_csv("open.csv")
    code, out, err = run(capsys, "predict", "t.model", "open.csv", "--score")
    assert (code, out) == (1, "")
    assert "column 't': there is no such column to score the predictions by" in err
    assert "did you mean 'T'?" in err


def test_a_wrong_answer_is_known_before(folder, capsys):
    """A word among the values of a quantity stops the scoring before anything is written."""
    frame = made(1).with_columns(q=pl.col("q").cast(pl.String))
    frame[70, "q"] = "oops"
    frame.write_csv("wrong.csv")
    code, out, err = run(capsys, "predict", "q.model", "wrong.csv", "-o", "never.csv")
    assert (code, out) == (1, "")
    assert "column 'q', row 71: 'oops' is not a number" in err
    assert not (folder / "never.csv").exists()
    assert run(capsys, "predict", "q.model", "wrong.csv", "-o", "p.csv", "--no-score")[0] == 0


def test_marks_of_any_batches_are_those_of_all_rows(models):
    """However the rows are cut, the averages and their standard errors are the same."""
    model = load_model(models / "q.model")
    rng = np.random.default_rng(0)
    y, mean = rng.standard_normal((2, 500)) + 2000.0
    std = rng.uniform(0.5, 2.0, 500)
    whole, parts = model.marks("t"), model.marks("t")
    whole.add(pl.Series(y), (mean, std))
    for i in range(0, 500, 37):
        some = slice(i, i + 37)
        parts.add(pl.Series(y[some]), (mean[some], std[some]))
    # Two orders of summation.
    assert parts.result() == pytest.approx(whole.result(), rel=1e-9)
    assert whole.result()["r2"] == pytest.approx(1 - np.mean((y - mean) ** 2) / y.var(), rel=1e-9)


def test_the_documentation_shows_what_is_printed(tmp_path, monkeypatch, capsys):
    """The commands in docs/cli.md print the lines below them."""
    page = Path(cavity.__file__).parents[2] / "docs" / "cli.md"
    if not page.exists():
        pytest.skip("the documentation is not here")
    [block] = re.findall(r"```console\n(\$ cavity fit.*?)```", page.read_text("utf-8"), re.S)
    monkeypatch.chdir(tmp_path)
    commands = [line[2:].split()[1:] for line in block.splitlines() if line.startswith("$ ")]
    shown = "".join(line for line in block.splitlines(True) if not line.startswith("$ "))
    for words in commands:
        assert main(words) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize("kind", [pl.Int64, pl.UInt64])
def test_class_codes_beyond_2_to_53(kind, tmp_path, monkeypatch, capsys):
    """Codes that are one and the same as floats are scored as the classes that they are."""
    monkeypatch.chdir(tmp_path)
    first = 2**60 if kind == pl.Int64 else 2**63
    frame = made(0).select("a", "b", k=pl.lit(first, kind) + pl.col("k").cast(kind))
    frame.write_parquet("t.parquet")
    words = ["t.parquet", "--target", "k", "--task", "classification", "--kernel", "rbf"]
    run(capsys, "fit", *words, "-o", "k.model")
    found = answer(capsys, "predict", "k.model", "t.parquet", "-o", "p.parquet")["scores"]
    wrong = (pl.read_parquet("p.parquet")["prediction"] != frame["k"]).mean()
    assert found["error"] == pytest.approx(wrong)
    assert found["rows_of_other_classes"] == 0


def test_whole_classes_among_numbers():
    """Whole numbers with a decimal point are classes; other numbers, however near, are not."""
    marks = ClassMarks("t", (1, 2, 3))
    log_p = np.log(np.array([[0.5, 0.3, 0.2]] * 6))
    marks.add(pl.Series([1.0, 2.0, 2.5, None, np.nan, 1e300]), log_p)
    found = marks.result()
    assert (found["rows"], found["error"]) == (2, 0.5)
    assert (found["rows_without_target"], found["rows_of_other_classes"]) == (2, 2)
    marks = ClassMarks("t", (0.5, 2.0))
    marks.add(pl.Series([0, 2, 2]), log_p[:3, :2])
    assert (marks.result()["rows"], marks.result()["rows_of_other_classes"]) == (2, 1)
