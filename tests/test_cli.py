"""The command line: what it answers, where, and with which exit code."""

import io
import json
import os
import pickle
import shlex
import subprocess
import sys
import zipfile

import numpy as np
import polars as pl
import pytest
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessClassifier, compare_inference, learning_curve
from cavity.cli import main
from cavity.datasets import load_pima
from cavity.model_selection import loo_losses
from cavity.report.analysis import analyse
from cavity.tables.model import Settings, fit_model, load_model, save_model
from cavity.tables.prepare import prepare
from cavity.tables.read import read_table

N = 60


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with two tables in it."""
    monkeypatch.chdir(tmp_path)
    made().write_csv("good.csv")
    made(seed=1).write_csv("new.csv")
    return tmp_path


def made(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    noise = rng.standard_normal(n)
    return pl.DataFrame(
        {
            "a": X[:, 0],
            "b": X[:, 1],
            "c": rng.choice(["u", "v", "w"], n),
            "t": np.where(X.sum(axis=1) + 0.3 * noise > 0, "yes", "no"),
            "q": 3.0 * X[:, 0] + 0.5 * noise,
        }
    )


def run(capsys, *arguments):
    """Return exit code, standard output and standard error."""
    code = main(list(arguments))
    return code, *capsys.readouterr()


def answer(capsys, *arguments):
    """Return what the command says in JSON."""
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


FIT = ["--target", "t", "--drop", "q", "--kernel", "rbf"]


def test_report_has_the_numbers_of_the_python_interface(capsys):
    """What `cavity report pima` prints is what the estimator, curve and comparison say."""
    found = answer(capsys, "report", "pima", "--kernel", "rbf")
    data = prepare(read_table("pima"))
    clf = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(data.X, data.y)
    y, y_test = load_pima()["target"], load_pima(subset="test")["target"]
    wrong = np.mean(loo_losses(clf, y).error)
    loss = -np.mean(np.log(clf.predict_proba(data.X_test)[np.arange(len(y_test)), y_test]))
    # The same computation twice; JSON keeps all digits, and BLAS may round differently.
    close = {"rel": 1e-9}
    assert found["left_out"]["error"] == pytest.approx(wrong, **close)
    assert found["held_out"]["log_loss"] == pytest.approx(loss, **close)
    assert found["model"]["log_evidence"] == pytest.approx(
        clf.log_marginal_likelihood_value_, **close
    )
    curve = learning_curve(clf, data.X, data.y, train_sizes=found["curve"]["sizes"])
    assert found["curve"]["error"] == pytest.approx(curve.test_error, **close)
    at_400 = next(f for f in found["curve"]["forecast"] if f["size"] == 400)
    assert at_400["value"] == pytest.approx(curve.forecast(400).value, **close)
    table = compare_inference(data.X, data.y, clf.kernel_, optimizer=None)
    assert [row["log_evidence"] for row in found["comparison"]] == pytest.approx(
        [row.log_evidence for row in table], **close
    )


def test_report_writes_one_page_and_a_summary(folder, capsys):
    """Without --json the page is written whole, and the summary says where."""
    code, out, err = run(capsys, "report", "good.csv", *FIT, "-o", "page.html")
    assert (code, err) == (0, "")
    assert "How good is it?" in out
    assert out.endswith("The page is in page.html.\n")
    assert "<html" in (folder / "page.html").read_text(encoding="utf-8")
    assert sorted(p.name for p in folder.iterdir()) == ["good.csv", "new.csv", "page.html"]


def test_the_recorded_command_repeats_the_report(folder, capsys):
    """The command in a report's own record gives the same numbers again."""
    arguments = ["report", "good.csv", *FIT, "--test-size", "0.25", "--seed", "3"]
    first = answer(capsys, *arguments)
    program, *words = shlex.split(first["command"])
    assert program == "cavity"
    again = json.loads(run(capsys, *words)[1])
    for key in ("left_out", "held_out", "least_certain", "suspects"):
        assert again[key] == first[key]


@pytest.mark.parametrize("target", ["t", "q"])
def test_predict_repeats_the_fitted_model(folder, capsys, target):
    """A model that went through a file predicts what it predicted before."""
    other = "q" if target == "t" else "t"
    options = ["--target", target, "--drop", other, "--kernel", "rbf"]
    assert run(capsys, "fit", "good.csv", *options, "-o", "m.model")[0] == 0
    assert run(capsys, "predict", "m.model", "new.csv", "-o", "p.parquet")[0] == 0
    found = pl.read_parquet("p.parquet")
    data = prepare(read_table("good.csv"), target, drop=[other])
    fitted, _ = fit_model(data, Settings("rbf"))
    X = data.encoder.transform(read_table("new.csv").frame, "new.csv")
    if target == "t":
        proba = fitted.predict_proba(X)
        # The fixed point is found again, from another start, to the tolerance of inference.
        np.testing.assert_allclose(found["probability_of_yes"], proba[:, 1], atol=1e-5)
        assert found["prediction"].to_list() == [data.classes[k] for k in proba.argmax(axis=1)]
    else:
        mean, std = fitted.predict(X, return_std=True)
        # Exact inference, but the kernel is stored as numbers rather than their logarithms.
        np.testing.assert_allclose(found["prediction"], mean, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found["std"], std, rtol=1e-8)


def test_each_class_keeps_its_own_kernel_in_a_file(tmp_path):
    """Of three classes, each with its own hyperparameters, a file loses none."""
    data, settings = prepare(read_table("wine")), Settings("rbf", inference="ensemble")
    fitted, _ = fit_model(data, settings)
    assert len(fitted.kernel_.kernels) == 3
    save_model(tmp_path / "m", data, fitted, settings)
    again = load_model(tmp_path / "m").estimator
    # Written and read digit by digit.
    np.testing.assert_allclose(again.kernel_.theta, fitted.kernel_.theta, rtol=1e-12)
    # The fixed point is found again, from another start, to the tolerance of inference.
    np.testing.assert_allclose(again.predict_proba(data.X), fitted.predict_proba(data.X), atol=1e-5)


def test_predictions_go_to_stdout_or_to_any_format(folder, capsys):
    """CSV on stdout, TSV and Parquet files, and JSON hold the same rows."""
    run(capsys, "fit", "good.csv", *FIT, "-o", "m.model")
    _, out, err = run(capsys, "predict", "m.model", "new.csv")
    assert err == ""
    shown = pl.read_csv(io.StringIO(out))
    assert shown.height == N
    assert answer(capsys, "predict", "m.model", "new.csv") == shown.to_dicts()
    for name in ("p.csv", "p.tsv", "p.parquet"):
        about = answer(capsys, "predict", "m.model", "new.csv", "-o", name, "--no-score")
        assert about == {"output": name, "rows": N, "unseen_categories": {}}
        assert read_table(name).frame.equals(shown)


def test_compare_curve_and_datasets_answer_in_json(folder, capsys):
    """The smaller commands speak JSON with the documented keys."""
    compared = answer(capsys, "compare", "good.csv", *FIT)["comparison"]
    assert {"ep", "laplace", "naive"} <= {row["inference"] for row in compared}
    curve = answer(capsys, "curve", "good.csv", *FIT, "--sizes", "10,30", "--goal", "0.4")
    assert curve["sizes"] == [10, 30]
    assert curve["rows_for_goal"] >= 1
    names = [line["name"] for line in answer(capsys, "datasets")]
    assert {"pima", "boston", "wine"} <= set(names)


def test_quiet_says_nothing(folder, capsys):
    """--quiet leaves both streams empty when all is well."""
    assert run(capsys, "fit", "good.csv", *FIT, "-o", "m.model", "--quiet") == (0, "", "")
    assert run(capsys, "predict", "m.model", "new.csv", "-o", "p.csv", "--quiet") == (0, "", "")


def test_help_teaches_by_example(capsys):
    """Every command's help has examples, and succeeds."""
    for command in ("report", "compare", "curve", "fit", "predict", "datasets"):
        code, out, _ = run(capsys, command, "--help")
        assert code == 0
        assert f"  cavity {command}" in out


WRONG_USE = [
    ["frobnicate"],
    ["report"],
    ["report", "good.csv"],
    ["report", "good.csv", "--kernel", "nonsense"],
    ["report", "good.csv", "--inference", "laplace", "--likelihood", "step"],
    ["report", "good.csv", "--test-size", "1.5"],
    ["fit", "good.csv", "--target", "t"],
    ["fit", "good.csv", "--target", "t", "-o", "good.csv"],
    ["curve", "good.csv", "--sizes", "ten"],
    ["predict", "m.model", "new.csv", "-o", "answers.xlsx"],
]


@pytest.mark.parametrize("arguments", WRONG_USE, ids=" ".join)
def test_wrong_use_is_code_two_and_one_line(folder, capsys, arguments):
    """A command line that cannot be understood: code 2, one line, nothing written."""
    before = sorted(folder.iterdir())
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("cavity: ")
    assert sorted(folder.iterdir()) == before


def write_bad_tables():
    good = made().write_csv()
    one = made().with_columns(t=pl.lit("yes")).write_csv()
    texts = pl.DataFrame({"words": [f"remark number {i}" for i in range(N)], "t": ["a", "b"] * 30})
    files = {
        "one.csv": one,
        "empty.csv": "",
        "header.csv": "a,t\n",
        "words.csv": texts.write_csv(),
        "ragged.csv": good + "1,2\n",
        "twice.csv": good.replace("a,b,c", "a,a,c", 1),
        "date.csv": "d,t\n" + "".join(f"{i % 12 + 1}/5/2020,{i % 2}\n" for i in range(N)),
        "latin.csv": good.encode() + "é,1,u,no,1\n".encode("latin-1"),
        "junk.csv": np.random.default_rng(0).bytes(4000),
        "bad.parquet": b"PAR1" + np.random.default_rng(0).bytes(4000) + b"PAR1",
        "evil.model": pickle.dumps(os.getcwd),
        "evil.zip": evil_zip(),
    }
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        with open(name, "wb") as file:
            file.write(data)


def evil_zip():
    """Bytes of what looks like a model file, with a pickle where an array should be."""
    packed = io.BytesIO()
    array = io.BytesIO()
    np.save(array, np.array([os.getcwd], dtype=object), allow_pickle=True)
    header = {
        "format": "cavity",
        "version": 1,
        "kind": "table model",
        "header": {},
        "arrays": {"X": ["|O", [1]]},
    }
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        archive.writestr("X.npy", array.getvalue())
    return packed.getvalue()


BAD_DATA = [
    (["report", "nowhere.csv", "--target", "t"], "nowhere.csv: there is no such file"),
    (["report", "good.csv", "--target", "z"], "good.csv: column 'z': there is no such column"),
    (["report", "good.csv", "--target", "t", "--drop", "z"], "column 'z'"),
    (["report", "empty.csv", "--target", "t"], "empty.csv: is empty"),
    (["report", "header.csv", "--target", "t"], "header.csv: has no rows"),
    (["report", "one.csv", "--target", "t"], "one.csv: column 't': every row has the class 'yes'"),
    (["report", "words.csv", "--target", "t"], "no column is left as an input (words:"),
    (["report", "ragged.csv", "--target", "t"], "ragged.csv: line 62 has 2 fields"),
    (["report", "twice.csv", "--target", "t"], "twice.csv: column 'a': two columns"),
    (["report", "date.csv", "--target", "t"], "date.csv: column 'd': holds dates"),
    (["report", "latin.csv", "--target", "t"], "latin.csv: line 62 is not UTF-8"),
    (["report", "junk.csv", "--target", "t"], "junk.csv: is"),
    (["report", "bad.parquet", "--target", "t"], "bad.parquet: is not a readable Parquet file"),
    (["report", "good.csv", "--target", "t", "-o", "no/r.html"], "no/r.html: cannot be written"),
    (["report", "good.csv", "--target", "t", "-o", "."], ".: is a folder"),
    (["fit", "good.csv", "--target", "t", "-o", "no/m.model"], "no/m.model: cannot be written"),
    (["compare", "good.csv", "--target", "q"], "column 'q': it is a quantity"),
    (["predict", "evil.model", "good.csv", "-o", "p.csv"], "evil.model: not a model file"),
    (["predict", "evil.zip", "good.csv", "-o", "p.csv"], "evil.zip: X.npy holds Python objects"),
    (["predict", "good.csv", "good.csv", "-o", "p.csv"], "good.csv: not a model file"),
    (["predict", "nowhere", "good.csv", "-o", "p.csv"], "nowhere: cannot be opened"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_DATA, ids=lambda x: " ".join(x[:2]))
def test_bad_data_is_code_one_and_one_line(folder, capfd, arguments, message):
    """Data or files that do not allow it: code 1, one line naming the place, nothing written."""
    write_bad_tables()
    before = sorted(folder.iterdir())
    code = main(arguments)
    out, err = capfd.readouterr()
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("cavity: ")
    assert message in err
    assert sorted(folder.iterdir()) == before


def test_free_text_is_left_out_and_named(folder, capsys):
    """A table with a text column is fitted without it, and the note names the column."""
    frame = made().with_columns(remark=pl.Series([f"remark {i}" for i in range(N)]))
    frame.write_csv("text.csv")
    found = answer(capsys, "fit", "text.csv", *FIT, "-o", "m.model")
    assert any("'remark'" in note and "free-form text" in note for note in found["notes"])


def test_a_failed_write_leaves_the_old_file(folder, capsys, monkeypatch):
    """If the disk fails at the last moment the old output is whole and no scrap is left."""
    (folder / "page.html").write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    code, _, err = run(capsys, "report", "good.csv", *FIT, "-o", "page.html")
    assert (code, err) == (1, "cavity: page.html: cannot be written: No space left on device.\n")
    assert (folder / "page.html").read_text() == "old"
    assert len(list(folder.iterdir())) == 3


def test_tampered_models_are_refused(folder, capsys):
    """A model file whose parts do not fit together is refused in one line."""
    run(capsys, "fit", "good.csv", *FIT, "-o", "m.model")
    whole = (folder / "m.model").read_bytes()
    for old, new in ((b'"ep"', b'"zz"'), (b'"RBF"', b'"XYZ"'), (b"table model", b"chair model")):
        assert old in whole
        # The archive's checksum would catch it first: let it be right.
        (folder / "bad.model").write_bytes(resealed(whole, old, new))
        code, out, err = run(capsys, "predict", "bad.model", "new.csv")
        assert (code, out, err.count("\n")) == (1, "", 1)


def resealed(whole, old, new):
    """Return an archive with some bytes replaced and its checksums right again."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as source, zipfile.ZipFile(packed, "w") as target:
        for name in source.namelist():
            target.writestr(name, source.read(name).replace(old, new))
    return packed.getvalue()


def test_without_its_packages_the_command_says_what_to_install(folder):
    """Without click the command prints one line with the remedy, and exits with 2."""
    program = (
        "import sys; sys.modules['click'] = None; from cavity.cli import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "datasets"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert 'pip install "cavity[report]"' in done.stderr


def test_a_pipe_sees_no_progress(folder):
    """In a pipe standard error stays silent, and `python -m cavity` is the command."""
    done = subprocess.run(
        [sys.executable, "-m", "cavity", "fit", "good.csv", *FIT, "-o", "m.model"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "The model is in m.model." in done.stdout


def test_regression_is_analysed(folder):
    """A quantity gets intervals, coverage and suspects in place of classes and confusion."""
    data = prepare(read_table("good.csv"), "q", drop=["t"], test_size=15)
    found = analyse(data, Settings("rbf"))
    assert found.confusion is None
    assert found.comparison == []
    assert found.left_out["rmse"] < found.left_out["baseline_rmse"]
    assert found.held_out["rows"] == 15
    assert len(found.calibration[0]["bins"]) == 9


@pytest.mark.parametrize("target", ["t", "q"])
def test_one_held_out_row_has_no_standard_error(folder, capsys, target):
    """With one test row, what cannot be estimated is null in JSON and left out in text."""
    other = "q" if target == "t" else "t"
    options = ["--target", target, "--drop", other, "--kernel", "rbf", "--test-size", "0.01"]
    held_out = answer(capsys, "report", "good.csv", *options)["held_out"]
    assert held_out["rows"] == 1
    assert held_out["log_loss_se"] is None
    assert held_out.get("r2") is None
    code, out, err = run(capsys, "report", "good.csv", *options)
    assert (code, err) == (0, "")
    assert "nan" not in out


def test_suspects_are_ranked_by_doubt(folder):
    """Suspects come by falling doubt, and are shown with their inputs as in the table."""
    data = prepare(read_table("pima"))
    found = analyse(data, Settings("rbf"))
    likely = [row["wrong"] for row in found.suspects]
    assert likely == sorted(likely, reverse=True)
    contradicted = np.array(found.points["label"]) != np.array(found.points["prediction"])
    assert len(likely) >= max(10, contradicted.sum())
    low, high = found.wrong_labels["low"], found.wrong_labels["high"]
    assert low <= found.wrong_labels["count"] <= high <= found.wrong_labels["rows"] == 200
    certain = [row["probability"] for row in found.least_certain]
    assert certain == sorted(found.points["probability"])[:10]
    frame = read_table("pima").frame
    for row, inputs in found.inputs.items():
        assert {k: float(v) for k, v in inputs.items()} == frame.drop("type").row(
            int(row) - 1, named=True
        )
    found = analyse(prepare(read_table("good.csv"), "q", drop=["t"]), Settings("rbf"))
    off = [abs(row["z"]) for row in found.suspects]
    assert off == sorted(off, reverse=True)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
@pytest.mark.parametrize("target", ["t", "q"])
def test_all_suspects_in_a_file(folder, capsys, suffix, target):
    """Every suspect is in the file, with its probability, a suggestion and the rows against it."""
    other = "q" if target == "t" else "t"
    fit = ["good.csv", "--target", target, "--drop", other, "--kernel", "rbf"]
    few = ["--no-comparison", "--no-baselines", "--json"]
    file = folder / f"wrong.{suffix}"
    code, out, err = run(capsys, "report", *fit, *few, "--suspects", str(file))
    assert (code, err) == (0, "")
    shown = json.loads(out)["suspects"]
    read = {"csv": pl.read_csv, "parquet": pl.read_parquet, "json": pl.read_json}[suffix]
    frame = read(file)
    assert frame["row"].to_list() == [line["row"] for line in shown]
    np.testing.assert_allclose(frame["wrong"], [line["wrong"] for line in shown], atol=1e-9)
    first = shown[0]["reasons"][0]
    assert 1 <= first["row"] <= 200
    if suffix != "json":
        assert frame["reasons"][0].startswith(f"{first['row']} ({first['share']:.0%})")
    if target == "q":
        assert all(line["low"] < line["suggestion"] < line["high"] for line in shown)


def test_suspects_need_a_format(folder, capsys):
    """A name without a known ending is refused before any work, and so is the table itself."""
    code, _, err = run(capsys, "report", "good.csv", *FIT, "--suspects", "wrong.txt")
    assert code == 2
    assert ".json" in err
    assert run(capsys, "report", "good.csv", *FIT, "--suspects", "good.csv")[0] == 2


@pytest.mark.slow
def test_two_million_rows_to_a_model(folder, capsys):
    """A CSV of two million rows is fitted with all of them, or with as many as one asks for."""
    made(n=2_000_000).write_csv("big.csv")
    found = answer(capsys, "fit", "big.csv", *FIT, "--rows", "2000", "-o", "m.model")
    assert found["counts"]["rows_trained_on"] == 2000
    assert found["held_out"]["rows"] == 10_000
    assert found["held_out"]["error"] < 0.2
    found = answer(capsys, "fit", "big.csv", *FIT, "--inducing", "30", "-o", "m.model")
    assert found["counts"]["rows_trained_on"] == found["left_out"]["rows"] == 2_000_000
    assert found["left_out"]["error"] < 0.2
