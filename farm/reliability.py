"""All figures of the page on reliability, by one command.

``python -m farm.reliability [--part NAME ...] [--quick] [--jobs 2] [--problems N]`` measures the
parts that are named, or all, writes farm/results/PART.json and docs/reliability.md. What is not
measured keeps the numbers of its last run; problems solved before are not solved again, unless they
failed, and neither are faults put in again that have been tried. ``--part again``, which has to be
named, solves all problems once more from the first on, whatever was found before.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.mutants.page import counts

from farm import coverage, interrupts, kills, streams, workers
from farm.__main__ import solve_all
from farm.page import page
from farm.record import summary

_ROOT = Path(__file__).resolve().parent.parent
RESULTS = _ROOT / "farm" / "results"
_DOCS = _ROOT / "docs" / "reliability.md"
_AGAIN = Path("build") / "farm" / "again"
_MUTANTS = _ROOT / "benchmarks" / "results" / "mutants.json"


class Plan(NamedTuple):
    """How much to do, and in how many processes."""

    problems: int
    updates: int
    kills: int
    """At most of each kind of writer."""
    workers: int
    moments: int
    minutes: float
    jobs: int


def _problems(plan: Plan) -> Any:
    done = solve_all(0, plan.problems, plan.jobs, again=True)
    return summary(done.values())


def _again(plan: Plan) -> Any:
    done = solve_all(0, plan.problems, plan.jobs, out=_AGAIN)
    return summary(done.values())


def _streams(plan: Plan) -> Any:
    return {name: streams.drift(name, plan.updates) for name in streams.STREAMS}


def _kills(plan: Plan) -> Any:
    found = {task: kills.kill_all(task, most=plan.kills) for task in kills.TASKS}
    return found | {"workers": workers.kill_workers(plan.workers)}


def _interrupts(plan: Plan) -> Any:
    return {name: interrupts.moments(task, plan.moments) for name, task in interrupts.TASKS.items()}


def _fuzz(plan: Plan) -> Any:
    # Of the parts only this one needs Hypothesis and the extra [report].
    from farm.fuzz import fuzz

    return fuzz(plan.minutes)


def _coverage(plan: Plan) -> Any:
    # A look at the machinery itself takes one file of tests.
    failed, found = coverage.measured([] if plan.minutes > 1.0 else ["tests/test_sites.py"])
    return found | {"failed": failed}


def _mutants(plan: Plan) -> Any:
    # A fault takes half a minute, and the record of lines before them half an hour.
    if plan.minutes > 1.0:
        command = [sys.executable, "-m", "benchmarks.mutants", "--jobs", str(plan.jobs)]
        subprocess.run(command, cwd=_ROOT, check=True)
    return counts(json.loads(_MUTANTS.read_text(encoding="utf-8")))


PARTS: dict[str, Callable[[Plan], Any]] = {
    "problems": _problems,
    "again": _again,
    "streams": _streams,
    "kills": _kills,
    "interrupts": _interrupts,
    "fuzz": _fuzz,
    "coverage": _coverage,
    "mutants": _mutants,
}


def main() -> int:
    """Measure what is asked for, and write the page of everything that has been measured."""
    parser = argparse.ArgumentParser(prog="farm.reliability", description=__doc__)
    parser.add_argument("--part", action="append", choices=PARTS)
    parser.add_argument("--quick", action="store_true", help="a small part, into build/farm")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--problems", type=int, default=10_000)
    options = parser.parse_args()
    plan = Plan(options.problems, 10_000_000, 1000, 20, 200, 10.0, options.jobs)
    out, docs = RESULTS, _DOCS
    if options.quick:
        plan = Plan(20, 64_000, 3, 1, 5, 0.1, options.jobs)
        out, docs = Path("build/farm/results"), Path("build/farm/reliability.md")
    out.mkdir(parents=True, exist_ok=True)
    for name in options.part or [name for name in PARTS if name != "again"]:
        begin = time.perf_counter()
        found = PARTS[name](plan)
        (out / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"{name}: {time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
    docs.write_text(page(out), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
