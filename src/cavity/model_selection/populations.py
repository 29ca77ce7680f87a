"""How often examples are drawn, and how many of them."""

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from cavity.arrays import Array

_MOST_SIZES = 200


def population(sample_weight: Any, n: int) -> Array:
    """Return each example's share of the population."""
    if sample_weight is None:
        return np.full(n, 1.0 / n)
    weight = _check_sample_weight(
        sample_weight, np.empty((n, 1)), ensure_non_negative=True, dtype=np.float64
    )
    if not np.any(weight):
        raise ValueError("All sample weights are zero: there is nothing to draw from.")
    return weight / weight.sum()


def checked_sizes(train_sizes: Any, resampling: str, share: Array) -> Array:
    """Return increasing training sizes, as numbers of examples."""
    n = int(np.count_nonzero(share))
    sizes = np.atleast_1d(np.asarray(train_sizes))
    if sizes.ndim != 1 or not sizes.size or sizes.dtype.kind not in "iuf":
        raise ValueError(
            f"train_sizes must be a sequence of integers or fractions; got {train_sizes!r}."
        )
    if sizes.size > min(_MOST_SIZES, n):
        raise ValueError(
            f"train_sizes has {sizes.size} entries for {n} examples: give at most "
            f"{min(_MOST_SIZES, n)}; curve.forecast() gives any size in between."
        )
    if not np.all(np.isfinite(sizes)) or np.any(sizes <= 0):
        raise ValueError(f"train_sizes must be positive; got {train_sizes!r}.")
    if sizes.dtype.kind == "f":
        sizes = np.maximum(np.round(sizes * n), 1.0)
    sizes = np.unique(sizes.astype(float))
    most = 1.0 / np.max(share)
    if resampling == "subsample" and sizes[-1] > most * (1.0 + 1e-12):
        raise ValueError(
            f"Without replacement a training set has at most {int(most + 1e-9)} examples here; "
            f"got {sizes[-1]:.0f}. Fractions lie between 0 and 1; or use resampling='bootstrap'."
        )
    return sizes
