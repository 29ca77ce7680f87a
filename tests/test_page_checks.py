"""Checks of the table and the model, and how a report shows them."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from browser import QUICK, numbers_of, show

from cavity.report.analysis import analyse
from cavity.report.checks import CHECKS
from cavity.report.page import render
from cavity.report.sections.checks import headline
from cavity.report.summary import summarise
from cavity.tables.model import Settings
from cavity.tables.prepare import prepare
from cavity.tables.read import Table

DOCS = Path(__file__).parents[1] / "docs" / "checks.md"


def rows(n=60, seed=0, **more):
    """Two inputs, and classes that depend on one of them."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, n))
    y = np.where(a + 0.8 * rng.standard_normal(n) > 0, "yes", "no")
    return {"a": a, "b": b, "y": y} | more


def numbers(n=60, seed=0, **more):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, n))
    return {"a": a, "b": b, "y": a + 0.5 * rng.standard_normal(n)} | more


def twice(columns, times=3):
    """The first rows once more at the end."""
    return {name: np.concatenate([x, x[:times]]) for name, x in columns.items()}


def contradicting():
    made = twice(rows())
    made["y"][-1] = "no" if made["y"][-1] == "yes" else "yes"
    return made


def jumping(n=300):
    a, b = np.random.default_rng(1).uniform(0.0, 1.0, (2, n))
    y = 3.0 * (np.floor(13.0 * a) % 2) + 0.1 * np.random.default_rng(2).standard_normal(n)
    return {"a": a, "b": b, "y": y}


def drifting(n=200):
    """A target that wanders along the table, which no input tells."""
    rng = np.random.default_rng(0)
    drift = np.cumsum(rng.standard_normal(n))
    return {"a": rng.standard_normal(n), "y": drift}


def coloured(n=90):
    """A number for each colour, and the colours."""
    rng = np.random.default_rng(0)
    k = rng.integers(0, 3, n)
    y = np.array([1.0, 5.0, -2.0])[k] + 0.01 * rng.standard_normal(n)
    return {"a": rng.standard_normal(n), "colour": np.array(["r", "g", "b"])[k], "y": y}


RARE = np.array(["common"] * 52 + ["rare"] * 8)
FOUND = {
    "copies": (twice(rows()), "C01", "3 rows are copies of another row."),
    "contradictions": (contradicting(), "C01", "2 rows share their inputs but not their target."),
    "leak of a class": (rows(c=np.where(rows()["y"] == "yes", 7.0, 3.5)), "C02", "c alone tells"),
    "leak of a number": (numbers(c=np.exp(numbers()["y"])), "C02", "c alone tells"),
    "leak by a category": (coloured(), "C02", "colour alone tells"),
    "constant": (rows(c=np.full(60, 4.0), d=np.full(60, "x")), "C03", "c and d has the same value"),
    "bound": (rows(y=np.where(rows()["a"] > 0, "yes", "no")), "C04", "close to the specified"),
    "noise": (rows(y=rows(seed=7)["y"]), "C05", "A guess without inputs"),
    "jumps": (jumping(), "C06", "The log loss of HistGradientBoosting is"),
    "rare": (rows(y=RARE), "C07", "have the class rare (8)."),
    "time": (rows(year=np.repeat(np.arange(12.0), 5)), "C08", "in the order of year."),
    "drift": (drifting(), "C08", "Rows next to each other are alike"),
}


def analysed(columns, settings=QUICK, baselines=False):
    data = prepare(Table(pl.DataFrame(columns), "made.csv", "y"))
    skip = ["comparison"] if baselines else ["comparison", "baselines"]
    return analyse(data, settings, skip=skip)


def statuses(analysis):
    return {c["code"]: c["status"] for c in analysis.checks}


@pytest.mark.parametrize("name", FOUND)
def test_each_check_finds_what_it_looks_for(name):
    """A table made to show one thing shows it, in the JSON, on the terminal and on the page."""
    columns, code, text = FOUND[name]
    analysis = analysed(columns, baselines=code == "C06")
    [check] = [c for c in analysis.checks if c["code"] == code]
    assert check["status"] == "found"
    assert text in check["text"]
    assert any(line.strip().startswith(f"{code} ") for line in summarise(analysis))
    assert f'id="check-{code}"' in render(analysis)


@pytest.mark.parametrize("columns", [rows(200), numbers(200)], ids=["classes", "numbers"])
def test_an_ordinary_table_has_nothing_odd(columns):
    """No check cries wolf; of numbers, there are no rare classes to look for."""
    analysis = analysed(columns, Settings())
    assert set(statuses(analysis).values()) <= {"passed", "not made"}
    assert statuses(analysis)["C07"] == ("passed" if analysis.is_classes else "not made")
    assert headline(analysis) == "No: none of 8 checks has found anything."


@pytest.mark.parametrize("seed", range(5))
def test_random_rows_are_in_no_order(seed):
    """A table of independent rows passes the check of their order, and none is a copy."""
    found = statuses(analysed(rows(80, seed)))
    assert found["C08"] == found["C01"] == "passed"


def test_sorted_by_the_target_is_not_in_the_order_of_time():
    """Rows of one class after those of the other have errors alike, whatever the time."""
    columns = rows(80)
    order = np.argsort(columns["y"], kind="stable")
    assert statuses(analysed({k: x[order] for k, x in columns.items()}))["C08"] == "passed"


def test_without_baselines_boosting_is_not_checked():
    """What was not computed cannot be checked."""
    assert statuses(analysed(rows()))["C06"] == "not made"
    assert statuses(analysed(rows(), baselines=True))["C06"] == "passed"


def test_the_most_serious_is_named_first():
    """The headline counts what was found and names a warning before a note."""
    analysis = analysed(twice(rows(y=RARE)))
    found = [c for c in analysis.checks if c["status"] == "found"]
    assert [c["severity"] for c in found[:2]] == ["note", "warning"]
    assert found[1]["title"][1:] in headline(analysis)
    assert headline(analysis).startswith(f"{len(found)} of 8 checks have found something")
    one = analysed(twice(rows(200)), Settings())
    assert headline(one) == "1 of 8 checks has found something: rows that repeat others."


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.code)
def test_each_code_is_explained(check):
    """The docs have a section for each code, with what the page says of it, and a place to link."""
    text = DOCS.read_text("utf-8")
    [section] = [part for part in text.split("\n(c") if part.startswith(check.code[1:].lower())]
    words = re.sub(r"\s+", " ", section)
    assert f"## {check.code} {check.title}" in words
    assert f"*{check.severity.capitalize()}.*" in words
    assert check.meaning in words


def test_codes_count_up():
    """Codes are unique and in order, and links go to the docs."""
    assert [check.code for check in CHECKS] == [f"C{k:02d}" for k in range(1, len(CHECKS) + 1)]


def test_the_code_opens_its_meaning(driver, tmp_path):
    """A click on a code opens what it means, on the page itself."""
    path = tmp_path / "odd.html"
    path.write_text(render(analysed(twice(rows()))), encoding="utf-8")
    assert show(driver, path) == []
    details = driver.find_element("id", "meaning-C01")
    assert not details.get_property("open")
    driver.execute_script("document.querySelector('#check-C01 .code').click()")
    assert details.get_property("open")
    assert "predicted from itself" in details.text
    link = {c["code"]: c["link"] for c in numbers_of(path)["checks"]}["C01"]
    assert link == "docs/checks.md#c01"
