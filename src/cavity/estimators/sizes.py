"""Numbers that are too large to compute with, refused at the estimators' doors."""

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from cavity.arrays import Array
from cavity.inference import MOST_COPIES

LARGEST = 1e100
"""Sums of the squares of such numbers are far from overflowing."""


def check_sizes(y: Array) -> None:
    """Reject targets whose squares might overflow."""
    # As numbers of their own precision they may have no such limit.
    if np.any(np.abs(np.asarray(y, dtype=np.float64)) > LARGEST):
        raise ValueError(f"a target is beyond ±{LARGEST:g}; scale the targets")


def check_columns(X: Array, names: Any = None) -> None:
    """Reject inputs whose spread might overflow."""
    largest = np.max(np.abs(X), axis=0, initial=0.0)
    if not np.any(largest > LARGEST):
        return
    j = int(np.argmax(largest))
    column = f"column {j}" if names is None else f"column {names[j]!r}"
    raise ValueError(
        f"{column} has numbers up to {largest[j]:.3g}: beyond ±{LARGEST:g} an input has no spread "
        "to measure; scale the inputs"
    )


def check_weights(sample_weight: Any, n: int) -> Array:
    """Return how often each row counts; once by default."""
    like = np.empty((n, 1))
    found = _check_sample_weight(sample_weight, like, ensure_non_negative=True, dtype=np.float64)
    if np.any(found > LARGEST):
        raise ValueError(f"a sample weight is beyond {LARGEST:g}; divide all by a number")
    return found


def check_presentations(weight: Array) -> None:
    """Refuse more copies of a row than can be presented one after the other."""
    if np.any(weight > MOST_COPIES):
        raise ValueError(
            f"a sample weight is {np.max(weight):.3g}: streams and inference='sequential' present "
            f"a row at most {MOST_COPIES:g} times; divide all weights by a number"
        )
