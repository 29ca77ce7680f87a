"""Streams that somebody has changed: one short refusal, before memory or time is spent."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, CompoundKernel

from cavity import OnlineGaussianProcessClassifier, OnlineGaussianProcessRegressor, storage
from cavity.storage import StorageError, checks
from cavity.storage.codecs import kernel_to_json, labels_from_json, labels_to_json

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
    "classes of two types": lambda h, a: h["labels"]["classes_"].update(
        dtype="object", values=[1, "a"]
    ),
    "a class that is missing": lambda h, a: h["labels"]["classes_"].update(
        dtype="object", values=[None, "a"]
    ),
    "very many restarts": lambda h, a: h["parameters"].update(n_restarts_optimizer=10**9),
    "very many sweeps": lambda h, a: h["parameters"].update(sweeps=10**9),
    "a very large number": lambda h, a: h["counts"].__setitem__(1, 10**400),
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
    "weights": lambda h, a: a["waiting.weight"].fill(1e300),
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


def test_more_restarts_than_a_file_may_ask_for_are_not_saved(tmp_path):
    """What would not open again is not written; the message says what to do."""
    X, y = data()
    model = OnlineGaussianProcessClassifier(RBF(1.0), n_restarts_optimizer=5000).fit(X, y)
    with pytest.raises(StorageError, match="at most 1,000"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    model.set_params(n_restarts_optimizer=1000).save(tmp_path / "model")
    OnlineGaussianProcessClassifier.load(tmp_path / "model")


def test_a_warm_up_that_does_not_fit_into_the_memory_is_refused(tmp_path, monkeypatch):
    """Rows that wait are tuned on all together: their matrices are bounded like those of a fit."""
    path, (X, y) = tmp_path / "model", data()
    OnlineGaussianProcessRegressor(RBF(1.0), warmup=100).partial_fit(X, y).save(path)
    monkeypatch.setattr(checks, "memory_size", lambda: 2 * 3 * 8.0 * 30**2)
    OnlineGaussianProcessRegressor.load(path)
    monkeypatch.setattr(checks, "memory_size", lambda: 2 * 3 * 8.0 * 30**2 - 1)
    assert "30 rows" in refusal(OnlineGaussianProcessRegressor.load, path)
