"""Write the frozen numbers afresh: ``python -m tests.frozen.write [middle] [farm] ...``.

To be run on a revision whose numbers are right, and on no other.
"""

import sys

from . import farm, integrals, models, problems, save

__all__ = ["farms", "middle", "operations", "works"]


def middle():
    """Return the numbers of all problems, estimators, curves, streams and tuned kernels."""
    found = {key: problems.solve(key) for key in problems.PROBLEMS}
    for room, entries in models.ROOMS.items():
        found |= {f"{room} | {name}": make() for name, make in entries.items()}
    return found


def farms():
    """Return, for each method, how many of its hostile problems converge."""
    return {name: farm.converged(name) for name in farm.SIZES}


def operations():
    """Return what each job takes."""
    # Not part of the source distribution.
    from benchmarks.operations import measure_all

    return measure_all()


def works():
    """Return what each job of integrals costs."""
    return {job: integrals.work(job) for job in integrals.JOBS}


def main(wanted):
    """Write the files asked for, or all."""
    writers = {"middle": middle, "farm": farms, "operations": operations, "integrals": works}
    for name in wanted or writers:
        save(name, writers[name]())


if __name__ == "__main__":
    main(sys.argv[1:])
