"""Which tests run a line of the core: recorded once, and again for files of tests that changed."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.mutants.core import ROOT, digest
from benchmarks.mutants.tracing import EVERY, place, write

_LEFT_OUT = re.compile(
    r"test_(architecture|cuda|docs|docstrings|examples|farm|farm_short|mutants|page.*|pictures"
    r"|reliability|trust|walk|.*_benchmark)\.py"
)
"""Tests of the pages, of the benchmarks, and of how the code is written."""


_COUNTED = "tests/test_operations.py"


class Chosen(NamedTuple):
    """A test, and how long it took."""

    name: str
    seconds: float

    @property
    def file(self) -> str:
        """The file it is in."""
        return self.name.split("::")[0]


def files_of_tests() -> list[str]:
    """Return the files of tests that are asked, and of the core's and others' examples."""
    tests = [path for path in (ROOT / "tests").glob("test_*.py") if not _LEFT_OUT.match(path.name)]
    sources = (ROOT / "src").rglob("*.py")
    examples = [path for path in sources if ">>> " in path.read_text(encoding="utf-8")]
    return sorted(str(path.relative_to(ROOT)) for path in [*tests, *examples])


def recorded(tests: str) -> dict[str, Any] | None:
    """Return what is on record of a file of tests, unless it has changed since."""
    path = place(tests)
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found if found["digest"] == digest(tests) else None


def make(jobs: int) -> None:
    """Run the tests that are not on record, and write down which lines they run."""
    missing = [name for name in files_of_tests() if recorded(name) is None]
    if missing:
        print(f"{len(missing)} files of tests are run to record their lines", flush=True)
        options = ["-q", "-p", "no:cacheprovider", "-p", "benchmarks.mutants.tracing"]
        options += ["-n", str(jobs), "--dist", "loadfile"]
        environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        command = [sys.executable, "-m", "pytest", *options, *missing]
        code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        if code not in (0, 5):  # 5: none but slow tests
            sys.exit("Some tests fail without any fault. Mend them first.")
        for name in missing:
            if recorded(name) is None:
                write(name, {"core": {}, "seconds": {}, "lines": {}})


class Record:
    """The lines that each test runs."""

    def __init__(self) -> None:
        files = [(name, recorded(name)) for name in files_of_tests()]
        self._files = {name: found for name, found in files if found is not None}

    def tests(self, name: str, line: int) -> list[Chosen]:
        """Return the tests that run a line: the shortest first of each file, then the others.

        The last are those of the files named after the module or its room, and those that count
        operations: they may run the line in another process.
        """
        wanted = lines_with((ROOT / name).read_text(encoding="utf-8"), line)
        found = [self._of(tests, name, wanted) for tests in self._files]
        path = Path(name)
        namesakes = [f"tests/test_{each}.py" for each in (path.stem, path.parent.name)]
        others = [self._all(tests) for tests in [*namesakes, _COUNTED] if tests in self._files]
        return list(dict.fromkeys([*_in_turn(found), *_in_turn(others)]))

    def _of(self, tests: str, name: str, wanted: set[int]) -> list[Chosen]:
        """Return the tests of one file that run one of the lines, or any if it is not known."""
        record = self._files[tests]
        if record["core"].get(name) != digest(name):
            wanted = set()
        lines = record["lines"].get(name, {})
        running = {test for test, own in lines.items() if not wanted or not wanted.isdisjoint(own)}
        return [each for each in self._all(tests) if each.name in running or EVERY in running]

    def _all(self, tests: str) -> list[Chosen]:
        seconds = self._files[tests]["seconds"]
        return [Chosen(test, seconds[test]) for test in sorted(seconds, key=seconds.__getitem__)]


def _in_turn(files: Iterable[list[Chosen]]) -> list[Chosen]:
    """Return the first of each file, the shortest first, then the second of each, and so on."""
    turns = [(k, each) for tests in files for k, each in enumerate(tests)]
    return [each for _, each in sorted(turns, key=lambda turn: (turn[0], turn[1].seconds))]


def lines_with(text: str, line: int) -> set[int]:
    """Return the lines of the statement that a line is in; none outside of functions.

    What is outside of functions runs on import, before the tests.
    """
    found: set[int] = set()
    for node, inside in _statements(ast.parse(text), False):
        if inside and node.lineno <= line <= (node.end_lineno or 0):
            body = getattr(node, "body", None)
            head = range(node.lineno, body[0].lineno if body else (node.end_lineno or 0) + 1)
            found = set(head) if line in head else {line}
    return found


def _statements(node: ast.AST, inside: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """Walk the statements from the outside in, with whether they are in a function."""
    within = inside or isinstance(node, ast.FunctionDef)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child, within
        yield from _statements(child, within)
