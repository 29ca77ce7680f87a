"""Solve random problems and check what must hold of every answer.

``python -m farm [--problems 200] [--hours H] [--jobs 2] [--seed 0] [--only NUMBER] [--kind KIND]``
solves problems 0, 1, … of a seed, or goes on until H hours have passed. Every problem is one line
of build/farm/SEED.jsonl as soon as it is solved, and a run that was cut short goes on where it
stopped. Failures are printed with what repeats them, made smaller, and kept in farm/cases.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import count
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
    path = options.out / f"{options.seed}.jsonl"
    if options.only is not None:
        found = Record.of(options.seed, options.only)
        print("\n".join(map(str, found.faults)) or "all properties hold")
        return bool(found.faults)
    done = solved(path)
    for batch in _batches(options, set(done)):
        jobs = (delayed(Record.of)(options.seed, number) for number in batch)
        for record in Parallel(n_jobs=options.jobs, return_as="generator_unordered")(jobs):
            append(path, record)
            done[record.number] = record
            _tell(options, record)
    print(totals(done.values()))
    return any(record.faults for record in done.values())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="farm", description=__doc__)
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--hours", type=float, help="instead of a number of problems")
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="NUMBER", help="solve one problem")
    parser.add_argument("--kind", choices=KINDS, action="append", help="problems of this kind only")
    parser.add_argument("--keep", action="store_true", help="shrink failures and keep them")
    parser.add_argument("--out", type=Path, default=_FOLDER)
    return parser.parse_args()


def _batches(options: argparse.Namespace, done: set[int]) -> Iterator[list[int]]:
    """Yield numbers of problems to solve, a few for each process."""
    end = time.monotonic() + 3600.0 * (options.hours or 0.0)
    numbers = iter(count() if options.hours else range(options.problems))
    wanted = options.kind or list(KINDS)
    todo = (
        number
        for number in numbers
        if number not in done and problem(options.seed, number)["kind"] in wanted
    )
    while not options.hours or time.monotonic() < end:
        batch = [number for number, _ in zip(todo, range(_BATCH * options.jobs), strict=False)]
        if not batch:
            return
        yield batch


def _tell(options: argparse.Namespace, record: Record) -> None:
    """Print the failures of a problem, each rule once, and keep a smaller problem of each."""
    for fault in {(one.rule, one.of): one for one in record.faults}.values():
        again = f"python -m farm --seed {options.seed} --only {record.number}"
        print(f"{again}: {fault.of}: {fault.rule}: {fault.detail}", flush=True)
        if options.keep:
            place = keep(shrunk(problem(options.seed, record.number), fault), fault, CASES)
            print(f"  kept as {place}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
