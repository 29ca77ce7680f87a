"""Tables of classes: those that the rules were chosen on, and those that are reported."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn import datasets as shelf

from benchmarks.trust import made_up
from benchmarks.trust.sets import SETS as TRUST
from cavity import datasets as ours

Table = tuple[np.ndarray, np.ndarray]
_POOL, _FRESH = 500, 1000


class Race(NamedTuple):
    """Rows that are labelled at first, a pool, and fresh rows."""

    X: np.ndarray
    y: np.ndarray
    first: np.ndarray
    """Numbers of the rows that are labelled at first."""
    X_fresh: np.ndarray
    y_fresh: np.ndarray


def _digits(seed: int) -> Table:
    X, y = shelf.load_digits(return_X_y=True)
    some = np.isin(y, (4, 9))
    return _mixed(X[some], (y[some] == 9).astype(int), seed)


def _abalone(seed: int) -> Table:
    X, y = ours.load_abalone(return_X_y=True)
    return _mixed(X, (y > 9).astype(int), seed)


def _mixed(X: np.ndarray, y: np.ndarray, seed: int) -> Table:
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order], y[order]


def _made(make: Callable[..., Table]) -> Callable[[int], Table]:
    return lambda seed: make(_POOL + _FRESH, np.random.default_rng(seed))


def _of(name: str) -> Callable[[int], Table]:
    return lambda seed: TRUST[name].table(seed)


CHOSEN_ON: dict[str, Callable[[int], Table]] = {
    "iris": _of("iris"),
    "wine": _of("wine"),
    "digits 4 and 9": _digits,
    "abalone": _abalone,
    "linear": _made(made_up.linear),
    "additive": _made(made_up.additive),
}
"""Sets that the rules were chosen on."""
REPORTED: dict[str, Callable[[int], Table]] = {
    "Pima": _of("Pima"),
    "crabs": _of("crabs"),
    "sonar": _of("sonar"),
    "breast cancer": _of("breast cancer"),
    "digits 3 and 8": _of("digits 3 and 8"),
    "ring": _made(made_up.ring),
}
"""Sets that nothing was chosen on."""


def race(load: Callable[[int], Table], seed: int, start: int) -> Race:
    """Split a table: two thirds are the pool, at most 500 rows, and the rest are fresh."""
    X, y = load(seed)
    pool = min(_POOL, 2 * len(y) // 3)
    X_fresh, y_fresh = X[pool:][:_FRESH], y[pool:][:_FRESH]
    y = y[:pool]
    first = np.arange(start)
    missing = [c for c in np.unique(y) if c not in y[first]]
    # Every class has a first row; rows are in random order.
    for k, c in enumerate(missing):
        first[-1 - k] = np.flatnonzero(y == c)[0]
    return Race(X[:pool], y, first, X_fresh, y_fresh)
