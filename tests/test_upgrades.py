"""Files of every earlier version open in this one; those of later ones say so."""

import json
import pickle
import warnings
import zipfile

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.gaussian_process.kernels import RBF
from tests.samples import HERE, KERNEL, NEW, answer, columns, data, place, targets

from cavity import (
    GaussianProcessClassifier,
    OnlineGaussianProcessClassifier,
    OnlineGaussianProcessRegressor,
    __version__,
    learning_curve,
    storage,
)
from cavity.estimators import load, load_pickle
from cavity.storage import StorageError

VERSIONS = sorted(path.parent.name for path in HERE.glob("*/answers.json"))
FIRST, BETWEEN = "0.1.0", "0.2.0.dev"
STREAMS = {
    "stream of labels": OnlineGaussianProcessClassifier,
    "stream of classes": OnlineGaussianProcessClassifier,
    "stream of numbers": OnlineGaussianProcessRegressor,
    "stream waiting": OnlineGaussianProcessClassifier,
}
INFERRED = 1e-6
"""Two inferences, each up to its own tolerance."""
ANSWERS = {v: json.loads((HERE / v / "answers.json").read_text("utf-8")) for v in VERSIONS}


def samples(suffix):
    """Name every file with this suffix, of every version."""
    paths = [path for version in VERSIONS for path in sorted(HERE.glob(f"{version}/*.{suffix}"))]
    return [(path.parent.name, path.stem.replace("_", " ")) for path in paths]


TABLES = [(version, name) for version, name in samples("model") if name.startswith("table")]
FILES = [one for one in samples("model") if one not in TABLES]
OTHERS = ("unfitted", "pipeline", "covariances")
FITTED = [(version, name) for version, name in samples("pickle") if name not in OTHERS]


def test_there_are_samples_of_the_first_version():
    """Samples are not lost: of 0.1.0 every kind of file that it wrote, of later ones more."""
    first = {name for version, name in samples("model") if version == FIRST}
    assert first == {*(f"table{kind}" for kind in targets(data()[1])), *STREAMS}
    assert len([name for version, name in FITTED if version == FIRST]) == 10
    assert (HERE / FIRST / "pipeline.pickle").exists()
    assert len(ANSWERS[BETWEEN]["labels"]) == len(NEW)


@pytest.mark.parametrize(("version", "name"), FILES)
def test_files_open(version, name):
    """A file predicts what its model predicted when it was written."""
    model = STREAMS[name].load if name in STREAMS else load
    # Another BLAS rounds differently, and some posteriors are inferred anew from their sites.
    np.testing.assert_allclose(
        answer(model(place(HERE / version, name))), ANSWERS[version][name], rtol=1e-7
    )


@pytest.mark.parametrize(("version", "name"), [one for one in FILES if "stream" in one[1]])
def test_streams_go_on(version, name):
    """A stream from a file learns on."""
    model = STREAMS[name].load(place(HERE / version, name))
    X, f = data()
    before = model.n_seen_
    model.partial_fit(X, model.classes_[(f > 0.0).astype(int)] if "classes_" in vars(model) else f)
    assert model.n_seen_ == before + len(X)


@pytest.mark.parametrize(("version", "name"), [one for one in FITTED if one[0] != FIRST])
def test_pickles_open(version, name):
    """A pickle predicts what it predicted; one of an earlier version of anything may warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        model = pickle.loads(place(HERE / version, name, "pickle").read_bytes())
    np.testing.assert_allclose(answer(model), ANSWERS[version][name], rtol=1e-7)


@pytest.mark.parametrize("name", [name for v, name in FITTED if v == FIRST])
def test_pickles_of_the_first_version_open(name):
    """They predict what they predicted, and again from a pickle of this version."""
    path = place(HERE / FIRST, name, "pickle")
    with pytest.raises(ValueError, match=r"open it with cavity\.estimators\.load_pickle") as caught:
        pickle.loads(path.read_bytes())
    assert "\n" not in str(caught.value)
    model = load_pickle(path)
    for one in (model, pickle.loads(pickle.dumps(model))):
        # The same numbers, added up in another order.
        np.testing.assert_allclose(answer(one), ANSWERS[FIRST][name], rtol=1e-9)
    X, f = data()
    if name in STREAMS:
        seen = model.n_seen_
        codes = np.digitize(f, [-0.5, 0.5]) if "classes" in name else (f > 0.0).astype(int)
        y = model.classes_[codes] if "classes_" in vars(model) else f
        assert model.partial_fit(X, y).n_seen_ == seen + len(X)
    else:
        assert model.kernel == (RBF(1.0) if name in ("pairs", "targets") else KERNEL)
        # Parameters are the user's, so that another fit is the former one.
        again = clone(model).set_params(optimizer=None)
        y = f if name in ("numbers", "targets") else f > 0.0
        assert again.fit(X, y).get_params() == model.set_params(optimizer=None).get_params()


def test_a_pipeline_of_the_first_version_opens():
    """Estimators inside other objects are taken over, too; objects of others stay as they are."""
    path = HERE / FIRST / "pipeline.pickle"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        found = load_pickle(path)
    np.testing.assert_allclose(answer(found), ANSWERS[FIRST]["pipeline"], rtol=1e-9)


def test_pickles_that_cannot_be_taken_over_say_so(tmp_path):
    """A model of covariances needs another fit, and a damaged pickle is one; in one line each."""
    with pytest.raises(StorageError, match=r"precomputed.*fit it again"):
        load_pickle(HERE / FIRST / "covariances.pickle")
    path = tmp_path / "cut"
    path.write_bytes(place(HERE / FIRST, "labels", "pickle").read_bytes()[:2000])
    with pytest.raises(StorageError, match="pickle") as caught:
        load_pickle(path)
    assert "\n" not in str(caught.value)


def test_pickles_of_this_version_open_as_well(tmp_path):
    """Whatever has been pickled, one function opens it."""
    X, f = data()
    model = GaussianProcessClassifier(KERNEL, optimizer=None).fit(X, f > 0.0)
    (tmp_path / "model").write_bytes(pickle.dumps(model))
    again = load_pickle(tmp_path / "model")
    np.testing.assert_array_equal(again.loo_proba_, model.loo_proba_)


@pytest.mark.parametrize("name", ["loo_proba_", "evidence_correction_", "curve", "alpha_", "L_"])
def test_what_needs_rows_says_so(name):
    """What a model from a file cannot tell is refused in a sentence, however it is asked."""
    kind = "numbers" if name in ("alpha_", "L_") else "labels"
    model = load(place(HERE / BETWEEN, kind))
    X, f = data()
    labels = np.where(f > 0, "yes", "no")
    with pytest.raises(ValueError, match="comes from a file"):
        learning_curve(model, X, labels) if name == "curve" else getattr(model, name)


def test_an_unfitted_estimator_of_the_first_version_opens():
    """Parameters that it did not have get their defaults."""
    with pytest.warns(InconsistentVersionWarning, match=r"pickled by cavity 0\.1\.0 or before"):
        model = pickle.loads(place(HERE / FIRST, "unfitted", "pickle").read_bytes())
    X, f = data()
    assert repr(model) == repr(GaussianProcessClassifier(KERNEL))
    assert model.set_params(optimizer=None).fit(X, f > 0.0).classes_.tolist() == [False, True]


def test_the_way_from_a_pickle_of_the_first_version():
    """Its tuned kernel and one inference give the answers that it gave, as saving.md says."""
    X, f = data()
    kernel = KERNEL.clone_with_theta(ANSWERS[FIRST]["kernel of labels"])
    model = GaussianProcessClassifier(kernel, optimizer=None).fit(X, np.where(f > 0, "yes", "no"))
    np.testing.assert_allclose(answer(model), ANSWERS[FIRST]["labels"], rtol=INFERRED)


@pytest.mark.parametrize(("version", "name"), TABLES)
def test_models_of_tables_open(version, name):
    """A file of `cavity fit` predicts what it predicted."""
    pl = pytest.importorskip("polars", reason="tables need the extra [report]")
    from cavity.tables.model import load_model
    from cavity.tables.table import Table

    given = columns(targets(data()[1])[name.removeprefix("table")])
    found = load_model(place(HERE / version, name)).predict(Table(pl.DataFrame(given), "made", "t"))
    numbers = found.select(pl.col(pl.Float64)).to_numpy()
    np.testing.assert_allclose(numbers, ANSWERS[version][name], rtol=INFERRED)


def test_a_newer_format_says_which_version_is_needed(tmp_path):
    """The refusal is one line, with the version to install."""
    path = tmp_path / "model"
    with zipfile.ZipFile(place(HERE / BETWEEN, "labels")) as old, zipfile.ZipFile(path, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == "header.json":
                whole = json.loads(content) | {"version": 7, "cavity": "9.8.7"}
                content = json.dumps(whole).encode()
            new.writestr(info, content)
    with pytest.raises(StorageError, match=r"install 9\.8\.7 or a later one") as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_files_say_who_has_written_them(tmp_path):
    """The version of cavity is in the file."""
    storage.write(tmp_path / "f", "test", {}, {})
    with zipfile.ZipFile(tmp_path / "f") as archive:
        assert json.loads(archive.read("header.json"))["cavity"] == __version__
