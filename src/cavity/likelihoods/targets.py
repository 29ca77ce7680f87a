"""What targets may be, by the names that a likelihood's `support` has for it."""

from collections.abc import Callable

import numpy as np

from cavity.arrays import Array, to_numpy


def _whole(y: Array) -> Array:
    return (y >= 0.0) & (y == np.round(y)) & np.isfinite(y)


DESCRIPTIONS: dict[str, str] = {
    "signs": "labels -1 or +1",
    "codes": "whole numbers 0, 1, 2, ... that number the classes in their order",
    "counts": "whole numbers 0, 1, 2, ...",
    "positive": "positive numbers",
    "reals": "finite numbers",
}
"""What the targets must be, in words."""

SUPPORTS: dict[str, Callable[[Array], Array]] = {
    "signs": lambda y: np.abs(y) == 1.0,
    "codes": _whole,
    "counts": _whole,
    "positive": lambda y: (y > 0.0) & np.isfinite(y),
    "reals": np.isfinite,
}
"""Which entries of an array are such targets."""


def check_support(y: Array, support: str, name: str, expects: str, first: int = 0) -> None:
    """Raise a ValueError that names the first target outside of the support."""
    refuse(y, SUPPORTS[support](np.asarray(to_numpy(y), dtype=float)), name, expects, first)


def refuse(y: Array, fine: Array, name: str, expects: str, first: int = 0) -> None:
    """Raise a ValueError unless all targets are fine; the first of them is in row ``first``."""
    wrong = np.flatnonzero(~fine)
    if not len(wrong):
        return
    value = np.ravel(to_numpy(y))[wrong[0]]
    others = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    raise ValueError(
        f"Some value(s) of y are out of the valid range of the loss {name!r}: it expects "
        f"{expects}, and row {first + wrong[0]} has {value}{others}."
    )
