"""The benchmark of goals counts what it says it counts."""

import numpy as np
import pytest

# The benchmarks are not part of the source distribution.
pytest.importorskip("benchmarks.goals")
from benchmarks.goals.page import cases_of, goals_of, page
from benchmarks.goals.sets import FACTORS, REPORTED, SETTLED, draw, named


def row(draw, truth, name="linear", measure="error", value=0.25):
    about = {"set": name, "kind": "classes", "draw": draw, "n": 100, "times": 2, "seconds": 1.0}
    law = {"value": value, "below": 0.0, "above": 0.0, "sampling": 0.05, "lowest": 0.0}
    found = {"measure": measure, "truth": truth, "alone": 0.5, "highest": 1.0}
    return {**about, **found, **law}


def draws(spread, count=2000, bias=0.0):
    """Forecasts that are off by bias and spread, of one truth, with a standard error of 0.05."""
    rng = np.random.default_rng(0)
    values = 0.25 + bias + spread * rng.standard_normal(count)
    return [row(i, 0.25, value=value) for i, value in enumerate(values)]


def met(rows):
    cases = [case for case in cases_of(rows) if 0.7 <= case.stated <= 0.9]
    return np.mean([case.met for case in cases])


def test_a_calibrated_law_is_found_calibrated():
    """Forecasts as uncertain as they say meet four in five; too bold ones meet fewer."""
    assert met(draws(0.05)) == pytest.approx(0.81, abs=0.03)
    assert met(draws(0.15)) < 0.7
    assert met(draws(0.01)) > 0.95


def test_page_names_what_is_beyond_the_bar():
    """Shares outside the bar are bold; sets that rules come from are one line."""
    text = page([*draws(0.05, 200, bias=-0.05), row(0, 0.25, "ring")])
    assert "The bar of 65–95 % is missed" in text
    assert "**" in text.splitlines()[-3]
    assert text.splitlines()[-1].startswith("On the sets that rules are settled on (ring)")


def test_goals_do_not_depend_on_what_comes_out():
    """Goals are the same whatever the forecasts and the truth."""
    one, other = [row(0, 0.1, value=0.2)], [row(0, 0.4, value=0.3)]
    assert np.array_equal(goals_of(one), goals_of(other))


def test_sets_leave_fresh_rows():
    """No set is for both purposes, and draws leave as many fresh rows as they look ahead."""
    assert len(REPORTED) == 6
    assert not set(REPORTED) & set(SETTLED)
    for name in ("Pima", "linear"):
        about = named(name)
        found = draw(about, 0)
        assert len(found.y) == FACTORS[-1] * about.rows <= len(found.y_fresh)
