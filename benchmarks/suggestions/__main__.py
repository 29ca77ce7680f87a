"""Which rows next: suggestions beside uncertainty sampling, random rows and scikit-activeml.

``python -m benchmarks.suggestions [--quick] [--jobs 2] [--set NAME ...] [--strategy NAME ...]``
writes suggestions.json and suggestions.md into results/, and the tables into the how-to. Races
that were run before are kept, so a run that was cut short continues where it stopped.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.suggestions.page import page
from benchmarks.suggestions.races import cost, measure
from benchmarks.suggestions.sets import CHOSEN_ON, REPORTED
from benchmarks.suggestions.strategies import strategies
from benchmarks.trust.plan import say, spread

_ROOT = Path(__file__).resolve().parent.parent.parent
_RESULTS = _ROOT / "benchmarks" / "results"
_SCRATCH = _ROOT / "build" / "suggestions"
_DOCS = _ROOT / "docs" / "howto" / "suggest.md"
_MARK = "<!-- written by python -m benchmarks.suggestions -->"
_SEEDS, _QUICK = 20, 1


def main() -> None:
    """Run the races that are missing, and write everything that has been measured."""
    parser = argparse.ArgumentParser(prog="benchmarks.suggestions", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed of two sets")
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    parser.add_argument("--set", action="append", help="only this set")
    parser.add_argument("--strategy", action="append", help="only this strategy")
    parser.add_argument("--seeds", type=int, default=_SEEDS)
    parser.add_argument("--out", type=Path, default=None, help="where the results go")
    options = parser.parse_args()
    out = options.out or (_SCRATCH if options.quick else _RESULTS)
    out.mkdir(parents=True, exist_ok=True)
    found = _read(out)
    names = options.set or (["ring", "crabs"] if options.quick else [*REPORTED, *CHOSEN_ON])
    for name in names:
        _run(name, options, found)
        _write(out, found)
        say(f"{name}: {sum(run['seconds'] for run in found['races']):.0f} s of CPU so far")
    found["cost"] = cost()
    _write(out, found)
    print((out / "suggestions.md").read_text())


def _run(name: str, options: argparse.Namespace, found: dict[str, Any]) -> None:
    """Run the races of one set that are missing."""
    seeds = _QUICK if options.quick else options.seeds
    known = {(run["set"], run["strategy"], run["seed"]) for run in found["races"]}
    calls = [(name, s, seed) for seed in range(seeds) for s in options.strategy or strategies()]
    missing = [call for call in calls if call not in known]
    found["races"] += spread(measure, missing, options.jobs)


def _read(out: Path) -> dict[str, Any]:
    path = out / "suggestions.json"
    return dict(json.loads(path.read_text())) if path.exists() else {"races": [], "cost": {}}


def _write(out: Path, found: dict[str, Any]) -> None:
    """Write numbers and page, here and in the documentation."""
    races = ",\n".join(json.dumps(run) for run in found["races"])
    cost = json.dumps(found["cost"])
    (out / "suggestions.json").write_text(f'{{"cost": {cost}, "races": [\n{races}\n]}}\n')
    text = page(found["races"], list(REPORTED), list(CHOSEN_ON), found["cost"])
    (out / "suggestions.md").write_text(f"# Which rows to label next\n\n{text}\n")
    if out == _RESULTS:
        before, _, _ = _DOCS.read_text().partition(_MARK)
        _DOCS.write_text(f"{before}{_MARK}\n\n{text}\n")


if __name__ == "__main__":
    main()
