"""The sets of plans: half of them to settle rules on, the other half to report on."""

from typing import NamedTuple

import numpy as np
from sklearn import datasets as shelf

from benchmarks.trust.sets import SETS, Set

__all__ = ["FACTORS", "REPORTED", "SETTLED", "Draw", "Named", "draw", "named"]

FACTORS = (2, 4)
"""How many times the rows of a draw a plan looks ahead."""
_FRESH = 2000
"""The most fresh rows that a fit is judged on; of real sets, all that are left."""
_MOST = 120
"""The most rows of a draw."""


def _digits() -> tuple[np.ndarray, np.ndarray]:
    """Tell odd digits from even ones."""
    X, y = shelf.load_digits(return_X_y=True)
    return X, y % 2


class Named(NamedTuple):
    """A set by its name, and the rows of one draw."""

    name: str
    set: Set
    rows: int


class Draw(NamedTuple):
    """Rows in the order in which they come, and fresh ones."""

    X: np.ndarray
    y: np.ndarray
    X_fresh: np.ndarray
    y_fresh: np.ndarray


# In the order of the alphabet, classes and targets by themselves: every other one is reported.
_CLASSES = ("additive", "breast cancer", "odd digits", "linear", "one of thirty", "Pima", "ring")
_TARGETS = ("abalone", "Boston", "diabetes", "Friedman", "linear target")
REPORTED = (*_CLASSES[1::2], *_TARGETS[::2])
SETTLED = (*_CLASSES[::2], *_TARGETS[1::2])


def named(name: str) -> Named:
    """Return a set; four times the rows of a draw leave at least as many fresh ones."""
    some = Set("classes", _MOST, _digits) if name == "odd digits" else SETS[name]
    rows = _MOST if some.make else min(_MOST, len(some.table(0)[1]) // (2 * FACTORS[-1]))
    return Named(name, some, rows)


def draw(about: Named, seed: int) -> Draw:
    """Return the rows of a draw, as many as the plan looks ahead to, and fresh ones."""
    most = FACTORS[-1] * about.rows
    X, y = about.set.table(seed, most + _FRESH if about.set.make else None)
    return Draw(X[:most], y[:most], X[most:], y[most:])
