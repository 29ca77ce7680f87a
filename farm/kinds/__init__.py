"""One file for each kind of problem; a kind is a function that checks a problem into a ledger."""

from collections.abc import Callable
from typing import NamedTuple

from farm.draw import Spec, draw
from farm.kinds import (
    answers,
    classes,
    commands,
    curves,
    files,
    inducing,
    several,
    streams,
    targets,
    tuned,
)
from farm.ledger import Ledger
from farm.limits import TooLong, limited

__all__ = ["KINDS", "Kind", "problem", "solve"]


class Kind(NamedTuple):
    """How to check problems of a kind, how many there are, and how large."""

    check: Callable[[Ledger, Spec], None]
    share: int
    """Out of the sum of all shares."""
    rows: int
    """The most rows of a problem."""


KINDS = {
    "classes": Kind(classes.check, 4, 40),
    "targets": Kind(targets.check, 4, 40),
    "several": Kind(several.check, 2, 24),
    "inducing": Kind(inducing.check, 2, 30),
    "curves": Kind(curves.check, 2, 30),
    "streams": Kind(streams.check, 2, 60),
    "files": Kind(files.check, 2, 30),
    "tuned": Kind(tuned.check, 1, 24),
    "commands": Kind(commands.check, 1, 40),
    "answers": Kind(answers.check, 1, 24),
}


def problem(seed: int, number: int) -> Spec:
    """Return the problem with this number; kinds take turns by their shares."""
    turns = [name for name, kind in KINDS.items() for _ in range(kind.share)]
    name = turns[number % len(turns)]
    return draw(name, seed, number, KINDS[name].rows)


def solve(spec: Spec, seconds: float = 120.0) -> Ledger:
    """Check one problem; taking more seconds of CPU time than that is a fault, too."""
    ledger = Ledger()
    try:
        with limited(seconds):
            ledger.guard(spec["kind"], lambda: KINDS[spec["kind"]].check(ledger, spec))
    except TooLong as error:
        ledger.fault("takes too long", spec["kind"], error)
    return ledger
