"""Learning curves by theory against refits, forecasts, suspects and speed.

``python -m benchmarks.curves [--table] [--classes] [--forecast] [--suspects] [--speed] [--quick]``
does what is named, or everything, and writes curves.json and curves.md into results/. A part that
is not named keeps the numbers of its last run.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.exceptions import ConvergenceWarning

from benchmarks.curves.agreement import classes, classes_page, table, table_page
from benchmarks.curves.forecasts import forecast, forecast_page
from benchmarks.curves.speed import speed, speed_page
from benchmarks.curves.suspects import suspects, suspects_page
from benchmarks.curves.tasks import FULL, QUICK, Plan

_ROOT = Path(__file__).resolve().parent.parent.parent
_RESULTS = _ROOT / "benchmarks" / "results"
_SCRATCH = _ROOT / "build" / "curves"
_DOCS = _ROOT / "docs" / "validation.md"
_MARK = "<!-- written by python -m benchmarks.curves -->"


class Part(NamedTuple):
    """One thing to measure, and how to show it."""

    measure: Callable[[Plan], Any]
    page: Callable[[Any], str]


PARTS = {
    "table": Part(table, table_page),
    "classes": Part(classes, classes_page),
    "forecast": Part(forecast, forecast_page),
    "suspects": Part(suspects, suspects_page),
    "speed": Part(speed, speed_page),
}


def main() -> None:
    """Measure what is asked for, and write everything that has been measured."""
    parser = argparse.ArgumentParser(prog="benchmarks.curves", description=__doc__)
    for part, (job, _) in PARTS.items():
        parser.add_argument(f"--{part}", action="store_true", help=_line(job))
    parser.add_argument("--quick", action="store_true", help="a small part of the work")
    parser.add_argument("--out", type=Path, default=None, help="where the results go")
    options = parser.parse_args()
    # Most kernels here leave inputs out by a length scale at its bound.
    warnings.simplefilter("ignore", ConvergenceWarning)
    out = options.out or (_SCRATCH if options.quick else _RESULTS)
    out.mkdir(parents=True, exist_ok=True)
    results = _read(out / "curves.json")
    asked = [part for part in PARTS if getattr(options, part)] or list(PARTS)
    for part in asked:
        begin = time.perf_counter()
        found = PARTS[part].measure(QUICK if options.quick else FULL)
        seconds = round(time.perf_counter() - begin)
        results[part] = {"quick": options.quick, "seconds": seconds, "found": found}
        _write(out, results)
    print((out / "curves.md").read_text())


def _line(job: Callable[[Plan], Any]) -> str:
    """Return a job's first line, for argparse, which takes a per cent sign for a field."""
    return (job.__doc__ or "").splitlines()[0].lower().replace("%", "%%")


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())) if path.exists() else {}


def _write(out: Path, results: dict[str, Any]) -> None:
    (out / "curves.json").write_text(json.dumps(results, indent=1) + "\n")
    pages = [PARTS[part].page(results[part]["found"]) for part in PARTS if part in results]
    text = "\n\n".join(pages)
    (out / "curves.md").write_text("# Learning curves by theory\n\n" + text + "\n")
    if out == _RESULTS and _DOCS.exists():
        before, _, _ = _DOCS.read_text().partition(_MARK)
        _DOCS.write_text(f"{before}{_MARK}\n\n{text}\n")


if __name__ == "__main__":
    main()
