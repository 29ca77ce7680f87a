"""What is asked of the contents of a file before anything is computed from them."""

import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.storage.format import StorageError, clipped, short

_SHARE = 0.5
"""Of the machine's memory, for the matrices of an opened model."""
_MATRICES = 3
"""The covariance, its factor and the factor's inverse; more are not held at a time."""
_LARGEST_CODES = -(2**63), 2**64
"""Whole numbers that columns of a table can hold."""


@contextmanager
def refusing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let what is wrong with a file's contents raise a StorageError that names the file."""
    try:
        yield
    except StorageError as error:
        raise StorageError(f"{os.fspath(path)}: {clipped(str(error), 220)}") from None
    except (
        *(ArithmeticError, AttributeError, LookupError, RecursionError),
        *(TypeError, ValueError),
    ) as error:
        why = f"a damaged model file of cavity ({short(error) or type(error).__name__})"
        raise StorageError(f"{os.fspath(path)}: {why}") from error


def stored_number(found: Any, kind: type, most: float = sys.float_info.max) -> Any:
    """Return a number of a file once it is finite, no larger than this, and whole if it has to be.

    >>> stored_number(2, float)
    2.0
    """
    allowed = (int, float) if kind is float else (int,)
    # Comparing fails for NaN, and does not overflow for integers of many digits.
    if isinstance(found, bool) or not isinstance(found, allowed) or not abs(found) <= most:
        limit = "" if most == sys.float_info.max else f" up to {most:g}"
        raise StorageError(f"{short(found)} is stored where a finite number{limit} is expected")
    return kind(found)


def stored_text(found: Any) -> str:
    """Return a text of a file once it is one."""
    if not isinstance(found, str):
        raise StorageError(f"{short(found)} is stored where a text is expected")
    return found


def stored_array(
    arrays: Mapping[str, Array], name: str, *shape: int, dtypes: str = "f", least: float = -math.inf
) -> Array:
    """Return an array of a file once it has this shape and is of finite numbers, none below."""
    found = arrays[name]
    fine = found.shape == shape and found.dtype.kind in dtypes and found.dtype.itemsize == 8
    if not fine or not found.dtype.isnative or not np.all(np.isfinite(found)):
        raise StorageError(f"the stored {name!r} is not a finite array of shape {shape}")
    if np.any(found < least):
        raise StorageError(f"the stored {name!r} has numbers below {least:g}")
    return found


def check_classes(values: Sequence[Any]) -> None:
    """Refuse classes that differ in type, are missing, not finite, or not all different."""
    kinds = {type(value) for value in values}
    if not isinstance(values, list) or len(kinds) != 1 or not kinds <= {bool, int, float, str}:
        raise StorageError(f"its classes are not values of one type: {short(values)}")
    if kinds == {float} and not all(map(math.isfinite, values)):
        raise StorageError("its classes are not all finite")
    low, beyond = _LARGEST_CODES
    if kinds == {int} and not low <= min(values) <= max(values) < beyond:
        raise StorageError("its classes are larger than the numbers of a table can be")
    if len(set(values)) < len(values):
        raise StorageError("two of its classes are the same")


def check_memory(rows: Sequence[int], functions: int = 1) -> None:
    """Refuse processes of so many rows each that this machine cannot hold, before they are made.

    Each is of one latent function, or of several that share the covariance but not the rest.
    """
    # Several have a covariance of theirs in each row, besides.
    numbers = sum(n * functions * (n + (functions if functions > 1 else 0)) for n in rows)
    if 8.0 * _MATRICES * numbers > _SHARE * memory_size():
        raise StorageError(
            f"its matrices of {sum(rows):,} rows would take {8e-9 * _MATRICES * numbers:,.2g} GB, "
            "more than half of this machine's memory: open it on a larger one"
        )


def memory_size() -> float:
    """Return the bytes of memory of this machine, if it says so."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return math.inf
