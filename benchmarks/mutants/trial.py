"""Do the tests notice a fault? They are run with it, in a copy of the sources."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.mutants.core import ROOT
from benchmarks.mutants.faults import Fault
from benchmarks.mutants.record import Chosen, Record

FIRST = 12
"""So many tests are run first: most faults need no more."""
SECONDS = 60.0
"""Further tests of a fault may take this long by the record."""
_NO_END = 5.0
"""After so many times the expected seconds a fault counts as noticed: a loop has no end."""


def noticed(name: str, fault: Fault, record: Record, seconds: float = SECONDS) -> dict[str, Any]:
    """Return the test that notices a fault, if there is one, and how many of those were asked."""
    running = record.tests(name, fault.line)
    first, left = running[:FIRST], seconds
    further = []
    for each in running[FIRST:]:
        left -= each.seconds
        if left > 0.0:
            further.append(each)
    by = None
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        _copy(copy)
        target = copy / name
        target.write_text(fault.into(target.read_text(encoding="utf-8")), encoding="utf-8")
        for tests in (first, further):
            by = by or (run(copy, tests) if tests else None)
    return {
        "noticed": by is not None,
        "by": by or "",
        "asked": len(first) + len(further),
        "running": len(running),
    }


def _copy(folder: Path) -> None:
    """Copy the sources, and link to all else."""
    for path in ROOT.iterdir():
        if path.name == "src":
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, folder / "src", ignore=ignored)
        elif path.name not in ("build", ".git"):
            (folder / path.name).symlink_to(path)


def run(folder: Path, tests: list[Chosen]) -> str | None:
    """Run tests there until one fails; return its name and how it fails."""
    names = folder / "names.json"
    names.write_text(json.dumps([each.name for each in tests]), encoding="utf-8")
    threads = dict.fromkeys(("OMP", "OPENBLAS", "MKL"), "1")
    environment = os.environ | {f"{key}_NUM_THREADS": one for key, one in threads.items()}
    environment |= {"PYTHONPATH": f"{folder / 'src'}:{folder}", "PYTHONDONTWRITEBYTECODE": "1"}
    environment["MUTANTS_TESTS"] = str(names)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no"]
    options += ["-p", "benchmarks.mutants.choosing", *dict.fromkeys(each.file for each in tests)]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120.0 + _NO_END * sum(each.seconds for each in tests),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "no end"
    return _failure(done)


def _failure(done: subprocess.CompletedProcess[str]) -> str | None:
    """Return the line that says what failed."""
    if done.returncode in (0, 5):  # 5: none of the tests has kept its name
        return None
    lines = done.stdout.splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return failed[0][:160] if failed else (done.stdout + done.stderr)[-160:].strip()
