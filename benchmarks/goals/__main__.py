"""Whether goals are met as often as a plan says.

``python -m benchmarks.goals [--quick] [--settled] [--set NAME ...] [--jobs 2]`` draws few rows,
states the probability that a fit to twice and to four times as many meets a goal, fits and tunes
again on these, and scores fresh rows. It writes goals.json and goals.md into results/, after every
few draws, and goes on from there when it is run again. ``--settled`` does the sets on which rules
may be chosen, instead of those that are reported.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.goals.cases import one_draw
from benchmarks.goals.page import page
from benchmarks.goals.sets import REPORTED, SETTLED
from benchmarks.trust.plan import say, spread

_ROOT = Path(__file__).resolve().parent.parent.parent
_RESULTS = _ROOT / "benchmarks" / "results"
_SCRATCH = _ROOT / "build" / "goals"
_DOCS = _ROOT / "docs" / "howto" / "plan.md"
_MARK = "<!-- written by python -m benchmarks.goals -->"
_DRAWS, _SETTLED_DRAWS, _QUICK_DRAWS = 30, 10, 2
_QUICK = ("diabetes", "linear target")
_ROUNDS = 4
"""Draws that each process does between two savings."""
# Rules are settled on other draws, too.
_FIRST, _FIRST_SETTLED = 0, 500


def main() -> None:
    """Do the draws that are missing, and write everything that has been measured."""
    parser = argparse.ArgumentParser(prog="benchmarks.goals", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two draws of two sets")
    parser.add_argument("--settled", action="store_true", help="the sets that rules come from")
    parser.add_argument("--set", action="append", help="only this set")
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    parser.add_argument("--again", action="store_true", help="do not go on from saved draws")
    parser.add_argument("--out", type=Path, default=None, help="where the results go")
    options = parser.parse_args()
    out = options.out or (_SCRATCH if options.quick else _RESULTS)
    out.mkdir(parents=True, exist_ok=True)
    rows = [] if options.again or options.quick else _read(out / "goals.json")
    done = {(row["set"], row["draw"]) for row in rows}
    todo = [call for call in _calls(options) if call not in done]
    step = _ROUNDS * options.jobs
    for i in range(0, len(todo), step):
        say(f"draw {i + 1} of {len(todo)}")
        for found in spread(one_draw, todo[i : i + step], options.jobs):
            rows += found
        _write(out, rows)
    _write(out, rows)
    seconds = sum({(r["set"], r["draw"]): r["seconds"] for r in rows}.values())
    say(f"{seconds:.0f} seconds of processor time in all")
    print((out / "goals.md").read_text())


def _calls(options: argparse.Namespace) -> list[tuple[str, int]]:
    """Return sets and draws, one draw of every set after the other."""
    names, first, draws = REPORTED, _FIRST, _DRAWS
    if options.settled:
        names, first, draws = SETTLED, _FIRST_SETTLED, _SETTLED_DRAWS
    if options.quick:
        names, draws = _QUICK, _QUICK_DRAWS
    names = [name for name in names if not options.set or name in options.set]
    return [(name, seed) for seed in range(first, first + draws) for name in names]


def _read(path: Path) -> list[dict[str, Any]]:
    return list(json.loads(path.read_text())) if path.exists() else []


def _write(out: Path, rows: list[dict[str, Any]]) -> None:
    """Save the numbers, and their page here and in the documentation."""
    place = {name: i for i, name in enumerate((*REPORTED, *SETTLED))}
    rows.sort(key=lambda row: (place[row["set"]], row["draw"]))
    lines = ",\n".join(json.dumps(row) for row in rows)
    (out / "goals.json").write_text(f"[\n{lines}\n]\n")
    text = page(rows)
    (out / "goals.md").write_text(f"# Goals met as often as stated\n\n{text}\n")
    if out == _RESULTS and rows and _DOCS.exists():
        before, _, _ = _DOCS.read_text().partition(_MARK)
        _DOCS.write_text(f"{before}{_MARK}\n\n{text}\n")


if __name__ == "__main__":
    main()
