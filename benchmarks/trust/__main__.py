"""How far the automatic model can be trusted.

``python -m benchmarks.trust [--quick] [--part NAME ...] [--set NAME ...] [--jobs 2]`` measures the
parts and sets that are named, or everything, and writes trust.md, and trust/ with one file of
numbers for each part, into results/. What is not named keeps the numbers of its last run.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from benchmarks.trust import coins, cost, fits, forecasts, honesty, predictions, refits
from benchmarks.trust.plan import FULL, QUICK, Plan, say

_ROOT = Path(__file__).resolve().parent.parent.parent
_RESULTS = _ROOT / "benchmarks" / "results"
_SCRATCH = _ROOT / "build" / "trust"
_DOCS = _ROOT / "docs" / "trust.md"
_MARK = "<!-- written by python -m benchmarks.trust -->"


class Part(NamedTuple):
    """What measures a part, and the sections that show it."""

    work: ModuleType
    pages: tuple[Callable[[list[dict[str, Any]]], str], ...]


PARTS = {
    "fits": Part(fits, (predictions.page, honesty.page)),
    "coins": Part(coins, (coins.page,)),
    "refits": Part(refits, (refits.page,)),
    "forecasts": Part(forecasts, (forecasts.page,)),
    "cost": Part(cost, (cost.page,)),
}
_ALSO = {"predictions": "fits", "honesty": "fits"}
"""Sections that share their fits."""


def main() -> None:
    """Measure what is asked for, and write everything that has been measured."""
    parser = argparse.ArgumentParser(prog="benchmarks.trust", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small part of the work")
    parser.add_argument("--part", action="append", choices=[*PARTS, *_ALSO], help="only this part")
    parser.add_argument("--set", action="append", help="only this set")
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    parser.add_argument("--out", type=Path, default=None, help="where the results go")
    options = parser.parse_args()
    out = options.out or (_SCRATCH if options.quick else _RESULTS)
    (out / "trust").mkdir(parents=True, exist_ok=True)
    asked = {_ALSO.get(part, part) for part in options.part or PARTS}
    for part in [part for part in PARTS if part in asked]:
        _run(part, QUICK if options.quick else FULL, options, out)
    write(out)
    print((out / "trust.md").read_text())


def _run(part: str, plan: Plan, options: argparse.Namespace, out: Path) -> None:
    """Measure the sets of one part, and save after each, for a run may be cut short."""
    work = PARTS[part].work
    for name in work.names(plan):
        if options.set and name not in options.set:
            continue
        begin = time.perf_counter()
        rows = work.measure(name, plan, options.jobs)
        _save(out / "trust" / f"{part}.json", name, rows, work.names(plan))
        write(out)
        say(f"{part}, {name}: {time.perf_counter() - begin:.0f} s")


def _save(path: Path, name: str, rows: list[dict[str, Any]], order: list[str]) -> None:
    """Put the rows of one set in the place of those from its last run."""
    kept = [row for row in _read(path) if row["set"] != name]
    place = {known: i for i, known in enumerate(order)}
    rows = sorted(kept + rows, key=lambda row: place.get(row["set"], len(place)))
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


def _read(path: Path) -> list[dict[str, Any]]:
    return list(json.loads(path.read_text())) if path.exists() else []


def write(out: Path) -> None:
    """Write the page of everything that has been measured, here and in the documentation."""
    sections: list[str] = []
    for part, (_, pages) in PARTS.items():
        if rows := _read(out / "trust" / f"{part}.json"):
            sections += [page(rows) for page in pages]
    text = "\n\n".join(sections)
    (out / "trust.md").write_text(f"# How far to trust it\n\n{text}\n")
    if out == _RESULTS and _DOCS.exists():
        before, _, _ = _DOCS.read_text().partition(_MARK)
        _DOCS.write_text(f"{before}{_MARK}\n\n{text}\n")


if __name__ == "__main__":
    main()
