"""Run all benchmarks: ``python -m benchmarks [--quick] [--out FOLDER]``."""

import argparse
import json
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import cost, tables, work
from benchmarks.contestants import CONTESTANTS, PEERS
from benchmarks.measure import DISTURBANCES, child, median, threads
from benchmarks.plan import FULL, QUICK

_HERE = Path(__file__).resolve().parent


def main() -> None:
    """Measure, print and write everything."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller, once, in two minutes")
    parser.add_argument("--out", type=Path, default=_HERE / "results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    plan = QUICK if options.quick else FULL
    begin = time.perf_counter()
    about = _about(options.quick)
    absent = {name: p["reason"] for name, p in about["peers"].items() if not p["installed"]}
    rows = [*work.floors(plan, _say), *work.evaluations(plan, absent, _say)]
    fit_rows, fits = work.fits(plan, absent, _say)
    rows += [*fit_rows, *work.own(plan, _say)]
    series = cost.measure(plan, absent, _say)
    about["seconds"] = round(time.perf_counter() - begin)
    about["others"], about["most_others"] = median(DISTURBANCES), max(DISTURBANCES)
    _write(options.out, about, rows, fits, series)


def _write(out: Path, about: dict[str, Any], rows: Any, fits: Any, series: Any) -> None:
    text = tables.page(about, rows, fits, series)
    result = {"about": about, "bars": [row._asdict() for row in rows], "fits": fits}
    (out / "latest.json").write_text(json.dumps(result, indent=1) + "\n")
    (out / "latest.md").write_text(text)
    (out / "cost.json").write_text(json.dumps(series, indent=1) + "\n")
    cost.draw(series, out / "cost.png")
    print(text)


def _about(quick: bool) -> dict[str, Any]:
    """Say what ran where; a peer that is missing is reported with the reason."""
    _say("who is here")
    return {
        "quick": quick,
        "threads": threads(),
        "processor": _processor(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("cavity", "numpy", "scipy")},
        "peers": {name: _state(name) for name in PEERS},
    }


def _state(peer: str) -> dict[str, Any]:
    found = child(120.0, job="version", contestant=peer)
    if "version" in found:
        return {"installed": True, "version": found["version"]}
    failed = _pip_failures().get(CONTESTANTS[peer].library, found["failed"])
    return {"installed": False, "reason": f"not installed: {failed}"}


def _pip_failures() -> dict[str, str]:
    """Return why pip could not install what it could not, as `benchmarks.install` noted."""
    notes = Path(sys.prefix) / "peers.json"
    return dict(json.loads(notes.read_text())) if notes.exists() else {}


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.machine()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
