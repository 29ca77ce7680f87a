"""A plugin for pytest: it writes down which lines of the core each test runs, and its seconds.

There is one file for each file of tests. Lines that a fixture runs for several tests count for all
tests of its file. Caches are emptied before each test, so that what is cached runs in all of them.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage

from benchmarks.mutants.core import ROOT, core_files, digest

_FOLDER = ROOT / "build" / "mutants"
EVERY = "every test"
"""What lines are written under that a fixture runs for all tests of its file."""


def place(tests: str) -> Path:
    """Return where the record of a file of tests is."""
    return _FOLDER / (tests.replace("/", ".") + ".json")


def write(tests: str, found: dict[str, Any]) -> None:
    """Write the record of a file of tests."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    place(tests).write_text(json.dumps({"digest": digest(tests)} | found), encoding="utf-8")


class Tracing:
    """Lines and seconds of the file of tests that is running."""

    def __init__(self) -> None:
        self._coverage: Any = None
        self._now = EVERY
        self._seconds: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> Iterator[None]:
        """Trace a test; after the last one of a file write down what was found."""
        if self._coverage is None:
            self._start()
        _empty_caches()
        self._switch(item.nodeid)
        result = yield
        if nextitem is None or _file(nextitem) != _file(item):
            self._write(_file(item))
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Count what several tests share for all of them."""
        before = self._now
        if fixturedef.scope != "function":
            self._switch(EVERY)
        try:
            return (yield)
        finally:
            self._switch(before)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add up the seconds of setting up, running and clearing away."""
        self._seconds[report.nodeid] += report.duration

    def _start(self) -> None:
        files = [str(ROOT / name) for name in core_files()]
        self._coverage = Coverage(data_file=None, config_file=False, include=files)
        # Not every file of tests runs the core.
        self._coverage.set_option("run:disable_warnings", ["no-data-collected"])
        self._coverage.start()

    def _switch(self, name: str) -> None:
        self._now = name
        if self._coverage is not None:
            self._coverage.switch_context(name)

    def _write(self, tests: str) -> None:
        self._coverage.stop()
        data, self._coverage = self._coverage.get_data(), None
        lines: dict[str, dict[str, list[int]]] = {}
        for path in sorted(data.measured_files()):
            own = lines.setdefault(str(Path(path).relative_to(ROOT)), defaultdict(list))
            for line, names in sorted(data.contexts_by_lineno(path).items()):
                for name in filter(None, names):
                    own[name].append(line)
        found = {
            "core": {name: digest(name) for name in core_files()},
            "seconds": {k: round(v, 3) for k, v in self._seconds.items()},
            "lines": lines,
        }
        self._seconds.clear()
        write(tests, found)


def _file(item: Any) -> str:
    return str(item.nodeid).split("::")[0]


def _empty_caches() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith(("cavity", "test_", "common", "frozen")):
            for value in list(vars(module).values()):
                clear = getattr(value, "cache_clear", None)
                if callable(clear):
                    clear()


def pytest_configure(config: Any) -> None:
    """Trace what this process runs."""
    config.pluginmanager.register(Tracing())
