"""One pass over a table: what a fit has to know about all rows before it begins.

Every part of the answer adds up over blocks, and none depends on where the blocks end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.rows.base import RowBlocks
from cavity.sites import Rows

_MOST_CLASSES = 1000
"""More different labels than this are no classes."""


@dataclass(frozen=True)
class Spread:
    """Number, mean, sum of squared deviations and largest size of the values in each column."""

    weight: float
    mean: Array
    square: Array
    largest: Array

    @classmethod
    def of(cls, columns: Array, weight: Array) -> Spread:
        """Return those of some rows."""
        total = float(np.sum(weight))
        mean = weight @ columns / total
        return cls(
            total, mean, weight @ (columns - mean) ** 2, np.max(np.abs(columns), axis=0, initial=0)
        )

    def __add__(self, other: Spread) -> Spread:
        total = self.weight + other.weight
        apart, share = other.mean - self.mean, other.weight / total
        square = self.square + other.square + apart**2 * self.weight * share
        largest = np.maximum(self.largest, other.largest)
        return Spread(total, self.mean + share * apart, square, largest)

    @property
    def std(self) -> Array:
        """The standard deviation of each column."""
        return np.sqrt(self.square / self.weight)


@dataclass(frozen=True)
class LabelSet:
    """The different labels of a table, sorted."""

    values: Array

    def __add__(self, other: LabelSet) -> LabelSet:
        values = np.unique(np.concatenate([self.values, other.values]))
        if len(values) > _MOST_CLASSES:
            raise ValueError(
                f"The target has more than {_MOST_CLASSES:,} different values: for classes these "
                "are too many; for real targets use a regressor."
            )
        return LabelSet(values)


@dataclass(frozen=True)
class RowSample:
    """Rows drawn at random, in random order: those with the smallest keys.

    A row's key follows from its number alone, so that the sample does not depend on the blocks. The
    first of the rows are a smaller sample.
    """

    size: int
    key: Array
    index: Array
    """Numbers of the rows in the table."""
    X: Array
    y: Array
    weight: Array

    @classmethod
    def of(cls, rows: Rows, size: int, seed: int) -> RowSample:
        """Return the sample of one block."""
        index = np.arange(rows.place.start or 0, (rows.place.start or 0) + len(rows.weight))
        found = cls(size, _keys(index, seed), index, rows.X, rows.y, rows.weight)
        return found.part(np.argsort(found.key, kind="stable")[:size])

    def __add__(self, other: RowSample) -> RowSample:
        pairs = zip(self.columns, other.columns, strict=True)
        both = RowSample(self.size, *(np.concatenate(pair) for pair in pairs))
        return both.part(np.argsort(both.key, kind="stable")[: self.size])

    @property
    def columns(self) -> tuple[Array, ...]:
        """Everything there is about the rows."""
        return self.key, self.index, self.X, self.y, self.weight

    def part(self, rows: Any) -> RowSample:
        """Return some of the rows."""
        return RowSample(self.size, *(np.asarray(column)[rows] for column in self.columns))

    def __len__(self) -> int:
        return len(self.key)


class Summary(NamedTuple):
    """What one pass over a table finds."""

    n_rows: int
    inputs: Spread
    targets: Spread | None
    """Of real targets."""
    labels: LabelSet | None
    """Of classes."""
    sample: RowSample


class _Scan(NamedTuple):
    size: int
    seed: int
    classes: bool
    check: Callable[[Array, int], None] | None

    def __call__(self, rows: Rows, kept: Any, shared: Any) -> tuple[Any, Summary]:
        _check(rows, self.classes)
        ones = np.ones(len(rows.weight))
        y = np.asarray(rows.y)
        if self.check is not None:
            self.check(y, rows.place.start or 0)
        targets = (
            None if self.classes else Spread.of(y.reshape(len(y), -1).astype(float), rows.weight)
        )
        labels = LabelSet(np.unique(y)) if self.classes else None
        sample = RowSample.of(rows, self.size, self.seed)
        return kept, Summary(len(ones), Spread.of(rows.X, ones), targets, labels, sample)


def scan(
    blocks: RowBlocks,
    *,
    size: int,
    seed: int,
    classes: bool,
    check: Callable[[Array, int], None] | None = None,
) -> Summary:
    """Look at every row once, and draw a sample of at most ``size`` rows.

    Parameters
    ----------
    blocks : RowBlocks
    size : int
    seed : int
    classes : bool
        Whether the targets are labels of classes, rather than real numbers.
    check : callable, optional
        Raises an error about targets, given those of a block and the number of its first row.

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.rows import MemoryBlocks, scan
    >>> from cavity.sites import Rows
    >>> X = np.arange(10.0)[:, None]
    >>> blocks = MemoryBlocks(Rows(X[:, 0] > 3.0, np.ones(10), X), 4)
    >>> found = scan(blocks, size=5, seed=0, classes=True)
    >>> found.n_rows, found.inputs.mean.tolist(), found.labels.values.tolist(), len(found.sample)
    (10, [4.5], [False, True], 5)
    """
    visit: Any = _Scan(size, seed, classes, check)
    found: Summary = blocks.reduce(visit, None, "scan")
    blocks.drop("scan")
    return found


class _Draw(NamedTuple):
    size: int
    seed: int

    def __call__(self, rows: Rows, kept: Any, shared: Any) -> tuple[Any, RowSample]:
        return kept, RowSample.of(rows._replace(y=rows.weight), self.size, self.seed)


def draw_rows(blocks: RowBlocks, size: int, seed: int) -> Array:
    """Return the inputs of rows drawn at random from a table, at most ``size``."""
    visit: Any = _Draw(size, seed)
    found: RowSample = blocks.reduce(visit, None, "draw")
    blocks.drop("draw")
    return found.X


def _check(rows: Rows, classes: bool) -> None:
    """Refuse rows that no fit can use, by the number of the first of them."""
    begin = rows.place.start or 0
    if rows.y is None:
        raise ValueError("The table has no targets: name its target column, or pass y.")
    _refuse(~np.all(np.isfinite(rows.X), axis=1), begin, "has an input that is not a finite number")
    y = np.asarray(rows.y)
    numbers = y.dtype.kind == "f"
    if y.ndim > (1 if classes else 2):
        wanted = "of one column" if classes else "of one column or of a column for each target"
        raise ValueError(f"The targets must be an array {wanted}; got shape (rows, {y.shape[1:]}).")
    if not classes and y.dtype.kind not in "fiub":
        raise ValueError(f"The targets of a regressor must be numbers; got {y.dtype}.")
    if numbers:
        finite = np.isfinite(y.reshape(len(y), -1)).all(axis=1)
        _refuse(~finite, begin, "has a target that is not a finite number")
    if y.dtype.kind == "O":
        _refuse(np.array([v is None or v != v for v in y]), begin, "has no target")
    counts = (rows.weight > 0.0) & (rows.weight < np.inf)
    _refuse(~counts, begin, "has a weight that is not positive and finite: leave such rows out")


def _refuse(bad: Array, begin: int, why: str) -> None:
    if np.any(bad):
        raise ValueError(f"Row {begin + int(np.argmax(bad)):,} of the table {why}.")


def _keys(index: Array, seed: int) -> Array:
    """Return a well-mixed number for each row number (Steele, Lea and Flood's SplitMix, 2014)."""
    with np.errstate(over="ignore"):
        z = index.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
