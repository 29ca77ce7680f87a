"""Run the benchmarks of large tables: ``python -m benchmarks.large [--quick] [--part NAME]``."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.large import page
from benchmarks.large.peers import PEERS
from benchmarks.large.plan import FULL, QUICK, Plan
from benchmarks.measure import child, cpu_seconds, threads

_ROOT = Path(__file__).resolve().parents[2]
_RESULTS, _SCRATCH = _ROOT / "benchmarks" / "results", _ROOT / "build" / "large"


class Step(NamedTuple):
    """One process: what it is asked, and the row of results that the answer completes."""

    row: dict[str, Any]
    job: dict[str, Any]


def peers(plan: Plan) -> Iterator[Step]:
    """Yield every contestant on every table."""
    for table, n in plan.tables:
        for name in PEERS:
            row = {"part": "peers", "table": table, "n": n, "m": plan.points, "name": name}
            job = {key: row[key] for key in ("table", "n", "m", "name")}
            yield Step(row, {"job": "peer", **job})


def passes(plan: Plan) -> Iterator[Step]:
    """Yield evaluations against n at the middle m, and against m at the second largest n."""
    n, m = plan.n_passes[-2], plan.m_passes[len(plan.m_passes) // 2]
    sizes = {(each, m): None for each in plan.n_passes} | {
        (n, each): None for each in plan.m_passes
    }
    for n, m in sizes:
        size = {"n": n, "m": m}
        row = {"part": "passes", "what": "time", **size}
        yield Step(row, {"job": "passes", "rounds": plan.rounds, **size})
        yield Step({**row, "what": "memory"}, {"job": "memory", **size})


def file(plan: Plan) -> Iterator[Step]:
    """Yield the fit of a Parquet file, after writing it."""
    size = {"n": plan.n_file, "m": plan.m_file}
    row, path = {"part": "file", **size}, _path(plan.n_file)
    yield Step({**row, "what": "write"}, {"job": "write", "path": path, "n": plan.n_file})
    yield Step({**row, "what": "fit"}, {"job": "file", "path": path, **size})


def _path(n: int) -> str:
    _SCRATCH.mkdir(parents=True, exist_ok=True)
    return str(_SCRATCH / f"rows-{n}.parquet")


def curve(plan: Plan) -> Iterator[Step]:
    """Yield the learning curve."""
    size = {"n": plan.n_curve, "m": plan.points}
    yield Step({"part": "curve", **size}, {"job": "curve", **size})


def workers(plan: Plan) -> Iterator[Step]:
    """Yield tables on two worker processes, and in a file read by one process of two threads."""
    for n in plan.n_workers:
        path = _path(n)
        yield Step({"part": "write", "n": n}, {"job": "write", "path": path, "n": n})
        # Of more rows nothing is kept anyway.
        for kept in (None, 0.0) if n == min(plan.n_workers) else (None,):
            row = {"part": "workers", "n": n, "m": plan.m_workers}
            job, rest = {"n": n, "m": plan.m_workers, "kept": kept}, "" if kept is None else ", new"
            yield Step({**row, "what": "workers" + rest}, {"job": "workers", **job})
            yield Step({**row, "what": "file" + rest}, {"job": "beside", "path": path, **job})


PARTS: dict[str, Callable[[Plan], Iterator[Step]]] = {
    part.__name__: part for part in (peers, passes, file, curve, workers)
}


def main() -> None:
    """Measure what is asked for and not there yet, and write the page after each step."""
    parser = argparse.ArgumentParser(prog="benchmarks.large", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small tables, a few minutes")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part")
    parser.add_argument("--name", action="append", choices=PEERS, help="only this contestant")
    parser.add_argument("--again", action="store_true", help="measure again what is there")
    parser.add_argument("--out", type=Path, default=None, help="where the results go")
    options = parser.parse_args()
    plan = QUICK if options.quick else FULL
    out = options.out or (_SCRATCH if options.quick else _RESULTS)
    out.mkdir(parents=True, exist_ok=True)
    results = Results(out, _about(plan))
    for part in options.part or PARTS:
        for step in PARTS[part](plan):
            if options.name and step.row.get("name", options.name[0]) not in options.name:
                continue
            if options.again or not results.has(step.row):
                _do(step, plan, results)
    results.save()
    print((out / "large.md").read_text())


def _do(step: Step, plan: Plan, results: "Results") -> None:
    begin, before = time.perf_counter(), cpu_seconds(children=True)
    answer = child(plan.timeout, "benchmarks.large.jobs", **step.job)
    seconds = time.perf_counter() - begin
    burden = {"cpu_seconds": cpu_seconds(children=True) - before, "load": os.getloadavg()[1]}
    if answer.get("failed", "").startswith("ModuleNotFoundError"):
        answer = {"skipped": answer["failed"]}
    results.add({**step.row, **burden, **answer, "all_seconds": seconds})
    end = answer.get("failed") or answer.get("skipped") or "done"
    print(f"{step.job}: {end}, {seconds:.0f} s", file=sys.stderr, flush=True)


class Results:
    """What has been measured, kept in a file."""

    def __init__(self, out: Path, about: dict[str, Any]) -> None:
        self._out, self._about = out, about
        path = out / "large.json"
        self._rows = json.loads(path.read_text())["rows"] if path.exists() else []

    def has(self, row: dict[str, Any]) -> bool:
        """Whether there is an answer; what was skipped is tried again."""
        return any(_same(row, old) and "skipped" not in old for old in self._rows)

    def add(self, row: dict[str, Any]) -> None:
        """Put a row in the place of an older one, and write the file and the page."""
        named = {key: row[key] for key in _KEYS if key in row}
        self._rows = [old for old in self._rows if not _same(named, old)] + [row]
        self.save()

    def save(self) -> None:
        """Write the file and the page."""
        found = {"about": self._about, "rows": self._rows}
        (self._out / "large.json").write_text(json.dumps(found, indent=1) + "\n")
        (self._out / "large.md").write_text(page.page(self._about, self._rows))


_KEYS = ("part", "what", "table", "n", "m", "name")


def _same(row: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(row.get(key) == other.get(key) for key in _KEYS)


def _about(plan: Plan) -> dict[str, Any]:
    packages = {who.package for who in PEERS.values()} | {"numpy", "scipy", "torch"}
    return {
        "quick": plan.quick,
        "threads": threads(),
        "cores": os.cpu_count(),
        "timeout": plan.timeout,
        "versions": {name: _version(name) for name in sorted(packages)},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    main()
