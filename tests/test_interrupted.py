"""Interruptions, threads and other versions: an estimator is one thing or the other, never both."""

import copy
import pickle
import re
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.gaussian_process.kernels import RBF

import cavity
from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    OnlineGaussianProcessClassifier,
    OnlineGaussianProcessRegressor,
)
from cavity.estimators import streams, versions
from cavity.estimators.progress import whole_fit
from cavity.kernels import rule

ESTIMATORS = [
    GaussianProcessClassifier(RBF(1.0), optimizer=None),
    GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None),
    OnlineGaussianProcessClassifier(RBF(1.0), budget=10),
    OnlineGaussianProcessRegressor(RBF(1.0), budget=10),
]


def data(d=2, n=30, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(d)]), (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("again", ["fit", "partial_fit"])
def test_an_interrupted_fit_leaves_the_old_model(estimator, again, monkeypatch):
    """Names, columns and answers are those before, also for interruptions that are no errors."""
    if not hasattr(estimator, again):
        return
    (X, y), (wide, labels) = data(), data(3)
    model = copy.deepcopy(estimator).fit(X, y)
    before, names = model.predict(X), list(model.feature_names_in_)

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    new = (wide, labels) if again == "fit" else (X, y)
    with monkeypatch.context() as patch:
        patch.setattr(type(rule(RBF(1.0))), "matrix", interrupt)
        with pytest.raises(KeyboardInterrupt):
            getattr(model, again)(*new)
    assert list(model.feature_names_in_) == names
    assert model.n_features_in_ == 2
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_failed_fit_is_undone_in_one_step():
    """At every instruction of the way back the object is the one or the other, never between."""
    found = []

    class Thing:
        """Something with attributes that come, go and change."""

    def watch(frame, event, arg):
        if frame.f_code is not whole_fit.__wrapped__.__code__:
            return None
        frame.f_trace_opcodes = True
        found.append(dict(vars(thing)))
        return watch

    def fail():
        with whole_fit(thing):
            thing.changed, thing.new = 2, 3
            del thing.gone
            raise KeyboardInterrupt

    thing = Thing()
    thing.changed, thing.gone = 0, 1
    tracing = sys.gettrace()
    sys.settrace(watch)
    try:
        with pytest.raises(KeyboardInterrupt):
            fail()
    finally:
        sys.settrace(tracing)
    before, half_done = {"changed": 0, "gone": 1}, {"changed": 2, "new": 3}
    assert half_done in found
    assert [state for state in found if state not in (before, half_done)] == []
    assert vars(thing) == found[-1] == before


@pytest.mark.parametrize("warmup", [0, 5])
def test_threads_lose_no_rows(warmup, monkeypatch):
    """Two threads that learn on one object: all rows are in it, one call after the other."""
    X, y = data(n=40)
    model = OnlineGaussianProcessClassifier(RBF(1.0), budget=10, warmup=warmup, optimizer=None)
    model.partial_fit(X, y, classes=[0, 1])
    learn, meet = streams.Stream.learn, threading.Event()

    def slowly(self, rows):
        # Time for the other thread to begin as well.
        meet.wait(0.02)
        return learn(self, rows)

    monkeypatch.setattr(streams.Stream, "learn", slowly)
    calls = [threading.Thread(target=model.partial_fit, args=data(n=20, seed=k)) for k in (1, 2, 3)]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert model.n_seen_ == 100
    assert model._memory.streams[0].posterior.seen == 100


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_pickles_know_their_version(estimator, monkeypatch):
    """The same version is silent, an older one warns, a newer one is refused."""
    X, y = data()
    model = copy.deepcopy(estimator).fit(X, y)
    stored = pickle.dumps(model)
    np.testing.assert_array_equal(pickle.loads(stored).predict(X), model.predict(X))
    monkeypatch.setattr(versions, "__version__", "99.0.0")
    with pytest.warns(
        InconsistentVersionWarning, match=rf"pickled by cavity {re.escape(cavity.__version__)} and"
    ):
        pickle.loads(stored)
    newer = pickle.dumps(model)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"install version 99\.0\.0 or a later"):
        pickle.loads(newer)


def test_pickles_from_before_versions_warn():
    """A state without a version is one of the first versions."""
    X, y = data()
    model = GaussianProcessClassifier(RBF(1.0), optimizer=None).fit(X, y)
    state = model.__getstate__()
    del state["_cavity_version"]
    old = GaussianProcessClassifier()
    with pytest.warns(InconsistentVersionWarning, match="or before"):
        old.__setstate__(state)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(copy.deepcopy(old).predict(X), model.predict(X))
