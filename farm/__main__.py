"""Solve random problems and check what must hold of every answer.

``python -m farm [--problems 200] [--hours H] [--jobs 2] [--seed 0] [--only NUMBER] [--kind KIND]``
solves problems 0, 1, … of a seed, or goes on until H hours have passed. Every problem is one line
of build/farm/SEED.jsonl as soon as it is solved, and a run that was cut short goes on where it
stopped. Failures are printed with what repeats them, made smaller, and kept in farm/cases;
``--again`` solves those of earlier runs again, and counts what has been mended.
"""

import argparse
import sys
import time
from collections.abc import Collection
from itertools import count, islice
from pathlib import Path

from joblib import Parallel, delayed

from farm.kinds import KINDS, problem
from farm.record import Record, append, solved, totals
from farm.shrink import CASES, keep, shrunk

_FOLDER = Path("build") / "farm"
_BATCH = 20
"""Problems between two looks at the clock, for each process."""


def main() -> int:
    """Run the farm; the exit code is 1 if anything failed."""
    options = _options()
    if options.only is not None:
        found = Record.of(options.seed, options.only)
        print("\n".join(map(str, found.faults)) or "all properties hold")
        return bool(found.faults)
    how = {"hours": options.hours, "kinds": options.kind, "keep_failures": options.keep}
    how |= {"again": options.again}
    done = solve_all(options.seed, options.problems, options.jobs, out=options.out, **how)
    print(totals(done.values()))
    return any(record.faults for record in done.values())


def solve_all(
    seed: int,
    problems: int,
    jobs: int,
    *,
    hours: float | None = None,
    kinds: Collection[str] | None = None,
    keep_failures: bool = False,
    again: bool = False,
    out: Path = _FOLDER,
) -> dict[int, Record]:
    """Solve problems that are not solved yet, and return all of them by their numbers.

    With ``again``, those that have failed in an earlier run are solved, too.
    """
    path = out / f"{seed}.jsonl"
    done = solved(path)
    numbers = count() if hours else range(problems)
    wanted = kinds or KINDS
    known = {k for k, record in done.items() if not (again and record.faults)}
    todo = (k for k in numbers if k not in known and problem(seed, k)["kind"] in wanted)
    end = time.monotonic() + 3600.0 * (hours or 1e6)
    while time.monotonic() < end and (batch := list(islice(todo, _BATCH * jobs))):
        run = Parallel(n_jobs=jobs, return_as="generator_unordered")
        for record in run(delayed(Record.of)(seed, number) for number in batch):
            append(path, record)
            done[record.number] = record.after(done.get(record.number))
            _tell(seed, record, keep_failures)
    return done


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="farm", description=__doc__)
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--hours", type=float, help="instead of a number of problems")
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="NUMBER", help="solve one problem")
    parser.add_argument("--kind", choices=KINDS, action="append", help="problems of this kind only")
    parser.add_argument("--again", action="store_true", help="solve what has failed again")
    parser.add_argument("--keep", action="store_true", help="shrink failures and keep them")
    parser.add_argument("--out", type=Path, default=_FOLDER)
    return parser.parse_args()


def _tell(seed: int, record: Record, keep_failures: bool) -> None:
    """Print the failures of a problem, each rule once, and keep a smaller problem of each."""
    for fault in {(one.rule, one.of): one for one in record.faults}.values():
        again = f"python -m farm --seed {seed} --only {record.number}"
        print(f"{again}: {fault.of}: {fault.rule}: {fault.detail}", flush=True)
        if keep_failures:
            place = keep(shrunk(problem(seed, record.number), fault), fault, CASES)
            print(f"  kept as {place}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
