"""Faults put into the core are real, and the tests asked about them are those that run the line."""

import ast
import json
import subprocess
import sys

import pytest
from benchmarks.mutants import record, tracing
from benchmarks.mutants.core import ROOMS, ROOT
from benchmarks.mutants.draw import chosen, named
from benchmarks.mutants.faults import faults
from benchmarks.mutants.page import page
from benchmarks.mutants.record import Chosen, Record, files_of_tests, lines_with
from benchmarks.mutants.trial import run

TEXT = '''"""Words: a + b < 2."""
ONE = 1e-6


def f(a: int | None, b=2) -> float:
    """Return -1 if a > 3."""
    if a >= b and not -a:
        raise ValueError(f"{a + b} is not 3")
    return xp.sqrt(a * 0.5) - max(a, b, key=lambda x: x) + 2**b
'''


def test_every_kind_of_fault():
    """Operators, comparisons, conditions, signs, numbers and functions, each at its place."""
    found = {(fault.old, fault.new) for fault in faults(TEXT)}
    assert found == {
        ("1e-6", "0.001"),
        (">=", ">"),
        ("and", "or"),
        ("-", ""),
        ("sqrt", "square"),
        ("*", "/"),
        ("0.5", "1.0"),
        ("-", "+"),
        ("max", "min"),
        ("+", "-"),
        ("**", "*"),
        ("2", "3"),
    }
    for fault in faults(TEXT):
        changed = fault.into(TEXT)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(TEXT))
        assert changed.splitlines()[0] == TEXT.splitlines()[0]


def test_faults_of_the_core():
    """The same seed chooses the same faults, from every room, each of which is valid Python."""
    found = chosen(60, 1)
    assert found == chosen(60, 1) != chosen(60, 2)
    assert 58 <= len(found) <= 62  # each room's share is rounded
    for name, fault in found.values():
        text = (ROOT / name).read_text(encoding="utf-8")
        assert ast.dump(ast.parse(fault.into(text))) != ast.dump(ast.parse(text))
    assert {name.split("/")[2] for name, _ in found.values()} == set(ROOMS)
    assert set(found) < set(chosen(120, 1))


def test_equal_lines_have_faults_of_their_own():
    """No two faults of a file have the same name."""
    name = "src/cavity/inference/sequential.py"
    assert len(named(name)) == len(faults((ROOT / name).read_text(encoding="utf-8")))


def test_the_page_lists_what_was_missed():
    """Shares by room, and every fault that no test noticed, with its reason."""
    names = list(chosen(40, 0))
    found = {name: {"noticed": k > 0} for k, name in enumerate(names)}
    text = page({"0": found, "5": dict(list(found.items())[1:])}, {names[0]: "It is slower."})
    assert f"- `{names[0]}`: It is slower." in text
    assert f"Seed 0: {len(found)} faults, {1.0 - 1.0 / len(found):.1%} noticed" in text
    assert "Seed 5: 39 faults, 100.0% noticed" in text


CODE = """ONE = 1


def f(a):
    b = (
        a
        + ONE
    )
    if (
        b
        > 2
    ):
        return b
    return [
        x for x in range(b)
    ]


class A:
    x = 2

    def g(self):
        return 3
"""


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (1, set()),
        (7, {5, 6, 7, 8}),
        (11, {9, 10, 11, 12}),
        (13, {13}),
        (15, {14, 15, 16}),
        (20, set()),
        (23, {23}),
    ],
)
def test_lines_of_a_statement(line, wanted):
    """A statement of several lines counts as one; what runs on import has no lines."""
    assert lines_with(CODE, line) == wanted


def test_tests_that_run_a_line(tmp_path, monkeypatch):
    """The shortest of each file comes first; after changes, or on import, all of the file count."""
    monkeypatch.setattr(tracing, "_FOLDER", tmp_path)
    monkeypatch.setattr(
        record, "files_of_tests", lambda: ["tests/test_rows.py", "tests/test_auto.py"]
    )
    core = "src/cavity/likelihoods/probit.py"
    text = (ROOT / core).read_text(encoding="utf-8")
    line = next(k for k, one in enumerate(text.splitlines(), 1) if " return " in one)

    def found(digest):
        lines = {core: {"tests/test_rows.py::b": [line], "tests/test_rows.py::c": [line + 99]}}
        seconds = {
            f"tests/test_rows.py::{name}": k for name, k in zip("abc", (0, 3, 2), strict=True)
        }
        both = {"core": {core: digest}}
        tracing.write("tests/test_rows.py", both | {"seconds": seconds, "lines": lines})
        lines = {core: {tracing.EVERY: [line]}}
        seconds = {f"tests/test_auto.py::{name}": k for name, k in zip("de", (2, 1), strict=True)}
        tracing.write("tests/test_auto.py", both | {"seconds": seconds, "lines": lines})
        return lambda line: "".join(each.name[-1] for each in Record().tests(core, line))

    known = tracing.digest(core)
    assert found(known)(line) == "ebd"
    assert found("another")(line) == "ecdb"
    assert found(known)(1) == "ecdb"


def test_a_test_and_its_lines(tmp_path, monkeypatch):
    """Running a test with the plugin writes down its lines and seconds."""
    name = "tests/test_sites.py"
    assert name in files_of_tests()
    monkeypatch.setattr(tracing, "_FOLDER", tmp_path)
    code = (
        "import sys, pytest; from pathlib import Path; from benchmarks.mutants import tracing;"
        f"tracing._FOLDER = Path({str(tmp_path)!r});"
        f"sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', {name!r}], plugins=[tracing]))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)
    found = json.loads(tracing.place(name).read_text(encoding="utf-8"))
    own = found["lines"]["src/cavity/sites.py"]
    assert set(own) <= set(found["seconds"])
    assert all(own.values())
    assert record.recorded(name) == found


def test_named_tests_are_run_in_turn(tmp_path):
    """Only the tests that are named run, in that order, until one fails."""
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    lines = (f"def test_{name}(): assert {name!r} in 'ad'" for name in "abcd")
    (tmp_path / "test_x.py").write_text("\n".join(lines), encoding="utf-8")
    chosen_ones = [Chosen(f"test_x.py::test_{name}", 0.1) for name in "dacb"]
    assert run(tmp_path, chosen_ones).startswith("FAILED test_x.py::test_c")
    assert run(tmp_path, chosen_ones[:2]) is None
    assert run(tmp_path, [Chosen("test_x.py::renamed", 0.1)]) is None
    (tmp_path / "test_x.py").write_text("import nothing_at_all", encoding="utf-8")
    assert run(tmp_path, chosen_ones).startswith("ERROR test_x.py")
