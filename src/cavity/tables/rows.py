"""Which rows to train on and which to hold out, by a seeded draw."""

from typing import NamedTuple

import numpy as np

from cavity.arrays import Array

FEWEST_ROWS = 5

MOST_TEST_ROWS = 10_000
"""Scoring more held-out rows would take minutes and hardly change the scores."""


class Chosen(NamedTuple):
    """Row numbers, counted from zero, in table order."""

    train: Array
    test: Array
    drawn: bool
    """Whether the training rows are a random part of those available."""


def choose_rows(
    strata: Array,
    *,
    max_rows: int,
    test_size: float = 0.0,
    held_out: Array | None = None,
    seed: int = 0,
) -> Chosen:
    """Split rows into at most ``max_rows`` training rows and others, which are held out.

    The strata are groups that keep their shares: the classes, or all zeros. Each gets at least one
    training row. ``test_size`` is the share of the rows to hold out, or their number if it is one
    or more; if it is zero, a split that comes with the data is used.
    """
    rng = np.random.default_rng(seed)
    n = len(strata)
    pool = np.arange(n)
    if held_out is not None and not test_size:
        pool = np.flatnonzero(~held_out)
    count = test_size * n if test_size < 1 else test_size
    size = min(max_rows, len(pool) - round(count))
    if size < FEWEST_ROWS:
        raise ValueError(
            f"{len(pool)} rows are too few if {count:g} are held out: at least {FEWEST_ROWS} are "
            "needed for training."
        )
    train = pool[_draw(strata[pool], size, rng)] if size < len(pool) else pool
    test = np.setdiff1d(np.arange(n), train, assume_unique=True)
    if len(test) > MOST_TEST_ROWS:
        test = np.sort(rng.choice(test, MOST_TEST_ROWS, replace=False))
    return Chosen(train, test, size == max_rows < len(pool))


def _draw(strata: Array, size: int, rng: np.random.Generator) -> Array:
    """Draw rows without replacement, from each stratum in proportion (largest remainders)."""
    groups = [np.flatnonzero(strata == s) for s in np.unique(strata)]
    counts = np.array([len(group) for group in groups])
    share = counts * size / counts.sum()
    quota = np.maximum(np.floor(share).astype(int), 1)
    for k in np.argsort(quota - share, kind="stable"):
        quota[k] += int(quota.sum() < size and quota[k] < counts[k])
    drawn = [rng.choice(g, q, replace=False) for g, q in zip(groups, quota, strict=True)]
    return np.sort(np.concatenate(drawn))
