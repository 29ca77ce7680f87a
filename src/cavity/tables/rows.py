"""Which rows to train on and which to hold out, drawn from a seed."""

from typing import NamedTuple

import numpy as np

from cavity.arrays import Array

__all__ = ["MOST_TEST_ROWS", "Chosen", "choose_rows"]

FEWEST_ROWS = 5

MOST_TEST_ROWS = 10_000
"""Held-out scores of more rows would cost minutes and gain no digit worth printing."""


class Chosen(NamedTuple):
    """Row numbers, from zero and in table order."""

    train: Array
    test: Array
    drawn: bool
    """Whether there were more rows to learn from than allowed."""


def choose_rows(
    strata: Array,
    *,
    max_rows: int,
    test_size: float = 0.0,
    held_out: Array | None = None,
    seed: int = 0,
) -> Chosen:
    """Split rows into training and held-out ones.

    Parameters
    ----------
    strata : array of int of shape (n,)
        Shares of these groups are kept: the classes, or all zeros. Each keeps at least one
        training row.
    max_rows : int
        The most training rows; what is left over is held out.
    test_size : float
        Share of the rows to hold out, or their number if it is one or more.
    held_out : array of bool of shape (n,), optional
        A split that the data come with; it is used if ``test_size`` is zero.
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.tables.rows import choose_rows
    >>> train, test, _ = choose_rows(np.repeat([0, 1], [90, 10]), max_rows=50)
    >>> len(train), len(test)
    (50, 50)
    """
    rng = np.random.default_rng(seed)
    n = len(strata)
    given = held_out is not None and not test_size
    pool = np.flatnonzero(~held_out) if given and held_out is not None else np.arange(n)
    count = test_size * n if test_size < 1 else test_size
    size = min(max_rows, len(pool) - round(count))
    if size < FEWEST_ROWS:
        raise ValueError(
            f"{len(pool)} rows, of which {count:g} are to be held out, are too few: at least "
            f"{FEWEST_ROWS} are needed to learn from."
        )
    train = pool[_draw(strata[pool], size, rng)] if size < len(pool) else pool
    test = np.setdiff1d(np.arange(n), train, assume_unique=True)
    if len(test) > MOST_TEST_ROWS:
        test = np.sort(rng.choice(test, MOST_TEST_ROWS, replace=False))
    return Chosen(train, test, size == max_rows < len(pool))


def _draw(strata: Array, size: int, rng: np.random.Generator) -> Array:
    """Draw rows without replacement, each stratum in proportion (largest remainders first)."""
    groups = [np.flatnonzero(strata == s) for s in np.unique(strata)]
    counts = np.array([len(group) for group in groups])
    share = counts * size / counts.sum()
    quota = np.maximum(np.floor(share).astype(int), 1)
    for k in np.argsort(quota - share, kind="stable"):
        quota[k] += int(quota.sum() < size and quota[k] < counts[k])
    drawn = [rng.choice(g, q, replace=False) for g, q in zip(groups, quota, strict=True)]
    return np.sort(np.concatenate(drawn))
