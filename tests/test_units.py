"""Targets in enormous or tiny units: right, or one sentence."""

import math

import numpy as np
import polars as pl
import pytest
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessRegressor, learning_curve, plan
from cavity.cli import main
from cavity.report.scores import Unseen, scores_of
from cavity.resampling.scores import Losses
from cavity.tables.marks import TargetMarks
from cavity.tables.output import TableError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 2))
Y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.2 * RNG.standard_normal(60)
MODEL = GaussianProcessRegressor(1.0 * RBF(1.0), alpha=0.05, normalize_y=True, optimizer=None)


@pytest.mark.parametrize("unit", [1e-165, 1e-90, 1e80, 1e95])
@pytest.mark.parametrize("command", ["fit", "curve", "report", "plan"])
def test_commands_refuse_units(command, unit, tmp_path, monkeypatch, capsys):
    """Before anything is fitted, and with what to do."""
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y * unit}).write_csv("t.csv")
    more = {"plan": ["--goal", f"rmse={0.2 * unit}"], "fit": ["-o", "t.model"]}.get(command, [])
    assert main([command, "t.csv", "--target", "y", *more]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "column 'y'" in error
    assert ("beyond ±1e+50, too large" if unit > 1.0 else "too little to compute") in error
    assert "write it in" in error


@pytest.mark.parametrize("unit", [1e-165, 1e-90, 1e80, 1e95])
def test_curves_and_plans_refuse_units(unit):
    """The library does so, too."""
    with pytest.raises(ValueError, match="fourth powers of errors, and the targets") as caught:
        learning_curve(MODEL, X, Y * unit)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="fourth powers"):
        plan(MODEL, X, Y * unit, rmse=0.2 * unit)


@pytest.mark.parametrize("unit", [1e-45, 1e45])
def test_units_that_are_accepted_change_nothing(unit):
    """Forecasts with their intervals are the same in other units."""
    here, there = (learning_curve(MODEL, X, Y * u).forecast([120]) for u in (1.0, unit))
    for one, other in zip(here[1:], there[1:], strict=True):
        np.testing.assert_allclose(np.asarray(other) / unit**2, one, rtol=1e-6)


@pytest.mark.parametrize("goal", [1e200, 1e-200])
def test_goals_whose_squares_are_no_floats(goal):
    """One sentence, and no overflow."""
    with pytest.raises(ValueError, match=r"must be between 1e-50 and 1e\+50"):
        plan(MODEL, X, Y, rmse=goal)


def test_answers_too_large_to_score():
    """A wrong answer among new rows is named; it made scores infinite."""
    marks = TargetMarks("new.csv", "y", 0.9)
    with pytest.raises(TableError, match=r"row 2: .*1e\+80 is beyond"):
        marks.add(pl.Series([1.0, 1e80]), (np.zeros(2), np.ones(2)))


def test_scores_without_any_error():
    """A root mean square of zero has no standard error by the delta method."""
    losses = Losses(np.zeros(5), np.zeros(5))
    found = scores_of(Unseen("exactly", Y[:5], losses), Y[5:])
    assert found["rmse"] == 0.0
    assert math.isnan(found["rmse_se"])
