"""Which lines and branches the tests run: ``python -m farm.coverage [pytest's arguments]``.

The whole suite runs on all cores; the exit code is 1 if the tests fail or too little is covered.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["LEAST", "main", "measured", "shares"]

LEAST = {"lines": 97.0, "branches": 92.0}
"""Percent."""
_FOLDER = Path("build") / "coverage"


def shares(totals: dict[str, int]) -> dict[str, float]:
    """Return the percentages of lines and of branches that have run."""
    return {
        "lines": 100.0 * totals["covered_lines"] / max(1, totals["num_statements"]),
        "branches": 100.0 * totals["covered_branches"] / max(1, totals["num_branches"]),
    }


def main(arguments: list[str]) -> int:
    """Run the tests, report what they cover, and compare it with what is wanted."""
    failed, found = measured(arguments)
    for name, share in found.items():
        print(f"{name}: {share:.1f} %, at least {LEAST[name]:g} % wanted")
    return int(failed or any(found[name] < LEAST[name] for name in LEAST))


def measured(arguments: list[str]) -> tuple[bool, dict[str, float]]:
    """Run the tests; return whether some failed, and the shares that have run."""
    shutil.rmtree(_FOLDER, ignore_errors=True)
    _FOLDER.mkdir(parents=True)
    tests = ["-n", "auto", "--dist", "worksteal", "-q", *arguments]
    failed = _coverage("run", "-m", "pytest", *tests)
    _coverage("combine", "--quiet")
    _coverage("report", "--skip-covered", "--sort=miss", "--show-missing")
    report = _FOLDER / "report.json"
    _coverage("json", "--quiet", "-o", str(report))
    return bool(failed), shares(json.loads(report.read_text(encoding="utf-8"))["totals"])


def _coverage(*words: str) -> int:
    return subprocess.run([sys.executable, "-m", "coverage", *words], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
