"""Model files of fits that somebody has changed: one short refusal, or answers that are numbers."""

import numpy as np
import polars as pl
import pytest
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, Sum
from tests.test_tampered import change, data, refusal

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.cli import main
from cavity.estimators import load, process, save
from cavity.storage import StorageError, checks
from cavity.storage.codecs import kernel_from_json, kernel_to_json
from cavity.tables.model import Settings, fit_model, load_model, save_model
from cavity.tables.output import TableError
from cavity.tables.prepare import prepare
from cavity.tables.table import Table

HUGE = 10**400
LONG = "x" * 5000
ESTIMATOR, TABLE = "fitted estimator", "table model"


def frame(rows=30):
    """A table with a number, a category, a date and a target."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=rows)
    days = pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 1, rows), eager=True)
    levels = [None if k % 5 == 0 else "uvw"[k % 3] for k in range(rows)]
    numbers = [None if k == 3 else float(x) for k, x in enumerate(a)]
    dates = pl.Series([None if k == 4 else day for k, day in enumerate(days)])
    made = {"a": numbers, "c": levels, "d": dates, "t": np.where(a > 0.0, "yes", "no")}
    return pl.DataFrame(made)


@pytest.fixture
def model(tmp_path):
    """Return the path of a table's model, and write the table beside it."""
    frame().write_csv(tmp_path / "table.csv")
    made = prepare(Table(frame(), "made"), "t")
    fitted, _ = fit_model(made, Settings("rbf"))
    save_model(tmp_path / "model", made, fitted, Settings("rbf"))
    return tmp_path / "model"


def column(header, name):
    return next(c for c in header["encoder"]["columns"] if c["name"] == name)


TABLES = {
    "a mean of many digits": lambda h, a: h["encoder"]["mean"].__setitem__(0, HUGE),
    "an infinite mean": lambda h, a: h["encoder"]["mean"].__setitem__(0, np.inf),
    "a scale of many digits": lambda h, a: h["encoder"]["scale"].__setitem__(0, HUGE),
    "a scale of zero": lambda h, a: h["encoder"]["scale"].__setitem__(0, 0.0),
    "a negative scale": lambda h, a: h["encoder"]["scale"].__setitem__(0, -1.0),
    "a scale that is text": lambda h, a: h["encoder"]["scale"].__setitem__(0, "1.0"),
    "an infinite median": lambda h, a: column(h, "a").update(median=np.inf),
    "a median of many digits": lambda h, a: column(h, "a").update(median=HUGE),
    "an infinite origin": lambda h, a: column(h, "d").update(origin=np.inf),
    "an origin of many digits": lambda h, a: column(h, "d").update(origin=HUGE),
    "a day out of all calendars": lambda h, a: column(h, "d").update(middle=1e12),
    "parts twice": lambda h, a: column(h, "d").update(parts=["days", "days", "days"]),
    "no levels": lambda h, a: column(h, "c").update(levels=[]),
    "levels of text": lambda h, a: column(h, "c").update(levels="uvw"),
    "levels twice": lambda h, a: column(h, "c").update(levels=["u", "u", "v", "w"]),
    "levels that are numbers": lambda h, a: column(h, "c").update(levels=[1, 2, 3, 4]),
    "a name that is a number": lambda h, a: column(h, "a").update(name=HUGE),
    "a target that is none": lambda h, a: h.update(target=None),
    "an offset of a number": lambda h, a: h.update(offset={"column": 5, "is_exposure": True}),
    "an infinite number of inputs": lambda h, a: h["fit"].update(n_features=np.inf),
    "inputs of many digits": lambda h, a: h["fit"].update(n_features=HUGE),
    "a level of many digits": lambda h, a: h["fit"].update(level=HUGE),
    "an evidence of many digits": lambda h, a: one(h).update(log_evidence=[HUGE]),
    "an infinite evidence": lambda h, a: one(h).update(log_evidence=[np.inf]),
    "an evidence that is text": lambda h, a: one(h).update(log_evidence=["1"]),
    "a report of many digits": lambda h, a: one(h)["reports"][0].__setitem__(2, HUGE),
    "a report of words": lambda h, a: one(h)["reports"][0].__setitem__(1, "many"),
    "classes of two types": lambda h, a: h.update(classes=[1.5, "y"]),
    "a list for a class": lambda h, a: h.update(classes=[[1], "y"]),
    "a mapping for a class": lambda h, a: h.update(classes=[{}, "y"]),
    "a missing class": lambda h, a: h.update(classes=["n", None]),
    "missing classes": lambda h, a: h.update(classes=[None, None]),
    "the same class twice": lambda h, a: h.update(classes=["n", "n"]),
    "classes that are no numbers": lambda h, a: h.update(classes=[1.0, np.nan]),
    "classes of many digits": lambda h, a: h.update(classes=[1, HUGE]),
    "a text of classes": lambda h, a: h.update(classes="yn"),
    "classes of a quantity": lambda h, a: h.update(task="regression"),
    "negative precisions": lambda h, a: a["0_tau_0"].fill(-1.0),
    "infinite precisions": lambda h, a: a["0_tau_0"].fill(np.inf),
    "precisions that are none": lambda h, a: a["0_tau_0"].fill(np.nan),
}


def one(header):
    return header["fit"]["processes"][0]


@pytest.mark.parametrize("name", TABLES)
def test_tampered_table_models_are_refused(name, model):
    """Numbers that are none, classes that are none, and sites that are none: one short line."""
    load_model(model)
    change(model, TABLE, TABLES[name])
    refusal(load_model, model)


def test_the_command_says_it_in_one_line(model, capfd):
    """The command ends with 1 and one line, where it wrote null and ended with 0."""
    change(model, TABLE, lambda h, a: a["0_tau_0"].fill(-1.0))
    assert main(["predict", str(model), str(model.parent / "table.csv"), "--json"]) == 1
    out, err = capfd.readouterr()
    assert not out
    assert len(err.splitlines()) == 1


def test_a_posterior_of_huge_numbers_is_refused_where_it_answers(model, capfd):
    """What can only be seen by predicting is an error there, and never null."""
    change(model, TABLE, lambda h, a: a["0_alpha_0"].__imul__(1e300).__imul__(1e8))
    assert main(["predict", str(model), str(model.parent / "table.csv"), "--json"]) == 1
    assert len(capfd.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("name", ["a", "c"])
def test_long_names_make_no_long_messages(name, model, capfd):
    """A column's name of 5,000 letters is quoted by its beginning and end."""
    change(model, TABLE, lambda h, a: column(h, name).update(name=LONG))
    assert main(["predict", str(model), str(model.parent / "table.csv")]) == 1
    message = capfd.readouterr().err.replace(str(model.parent), "")
    assert message.rstrip().endswith("the model needs this column, and the table does not have it.")
    assert len(message) <= 240


def test_long_values_make_no_long_messages():
    """What is wrong, which may quote a table, is cut in the middle: the remedy stays."""
    message = str(TableError("a.csv", f"'{LONG}' is wrong: leave it out.", column=LONG, row=3))
    assert len(message) <= 420
    assert message.endswith("is wrong: leave it out.")


ESTIMATORS = {
    "classes of two types": lambda h, a: h.update(
        classes={"dtype": "object", "values": [1.5, "y", "z"]}
    ),
    "missing classes": lambda h, a: h.update(
        classes={"dtype": "object", "values": [None, "y", "z"]}
    ),
    "a list of classes": lambda h, a: h.update(
        classes={"dtype": "object", "values": [[1], "y", "z"]}
    ),
    "the same class twice": lambda h, a: h["classes"].update(values=[0, 1, 1]),
    "unsorted classes": lambda h, a: h["classes"].update(values=[2, 1, 0]),
    "classes that are no numbers": lambda h, a: h.update(
        classes={"dtype": "<f8", "values": [0.0, 1.0, np.nan]}
    ),
    "negative precisions": lambda h, a: a["0_tau_0"].fill(-1.0),
    "inputs of many digits": lambda h, a: h["fit"].update(n_features=HUGE),
    "an infinite number of inputs": lambda h, a: h["fit"].update(n_features=np.inf),
    "a level of many digits": lambda h, a: h["fit"].update(level=HUGE),
    "an evidence of many digits": lambda h, a: one(h).update(log_evidence=[HUGE]),
    "a negative noise": lambda h, a: a.update(noise=np.array(-1.0)),
    "a huge scale": lambda h, a: a.update(scale=np.array(1e200)),
    "a huge noise": lambda h, a: a.update(noise=np.array(1e200), scale=np.array(1e90)),
}


@pytest.mark.parametrize("multi_class", ["multinomial", "one_vs_rest"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_tampered_estimators_are_refused(name, multi_class, tmp_path):
    """Several classes, all in one model or one by one."""
    path, (X, _) = tmp_path / "model", data()
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    options = {"optimizer": None, "multi_class": multi_class}
    save(GaussianProcessClassifier(RBF(1.0), **options).fit(X, y), path)
    load(path)
    change(path, ESTIMATOR, ESTIMATORS[name])
    refusal(load, path)


def test_a_trend_of_huge_numbers_predicts_no_infinity(tmp_path):
    """What overflows in the user's units is an error, and no inf."""
    path, (X, y) = tmp_path / "model", data()
    model = GaussianProcessRegressor(RBF(1.0), alpha=0.1, mean="linear", optimizer=None)
    save(model.fit(X, y + X[:, 1]), path)
    change(path, ESTIMATOR, lambda h, a: a["0_trend_beta"].fill(1e308))
    opened = load(path)
    for asked in ({}, {"return_std": True}):
        with np.errstate(over="ignore"), pytest.raises(ValueError, match="too large to predict"):
            opened.predict(X, **asked)


@pytest.mark.parametrize("multi_class", ["multinomial", "one_vs_rest"])
def test_the_memory_of_all_matrices_together_is_bounded(multi_class, tmp_path, monkeypatch):
    """Three matrices for each function, summed, may take half of the memory and no more."""
    path, (X, _) = tmp_path / "model", data()
    options = {"optimizer": None, "multi_class": multi_class}
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    save(GaussianProcessClassifier(RBF(1.0), **options).fit(X, y), path)
    # All classes in one have their covariances in each row besides.
    numbers = 3 * 30 * (33 if multi_class == "multinomial" else 30)
    monkeypatch.setattr(checks, "memory_size", lambda: 2 * 3 * 8.0 * numbers)
    load(path)
    monkeypatch.setattr(checks, "memory_size", lambda: 2 * 3 * 8.0 * numbers - 1)
    assert "more than half of this machine's memory" in refusal(load, path)


def test_many_classes_are_predicted_in_small_blocks():
    """A block of new rows is bounded by the covariances of the classes, too."""
    X = np.random.default_rng(0).normal(size=(300, 1))
    y = np.arange(300) % 100
    options = {"optimizer": None, "multi_class": "multinomial", "inference": "laplace"}
    fitted = GaussianProcessClassifier(RBF(1.0), likelihood="logit", **options).fit(X, y)
    [found] = fitted._model.processes
    block = next(process.block_slices(10**6, found.row_numbers))
    assert 8 * 100**2 * block.stop <= 2**24


@pytest.mark.parametrize(("rows", "classes"), [(3000, 2), (3001, 2), (2080, 3), (2081, 3)])
def test_older_files_of_much_work_are_refused(rows, classes, tmp_path, monkeypatch):
    """Files without a posterior are fitted again when opened, but not for minutes."""
    made = frame().with_columns(t=pl.Series([f"c{k % classes}" for k in range(30)]))
    table, settings = prepare(Table(made, "made"), "t"), Settings("rbf")
    fitted, _ = fit_model(table, settings)
    path = tmp_path / "model"
    save_model(path, table, fitted, settings)

    def without_posterior(header, arrays):
        header["kernel"] = kernel_to_json(RBF(1.0))
        del header["fit"]
        arrays.clear()
        arrays |= {"X": np.resize(table.X, (rows, table.n_features)), "y": np.resize(table.y, rows)}

    change(path, TABLE, without_posterior)
    asked = []
    monkeypatch.setattr(GaussianProcessClassifier, "fit", lambda self, X, y: asked.append(len(X)))
    message = refusal(load_model, path)
    # The others are fitted, here to nothing.
    assert asked == ([] if rows % 10 else [rows])
    assert (f"{rows:,} rows without a posterior" in message) == bool(rows % 10)


def parts(depth):
    return RBF(1.0) if not depth else Sum(parts(depth - 1), parts(depth - 1))


def test_kernels_of_very_many_parts_are_refused():
    """The time to read a kernel grows with the square of its parts: 4,000 took five minutes."""
    found = kernel_to_json(parts(6))
    assert kernel_from_json(found) == parts(6)
    assert len(kernel_from_json(kernel_to_json(CompoundKernel([parts(6)] * 3))).kernels) == 3
    with pytest.raises(StorageError, match="255 parts"):
        kernel_to_json(parts(7))
    wide = {"kernel": "Sum", "parameters": {"k1": found, "k2": found}}
    for kernel in (wide, {"kernel": "CompoundKernel", "parameters": {"kernels": [found, wide]}}):
        with pytest.raises(StorageError, match="255 parts"):
            kernel_from_json(kernel)
