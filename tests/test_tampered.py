"""Model files that somebody has changed: one short refusal, before memory or time is spent."""

import numpy as np
import polars as pl
import pytest
from sklearn.gaussian_process.kernels import RBF, CompoundKernel

from cavity import OnlineGaussianProcessClassifier, OnlineGaussianProcessRegressor, storage
from cavity.estimators import load, save, stored
from cavity.estimators.classifier import GaussianProcessClassifier
from cavity.storage import StorageError
from cavity.storage.codecs import kernel_to_json, labels_from_json, labels_to_json
from cavity.tables.model import Settings, fit_model, load_model, save_model
from cavity.tables.prepare import prepare
from cavity.tables.table import Table

LONGEST = 240
"""Letters of a message: two lines."""


def data(n=30):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] > 0).astype(int)


def change(path, kind, how):
    header, arrays = storage.read(path, kind)
    how(header, arrays)
    storage.write(path, kind, header, arrays)


def refusal(opened, path):
    with pytest.raises(StorageError) as caught:
        opened(path)
    message = str(caught.value).removeprefix(str(path))
    assert "\n" not in message
    assert len(message) <= LONGEST
    return message


STREAM = {
    "no number": lambda h, a: a["0.mean"].fill(np.nan),
    "text for numbers": lambda h, a: a.update({"0.cov": a["0.cov"].astype(str)}),
    "another shape": lambda h, a: a.update({"0.L": a["0.L"][:, :-1]}),
    "a factor with zeros": lambda h, a: a["0.L"].fill(0.0),
    "no covariance": lambda h, a: a["0.cov"].__setitem__((0, 1), 7.0),
    "an evidence that is text": lambda h, a: h["streams"][0].update(log_evidence="1.0"),
    "an evidence that is no number": lambda h, a: h["streams"][0].update(log_evidence=np.nan),
    "a negative count": lambda h, a: h["streams"][0].update(seen=-1),
    "half a row": lambda h, a: h["counts"].__setitem__(0, 0.5),
    "precomputed": lambda h, a: h["parameters"].update(kernel="precomputed"),
    "precomputed stream": lambda h, a: h["streams"][0].update(kernel="precomputed"),
    "several kernels": lambda h, a: h["streams"][0].update(
        kernel=kernel_to_json(CompoundKernel([RBF(), RBF()]))
    ),
    "a long word": lambda h, a: h["parameters"].update(optimizer="x" * 5000),
    "no budget": lambda h, a: h["parameters"].update(budget=-1),
    "unsorted classes": lambda h, a: h["labels"]["classes_"]["values"].reverse(),
    "wide labels": lambda h, a: h["labels"]["classes_"].update(dtype="<U262144"),
    "long labels": lambda h, a: h["labels"]["classes_"].update(dtype="<U9", values=["a" * 10**6]),
    "no inputs": lambda h, a: h.update(n_features="2"),
}


@pytest.mark.parametrize("name", STREAM)
def test_tampered_streams_are_refused(name, tmp_path):
    """Numbers that are none, matrices that are no posterior, kernels without inputs, and labels."""
    path, (X, y) = tmp_path / "model", data()
    OnlineGaussianProcessClassifier(RBF(1.0), budget=5).fit(X, y).save(path)
    change(path, "OnlineGaussianProcessClassifier", STREAM[name])
    refusal(OnlineGaussianProcessClassifier.load, path)


WAITING = {
    "negative": lambda h, a: a["waiting.weight"].fill(-1.0),
    "no number": lambda h, a: a["waiting.weight"].fill(np.nan),
    "text": lambda h, a: a.update({"waiting.X": a["waiting.X"].astype(str)}),
    "rows": lambda h, a: a.update({"waiting.y": a["waiting.y"][:-1]}),
    "columns": lambda h, a: a.update({"waiting.X": a["waiting.X"][:, :1]}),
    "codes": lambda h, a: a.update({"waiting.y": a["waiting.y"] + 5}),
}


@pytest.mark.parametrize("name", WAITING)
@pytest.mark.parametrize("regression", [False, True])
def test_tampered_warm_ups_are_refused(name, regression, tmp_path):
    """Rows that wait for the warm-up's end: checked as rows of a table are."""
    cls = OnlineGaussianProcessRegressor if regression else OnlineGaussianProcessClassifier
    path, (X, y) = tmp_path / "model", data()
    more = {} if regression else {"classes": [0, 1]}
    cls(RBF(1.0), warmup=100).partial_fit(X, y, **more).save(path)
    change(path, cls.__name__, WAITING[name])
    if regression and name == "codes":
        return
    refusal(cls.load, path)


def test_labels_are_as_wide_as_they_are_long():
    """Labels come back at their own width, whatever is declared, and endless ones are refused."""
    assert labels_from_json({"dtype": "<U4000", "values": ["a", "bc"]}).dtype == "<U2"
    with pytest.raises(StorageError, match="letters"):
        labels_to_json(np.array(["a", "b" * 5000]))


def test_a_covariance_larger_than_the_memory_is_refused(tmp_path, monkeypatch):
    """A few bytes for each row must not become a matrix that does not fit."""
    X, y = data()
    save(GaussianProcessClassifier(RBF(1.0), optimizer=None).fit(X, y), tmp_path / "model")
    monkeypatch.setattr(stored, "_memory_size", lambda: 8.0 * 30**2 - 1)
    assert "30 rows does not fit" in refusal(load, tmp_path / "model")


def test_older_files_of_many_rows_are_refused(tmp_path, monkeypatch):
    """Files without a posterior are fitted again when opened, but not for minutes."""
    path, (X, y) = tmp_path / "model", data()
    table = prepare(Table(pl.DataFrame({"x": X[:, 0], "t": np.where(y, "yes", "no")}), "made"), "t")
    fitted, _ = fit_model(table, Settings("rbf"))
    save_model(path, table, fitted, Settings("rbf"))

    def without_posterior(header, arrays):
        header["kernel"] = kernel_to_json(fitted.kernel_)
        del header["fit"]
        arrays.clear()
        arrays |= {"X": np.tile(table.X, (200, 1)), "y": np.tile(table.y, 200)}

    change(path, "table model", without_posterior)
    assert "6,000 rows without a posterior" in refusal(load_model, path)
