"""Eight tables of which all labels count as right; others chose the rules that are measured."""

from collections.abc import Callable

import numpy as np
from sklearn import datasets as shelf

from cavity import datasets as ours

__all__ = ["TABLES", "table"]

_MOST = 300
"""Rows of a table: of more, as many are drawn."""
Table = tuple[np.ndarray, np.ndarray]


def table(name: str) -> Table:
    """Return inputs, and labels as numbers of classes."""
    X, y = TABLES[name]()
    some = np.random.default_rng(0).permutation(len(y))[:_MOST]
    return np.asarray(X[some], dtype=float), np.unique(y[some], return_inverse=True)[1]


def _digits() -> Table:
    X, y = shelf.load_digits(return_X_y=True)
    some = (y == 3) | (y == 8)
    return X[some], y[some]


TABLES: dict[str, Callable[[], Table]] = {
    "crabs": lambda: ours.load_crabs(return_X_y=True),
    "sonar": lambda: ours.load_sonar(return_X_y=True),
    "breast cancer": lambda: shelf.load_breast_cancer(return_X_y=True),
    "digits 3 and 8": _digits,
    "rings": lambda: shelf.make_circles(_MOST, noise=0.08, factor=0.5, random_state=1),
    "iris": lambda: shelf.load_iris(return_X_y=True),
    "wine": lambda: shelf.load_wine(return_X_y=True),
    "four blobs": lambda: shelf.make_blobs(_MOST, centers=4, cluster_std=1.2, random_state=3),
}
