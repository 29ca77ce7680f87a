"""Put 200 small faults into the core, one by one, and see whether the tests notice.

    python -m benchmarks.mutants [--count N] [--seed S] [--jobs J] [--only TEXT] [--missed]
                                 [--all] [--quick]

First all tests are run to record which lines of the core each of them runs (build/mutants); those
of files that have changed since are run again. Then each fault is put in, and the tests that run
its line are run. It writes results/mutants.json after each fault, and results/mutants.md. A run
that was cut short goes on where it stopped. Faults that no test noticed are listed with the reason
that is given for them in benchmarks/mutants/reasons.json.
"""

import argparse
import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.mutants.core import ROOT
from benchmarks.mutants.draw import chosen
from benchmarks.mutants.page import page, share
from benchmarks.mutants.record import Record, make
from benchmarks.mutants.trial import SECONDS, noticed

RESULTS = ROOT / "benchmarks" / "results" / "mutants.json"
REASONS = Path(__file__).with_name("reasons.json")


def main() -> None:
    """Go through the faults, and write down which were noticed."""
    options = _options()
    draws = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    drawn = chosen(14 if options.quick else options.count, options.seed)
    found = {} if options.quick else draws.get(str(options.seed), {})
    # What is no longer drawn has left the sources.
    found = {name: value for name, value in found.items() if name in drawn}
    todo = [name for name in drawn if _wanted(name, found, options)]
    make(options.jobs)
    record, seconds = Record(), math.inf if options.all else SECONDS

    def run(name: str) -> None:
        found[name] = noticed(*drawn[name], record, seconds)
        print("noticed" if found[name]["noticed"] else "MISSED ", name, flush=True)
        if not options.quick:
            _write(draws | {str(options.seed): {k: found[k] for k in drawn if k in found}})

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(run, todo))
    print(f"{share(found):.1%} of {len(found)} faults noticed")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="faults whose name contains this, again")
    parser.add_argument("--missed", action="store_true", help="faults that were missed, again")
    parser.add_argument("--all", action="store_true", help="ask all tests, however long they take")
    parser.add_argument("--quick", action="store_true", help="fourteen faults; nothing is written")
    return parser.parse_args()


def _wanted(name: str, found: dict[str, Any], options: argparse.Namespace) -> bool:
    """Return whether a fault is to be tried."""
    if options.only:
        return options.only in name
    return name not in found or (options.missed and not found[name]["noticed"])


def _write(draws: dict[str, Any]) -> None:
    reasons = json.loads(REASONS.read_text(encoding="utf-8")) if REASONS.exists() else {}
    RESULTS.write_text(json.dumps(draws, indent=1) + "\n", encoding="utf-8")
    RESULTS.with_suffix(".md").write_text(page(draws, reasons), encoding="utf-8")


if __name__ == "__main__":
    main()
