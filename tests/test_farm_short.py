"""The farm in its short form: some problems of every kind, and all that have failed once."""

import json
import signal

import numpy as np
import pytest
from farm import kinds, shrink
from farm.__main__ import main, solve_all
from farm.kinds import KINDS, problem, solve
from farm.ledger import Fault, Ledger
from farm.record import Record, append, solved, summary

from cavity import GaussianProcessClassifier

NUMBERS = range(21)
CASES = shrink.kept()


@pytest.mark.parametrize("number", NUMBERS)
def test_a_problem(number):
    """Every property holds of every answer to a random hostile problem."""
    assert solve(problem(0, number)).faults == []


def test_all_kinds_are_among_them():
    """The short form has each kind at least once."""
    assert {problem(0, number)["kind"] for number in NUMBERS} == set(KINDS)


@pytest.mark.parametrize("name", CASES)
def test_a_case_that_has_failed(name):
    """What the farm has found once stays mended."""
    assert solve(CASES[name]).faults == []


def test_a_problem_is_its_number():
    """The same number is the same problem; another number or seed is another."""
    assert problem(3, 7) == problem(3, 7)
    assert problem(3, 7) != problem(4, 7) != problem(4, 8)


def broken(ledger, spec):
    ledger.require(spec["n"] < 6 or spec["d"] < 2, "too many rows", "made up", spec["n"])


def test_failures_are_made_smaller_and_kept(monkeypatch, tmp_path):
    """A problem shrinks to the smallest one that fails in the same way, and comes back."""
    monkeypatch.setitem(kinds.KINDS, "classes", kinds.Kind(broken, 5, 40))
    spec = next(p for p in (problem(0, k) for k in range(30)) if solve(p).faults)
    [fault] = solve(spec).faults
    small = shrink.shrunk(spec, fault)
    assert (small["n"], small["d"], small["inputs"], small["unit"]) == (6, 2, "normal", 0.0)
    path = shrink.keep(small, fault, tmp_path)
    assert shrink.kept(tmp_path) == {path.stem: small}


def raise_long():
    raise ValueError("x" * 1000)


def test_the_ledger_sees_what_must_not_happen():
    """Errors of the wrong kind, long messages, leaks, NaN and silence are faults."""
    ledger = Ledger()
    ledger.run("error", lambda: 1 // 0)
    ledger.run("long", raise_long)
    ledger.run("leak", lambda: np.log(np.zeros(1)))
    ledger.finite("nan", "value", [1.0, np.nan])
    ledger.ended("quiet", False, [])
    ledger.near("near", "off", [1.0, 2.0], [1.0, 2.1], 0.05, 0.0)
    rules = [(fault.of, fault.rule) for fault in ledger.faults]
    assert rules == [
        ("error", "uncaught error"),
        ("long", "a long message"),
        ("leak", "a warning leaks"),
        ("nan", "not finite"),
        ("quiet", "not converged, in silence"),
        ("off", "near"),
    ]
    assert ledger.counts["refused"] == ledger.counts["silent"] == ledger.counts["uncaught"] == 1


def test_runs_go_on_where_they_stopped(tmp_path, monkeypatch, capsys):
    """Problems that are solved are not solved again, and a line cut short is solved again."""
    path = tmp_path / "0.jsonl"
    for number in (0, 1):
        append(path, Record(number, "classes", 0.1, {"fits": 2}, {}, [Fault("a", "b", "c")]))
    with path.open("a") as file:
        file.write('{"number": 2, "ki')
    assert set(solved(path)) == {0, 1}
    monkeypatch.setattr("sys.argv", ["farm", "--problems", "2", "--out", str(tmp_path)])
    assert main() == 1
    found = json.loads(capsys.readouterr().out)
    assert found == summary(solved(path).values())
    assert found["kinds"]["classes"]["failed problems"] == 2


def test_what_failed_is_solved_again(tmp_path, monkeypatch):
    """A problem that failed and holds now counts as mended, in this run and in the next."""
    path = tmp_path / "0.jsonl"
    append(path, Record(0, "classes", 0.1, {}, {}, [Fault("a", "b", "c")]))
    append(path, Record(1, "classes", 0.1, {"fits": 7}, {}, []))
    done = solve_all(0, 2, 1, again=True, out=tmp_path)
    assert [done[k].mended for k in (0, 1)] == [True, False]
    assert done[1].counts == {"fits": 7}
    assert solved(path)[0].mended
    assert summary(solved(path).values())["all"]["mended problems"] == 1


def test_refusals_are_meant():
    """An error that NumPy raises over a mistake of ours is not a sentence for the user."""
    for mistake in (
        lambda: np.zeros(3) + np.zeros(4),
        lambda: np.linalg.cholesky(-np.eye(2)),
        lambda: [1].index(2),
    ):
        ledger = Ledger()
        ledger.run("mistake", mistake)
        assert [fault.rule for fault in ledger.faults] == ["an error that was not meant"]
    ledger = Ledger()
    ledger.run("meant", lambda: GaussianProcessClassifier(tol=-1.0).fit([[0.0], [1.0]], [0, 1]))
    assert ledger.faults == []
    assert ledger.counts["refused"] == 1
    ledger.ended("other words", False, ["X does not have valid feature names"])
    assert [fault.rule for fault in ledger.faults] == ["not converged, in silence"]


def test_what_takes_too_long_is_ended(monkeypatch):
    """A problem that goes on and on is a fault that says where it was."""

    def endless(ledger, spec):
        ledger.run("endless", lambda: [None for _ in iter(int, 1)])

    monkeypatch.setitem(kinds.KINDS, "classes", kinds.Kind(endless, 4, 40))
    [fault] = solve(problem(0, 0), seconds=0.2).faults
    assert fault.rule == "takes too long"
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
