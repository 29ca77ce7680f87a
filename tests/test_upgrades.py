"""Files and pickles of every released version open in this one; those of later ones say so."""

import json
import pickle
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import InconsistentVersionWarning
from tests.samples.write import NEW, answer, data

from cavity import (
    OnlineGaussianProcessClassifier,
    OnlineGaussianProcessRegressor,
    __version__,
    storage,
)
from cavity.estimators import load
from cavity.storage import StorageError

SAMPLES = Path(__file__).parent / "samples"
VERSIONS = sorted(path.parent.name for path in SAMPLES.glob("*/answers.json"))
STREAMS = {
    "stream of labels": OnlineGaussianProcessClassifier,
    "stream of numbers": OnlineGaussianProcessRegressor,
}


def samples(suffix):
    """Name every sample of every version, but the tables."""
    found = []
    for version in VERSIONS:
        answers = json.loads((SAMPLES / version / "answers.json").read_text(encoding="utf-8"))
        found += [(version, name) for name in answers if name != "table"]
    return found


def kept(version, name):
    return json.loads((SAMPLES / version / "answers.json").read_text(encoding="utf-8"))[name]


def place(version, name, suffix="model"):
    return SAMPLES / version / f"{name.replace(' ', '_')}.{suffix}"


def test_there_are_samples_of_the_first_version():
    """Samples are not lost."""
    assert "0.1.0" in VERSIONS
    assert len(kept("0.1.0", "labels")) == len(NEW)


@pytest.mark.parametrize(("version", "name"), samples("model"))
def test_files_open(version, name):
    """A file predicts what its model predicted when it was written."""
    model = STREAMS[name].load if name in STREAMS else load
    # Another BLAS rounds differently, and some posteriors are inferred anew from their sites.
    np.testing.assert_allclose(answer(model(place(version, name))), kept(version, name), rtol=1e-7)


@pytest.mark.parametrize("name", STREAMS)
def test_streams_go_on(name):
    """A stream from a file learns on."""
    model = STREAMS[name].load(place("0.1.0", name))
    X, f = data()
    before = model.n_seen_
    model.partial_fit(X, np.where(f > 0.0, "yes", "no") if "labels" in name else f)
    assert model.n_seen_ == before + len(X)


@pytest.mark.parametrize(("version", "name"), samples("pickle"))
def test_pickles_open(version, name):
    """A pickle predicts what it predicted; one of an earlier version of anything may warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        model = pickle.loads(place(version, name, "pickle").read_bytes())
    np.testing.assert_allclose(answer(model), kept(version, name), rtol=1e-7)


@pytest.mark.parametrize("version", VERSIONS)
def test_models_of_tables_open(version):
    """A file of `cavity fit` predicts what it predicted."""
    pl = pytest.importorskip("polars", reason="tables need the extra [report]")
    from cavity.tables.model import load_model
    from cavity.tables.table import Table

    X, f = data()
    columns = {"a": X[:, 0], "c": np.where(X[:, 1] > 0, "u", "v"), "t": np.where(f > 0, "y", "n")}
    table = Table(pl.DataFrame(columns), "made", "t")
    found = load_model(place(version, "table")).predict(table)
    proba = found.select("probability_of_n", "probability_of_y").to_numpy()
    np.testing.assert_allclose(proba, kept(version, "table"), rtol=1e-7)


def test_a_newer_format_says_which_version_is_needed(tmp_path):
    """The refusal is one line, with the version to install."""
    path = tmp_path / "model"
    with zipfile.ZipFile(place("0.1.0", "labels")) as old, zipfile.ZipFile(path, "w") as new:
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
