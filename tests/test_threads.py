"""BLAS has one thread wherever the command line computes with small matrices."""

import numpy as np
import polars as pl
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from cavity.arrays import is_small, lapack, threads
from cavity.cli import main

N = 120


@pytest.fixture
def seen(monkeypatch):
    """The numbers of threads that BLAS had whenever a matrix of at least 100 rows came to it."""
    found = []

    def watched(routine_of):
        def watching(*about):
            routine = routine_of(*about)

            def run(*arguments, **options):
                if any(len(a) >= 100 for a in arguments if isinstance(a, np.ndarray)):
                    found.append(threads._threads())
                return routine(*arguments, **options)

            return run

        return watching

    for name in ("_lapack", "_blas", "_product"):
        monkeypatch.setattr(lapack, name, watched(getattr(lapack, name)))
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a table of classes and a quantity."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X, noise = rng.standard_normal((N, 2)), rng.standard_normal(N)
    labels = np.where(X[:, 0] + noise > 0, "yes", "no")
    columns = {"a": X[:, 0], "b": X[:, 1], "t": labels, "q": X[:, 0] + 0.3 * noise}
    pl.DataFrame(columns).write_csv("t.csv")
    return tmp_path


@pytest.mark.parametrize("target", [["t", "--drop", "q"], ["q", "--drop", "t"]], ids=["t", "q"])
@pytest.mark.parametrize("command", ["report", "curve", "fit"])
def test_small_matrices_are_computed_by_one_thread(folder, seen, capsys, command, target):
    """Tuning, importance, effects, curves, forecasts and predictions of few rows use one thread."""
    output = ["-o", "m.model"] if command == "fit" else []
    with threadpool_limits(2, "blas"):
        if threads._threads() < 2:
            pytest.skip("BLAS has no threads here")
        words = [command, "t.csv", "--target", *target, "--json", *output, "--test-size", "10"]
        assert main(words) == 0
        if command == "fit":
            assert main(["predict", "m.model", "t.csv", "--json"]) == 0
        assert threads._threads() == 2
    capsys.readouterr()
    assert len(seen) > 50
    assert set(seen) == {1}


def test_simpler_models_use_one_thread(folder, capsys, monkeypatch):
    """The models that a report compares with have one thread on few rows, in BLAS and OpenMP."""
    from sklearn.ensemble import HistGradientBoostingClassifier as Boosting

    found, fit = [], Boosting.fit

    def watched(self, *arguments, **options):
        found.append({lib.num_threads for lib in ThreadpoolController().lib_controllers})
        return fit(self, *arguments, **options)

    monkeypatch.setattr(Boosting, "fit", watched)
    with threadpool_limits(2):
        words = ["report", "t.csv", "--target", "t", "--drop", "q", "--kernel", "rbf", "--json"]
        assert main(words) == 0
    capsys.readouterr()
    assert found
    assert all(counts == {1} for counts in found)


def test_large_matrices_have_all_threads():
    """The rule is by size alone: what takes long is shared among the threads that BLAS has."""
    assert is_small(1500)
    assert not is_small(1501)
    with threadpool_limits(2, "blas"):
        before = threads._threads()
        with threads.threads_for(1501):
            assert threads._threads() == before
        with threads.threads_for(1500):
            assert threads._threads() == 1
