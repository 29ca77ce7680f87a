"""A plugin for pytest: of what is collected it runs the tests that a file names, in that order."""

import json
import os
import resource
from pathlib import Path
from typing import Any

import pytest

_MEMORY = 8 << 30
"""Bytes: a fault must not take the whole machine."""


def pytest_configure() -> None:
    """Limit the memory."""
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Choose and sort the tests."""
    names = json.loads(Path(os.environ["MUTANTS_TESTS"]).read_text(encoding="utf-8"))
    place = {name: k for k, name in enumerate(names)}
    items[:] = sorted(
        (item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid]
    )
