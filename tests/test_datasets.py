"""The shipped tables are complete, correctly coded and documented."""

import builtins
import csv
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils import Bunch

from cavity import datasets

DATA = files("cavity.datasets") / "data"
LOADERS = {name: getattr(datasets, f"load_{name}") for name in datasets.SPECS}
SHAPES = {
    "pima": (200, 7),
    "crabs": (200, 6),
    "sonar": (208, 60),
    "boston": (506, 13),
    "abalone": (4177, 10),
    "coal": (112, 1),
    "insurance": (64, 9),
    "arthritis": (84, 3),
    "outliers": (150, 1),
}
TABLES = ("pima_tr", "pima_te", "crabs", "sonar", "boston", "abalone", "coal", "coal_dates")
TABLES += ("insurance", "arthritis", "outliers")
by_name = pytest.mark.parametrize("name", LOADERS)
# (data set, CSV column of the target) for the classification tables.
CLASSES = [("pima", "type"), ("crabs", "sex"), ("sonar", "Class")]


def table(filename):
    return pd.read_csv(DATA / filename)


@by_name
def test_bunch_has_scikit_learns_fields_and_shapes(name):
    """A loader returns a Bunch whose arrays have the documented shapes and finite values."""
    bunch = LOADERS[name]()
    n, d = SHAPES[name]
    assert isinstance(bunch, Bunch)
    assert bunch.data.shape == (n, d)
    assert bunch.target.shape == (n,)
    assert len(bunch.feature_names) == d == len(set(bunch.feature_names))
    assert bunch.data.dtype == np.float64
    assert np.isfinite(bunch.data).all()
    assert np.isfinite(bunch.target).all()
    assert bunch.frame is None


@by_name
def test_return_X_y_is_the_bunch_without_its_words(name):
    """return_X_y gives exactly the arrays of the Bunch."""
    bunch, (X, y) = LOADERS[name](), LOADERS[name](return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)


@by_name
def test_as_frame_holds_the_same_values_with_names(name):
    """as_frame gives pandas objects with the arrays' values and the feature names."""
    arrays, framed = LOADERS[name](), LOADERS[name](as_frame=True)
    assert list(framed.data.columns) == arrays.feature_names
    assert list(framed.frame.columns) == [*arrays.feature_names, framed.target.name]
    np.testing.assert_array_equal(framed.data.to_numpy(), arrays.data)
    np.testing.assert_array_equal(framed.target.to_numpy(), arrays.target)
    X, y = LOADERS[name](as_frame=True, return_X_y=True)
    pd.testing.assert_frame_equal(X, framed.data)
    pd.testing.assert_series_equal(y, framed.target)


@by_name
def test_measured_features_are_the_columns_of_the_file(name):
    """Every feature that is not an indicator equals its CSV column as pandas parses it."""
    bunch = LOADERS[name]()
    raw = table(bunch.filename)
    for k, feature in enumerate(bunch.feature_names):
        if feature in raw:
            np.testing.assert_array_equal(bunch.data[:, k], raw[feature])


@pytest.mark.parametrize(("name", "column"), CLASSES)
def test_class_codes_stand_for_the_labels_of_the_file(name, column):
    """target_names[target] restores the strings of the file, and the names are sorted."""
    bunch = LOADERS[name]()
    assert bunch.target.dtype == np.int64
    assert list(bunch.target_names) == sorted(bunch.target_names)
    assert list(bunch.target_names[bunch.target]) == list(table(bunch.filename)[column])


@pytest.mark.parametrize("name", ["boston", "abalone", "coal", "insurance", "outliers"])
def test_numeric_targets_are_real(name):
    """Quantities and counts are floats and carry no class names."""
    bunch = LOADERS[name]()
    assert bunch.target.dtype == np.float64
    assert "target_names" not in bunch


def test_class_counts():
    """The class counts are those of the data sets' published descriptions."""
    counts = {name: np.bincount(LOADERS[name]().target).tolist() for name, _ in CLASSES}
    assert counts == {"pima": [132, 68], "crabs": [100, 100], "sonar": [111, 97]}
    assert np.bincount(datasets.load_pima(subset="test").target).tolist() == [223, 109]


def test_pima_split_is_ripleys():
    """The whole is the 200 training rows followed by the 332 test rows, and says which is which."""
    train, test, whole = (datasets.load_pima(subset=s) for s in ("train", "test", "all"))
    assert [len(b.train) for b in (train, test, whole)] == [200, 0, 200]
    assert [len(b.test) for b in (train, test, whole)] == [0, 332, 332]
    np.testing.assert_array_equal(np.concatenate([whole.train, whole.test]), np.arange(532))
    for part, rows in ((train, whole.train), (test, whole.test)):
        np.testing.assert_array_equal(part.data, whole.data[rows])
        np.testing.assert_array_equal(part.target, whole.target[rows])
    assert whole.filename == ("pima_tr.csv", "pima_te.csv")


def test_linear_discriminant_makes_the_published_errors_on_pima():
    """Linear discriminant analysis errs on 67 of the 332 test rows (Ripley 1996)."""
    X, y = datasets.load_pima(return_X_y=True)
    X_test, y_test = datasets.load_pima(subset="test", return_X_y=True)
    assert np.sum(LinearDiscriminantAnalysis().fit(X, y).predict(X_test) != y_test) == 67


@pytest.mark.parametrize(
    ("target", "classes", "column", "indicator", "level"),
    [("sex", ["F", "M"], "sp", "sp_O", "O"), ("species", ["B", "O"], "sex", "sex_M", "M")],
)
def test_crabs_turn_the_other_label_into_a_feature(target, classes, column, indicator, level):
    """The label not predicted is a 0/1 feature, and the running number is left out."""
    bunch = datasets.load_crabs(target=target)
    assert bunch.feature_names == [indicator, "FL", "RW", "CL", "CW", "BD"]
    assert list(bunch.target_names) == classes
    np.testing.assert_array_equal(bunch.data[:, 0], table("crabs.csv")[column] == level)


def test_abalone_sex_is_one_hot_and_comes_first():
    """The first three features are the 0/1 indicators of the file's sex column."""
    bunch = datasets.load_abalone()
    assert bunch.feature_names[:3] == ["sex_M", "sex_F", "sex_I"]
    letters = np.array(["M", "F", "I"])[bunch.data[:, :3].argmax(axis=1)]
    assert list(letters) == list(table("abalone.csv")["sex"])
    assert (bunch.data[:, :3].sum(axis=1) == 1).all()


def test_disasters_are_counted_by_year():
    """The years' counts are those of the 191 dates, with the middle of the year as feature."""
    coal = datasets.load_coal()
    assert len(coal.dates) == coal.target.sum() == 191
    years, counts = np.unique(np.floor(coal.dates), return_counts=True)
    found = dict(zip(coal.data[:, 0], coal.target, strict=True))
    assert all(found[year + 0.5] == count for year, count in zip(years, counts, strict=True))
    assert np.all(np.diff(coal.data[:, 0]) == 1.0)


def test_claims_have_their_exposure():
    """The number of policyholders is an exposure and not a feature."""
    bunch = datasets.load_insurance()
    np.testing.assert_array_equal(bunch.exposure, table("insurance.csv")["Holders"])
    assert "Holders" not in bunch.feature_names
    assert (bunch.target <= bunch.exposure).all()


def test_improvement_is_in_its_order():
    """The classes are not in the alphabet's order, but in that of the improvement."""
    bunch = datasets.load_arthritis()
    assert list(bunch.target_names) == ["None", "Some", "Marked"]
    assert np.bincount(bunch.target).tolist() == [42, 14, 28]


def test_nine_outliers_are_known():
    """The rows marked as wrong are off the curve by one or more, and the others are not."""
    bunch = datasets.load_outliers()
    x, y = bunch.data[:, 0], bunch.target
    clean = 0.3 + 0.4 * x + 0.5 * np.sin(2.7 * x) + 1.1 / (1.0 + x**2)
    assert bunch.wrong.sum() == 9
    # The noise has a standard deviation of 0.1, and outliers are off by one to three.
    np.testing.assert_array_equal(np.abs(y - clean) > 0.5, bunch.wrong)


def test_known_rows():
    """First rows are those of the sources (MASS for Pima, crabs, Boston; UCI for the others)."""
    pima, boston = datasets.load_pima(), datasets.load_boston()
    assert pima.data[0].tolist() == [5, 86, 68, 28, 30.2, 0.364, 24]
    assert pima.target_names[pima.target[:3]].tolist() == ["No", "Yes", "No"]
    assert datasets.load_crabs().data[0].tolist() == [0, 8.1, 6.7, 16.1, 19.0, 7.0]
    assert datasets.load_sonar().data[0, :3].tolist() == [0.02, 0.0371, 0.0428]
    assert boston.data[0, :6].tolist() == [0.00632, 18, 2.31, 0, 0.538, 6.575]
    assert boston.target[:3].tolist() == [24, 21.6, 34.7]
    assert datasets.load_abalone().target[:3].tolist() == [15, 7, 9]


@pytest.mark.parametrize(
    ("loader", "choice"), [("load_pima", {"subset": "dev"}), ("load_crabs", {"target": "index"})]
)
def test_an_unknown_choice_is_refused_by_name(loader, choice):
    """A ValueError names the parameter, what was expected and what came."""
    ((parameter, value),) = choice.items()
    with pytest.raises(ValueError, match=rf"{parameter} must be one of \[.*\], got '{value}'"):
        getattr(datasets, loader)(**choice)


def test_options_are_keyword_only():
    """No option can be passed by position, as in scikit-learn."""
    for load in LOADERS.values():
        with pytest.raises(TypeError, match="positional"):
            load(True)


def test_pandas_is_needed_for_frames_only(monkeypatch):
    """Without pandas the arrays load, and as_frame=True says what to install."""
    real_import = builtins.__import__

    def without_pandas(name, *args, **kwargs):
        if name.split(".")[0] == "pandas":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    assert datasets.load_pima().data.shape == (200, 7)
    with pytest.raises(ImportError, match="pip install pandas"):
        datasets.load_pima(as_frame=True)


def test_list_datasets_tells_shape_and_task():
    """The listing agrees with the loaders, the Pima table counted whole."""
    listing = datasets.list_datasets()
    assert list(listing) == list(LOADERS)
    assert listing["pima"][:3] == (532, 7, "classification")
    for name, info in listing.items():
        bunch = LOADERS[name](**({"subset": "all"} if name == "pima" else {}))
        assert (info.n_rows, info.n_features) == bunch.data.shape
        assert (info.task in ("classification", "ordinal")) == ("target_names" in bunch)
        assert info.description
        assert "\n" not in info.description


@by_name
def test_description_is_the_provenance_of_that_data_set(name):
    """DESCR names the file, its sources and its quirks, and no other data set's section."""
    bunch = LOADERS[name]()
    assert bunch.DESCR.startswith(f"{name}\n")
    assert f"`{bunch.filename}`" in bunch.DESCR
    assert "Sources:" in bunch.DESCR
    assert "Quirks:" in bunch.DESCR
    assert "\n## " not in bunch.DESCR


@pytest.mark.parametrize("stem", TABLES)
def test_provenance_file_names_every_table_with_its_true_size(stem):
    """data/README.md lists each shipped table with the row and column counts of the file."""
    rows = list(csv.reader((DATA / f"{stem}.csv").read_text("utf-8").splitlines()))
    entry = f"| `{stem}.csv` | {len(rows) - 1} | {len(rows[0])} |"
    assert entry in (DATA / "README.md").read_text("utf-8")


def test_no_table_is_shipped_undocumented():
    """The data folder holds the known tables, the provenance note and nothing else."""
    names = {entry.name for entry in DATA.iterdir()}
    assert names == {"README.md", *(f"{stem}.csv" for stem in TABLES)}
