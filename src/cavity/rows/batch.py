"""Consecutive rows as they were read: checked, and made into batches of another size.

Errors name the place.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

_NUMBERS = "biuf"
ENCODE = "Encode the column as numbers first, for example one column of 0 and 1 for each category."


class Batch(NamedTuple):
    """Some consecutive rows, as they were read."""

    X: Any
    y: Any
    """None if the table has no targets."""
    weight: Any
    source: str
    """The file or batch they are from, for messages."""
    first: int
    """The first of them in that file or batch."""

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.X)

    def part(self, begin: int, end: int) -> "Batch":
        """Return some of the rows."""
        y = None if self.y is None else self.y[begin:end]
        first = self.first + begin
        return Batch(self.X[begin:end], y, self.weight[begin:end], self.source, first)


def converted(values: Any, what: str) -> Any:
    """Return an array of numbers as float64."""
    values = np.asarray(values)
    if values.dtype.kind == "O":
        # Booleans and numbers among objects, as some data frames have them.
        try:
            return values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{what} is not a number: {error}. {ENCODE}") from error
    if values.dtype.kind not in _NUMBERS:
        raise ValueError(f"{what} is {values.dtype}, not a number. {ENCODE}")
    return np.asarray(values, dtype=np.float64)


def place_of(batch: Batch, row: int, done: int) -> str:
    """Return where a row of a batch is: in the table, and in its file or batch."""
    return (
        f"row {done + row:,} of the table, which is row {batch.first + row:,} of {batch.source} "
        "(both counted from 0)"
    )


def check_batch(batch: Batch, done: int, names: Sequence[str] | None) -> None:
    """Check that inputs, targets and weights are there and finite.

    Parameters
    ----------
    batch : Batch
    done : int
        Rows of the table before this batch.
    names : list of str, optional
        Names of the columns of X.
    """
    if not np.isfinite(batch.X).all():
        row, column = np.argwhere(~np.isfinite(batch.X))[0]
        name = f"column {names[column]!r}" if names else f"column {column}"
        raise ValueError(
            f"There is {_shown(batch.X[row, column])} in {name}, {place_of(batch, row, done)}. "
            "Fill in or leave out such rows."
        )
    if batch.y is not None and (bad := _missing(batch.y)).any():
        raise ValueError(
            f"The target is missing or infinite in {place_of(batch, int(np.argmax(bad)), done)}. "
            "Rows without a target cannot be learned from; leave them out."
        )
    # A NaN is not >= 0 either.
    if not (good := (batch.weight >= 0.0) & (batch.weight < np.inf)).all():
        row = int(np.argmin(good))
        raise ValueError(
            f"The weight is {batch.weight[row]:g} in {place_of(batch, row, done)}. Weights "
            "must be numbers from 0 on."
        )


def _missing(y: Any) -> Any:
    """Return in which rows a target is missing or not finite."""
    if y.dtype.kind == "f":
        bad = ~np.isfinite(y)
    elif y.dtype.kind == "O":
        bad = np.frompyfunc(_is_missing, 1, 1)(y).astype(bool)
    else:
        bad = np.isnat(y) if y.dtype.kind in "mM" else np.zeros(y.shape, dtype=bool)
    return bad if bad.ndim == 1 else bad.any(axis=1)


def _is_missing(value: Any) -> bool:
    # NaN and its kind are not equal to themselves; pandas.NA is neither equal nor not.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _shown(value: float) -> str:
    return "a missing value (NaN)" if np.isnan(value) else "an infinite value"


def kind_of_targets(y: Any) -> str:
    """Return what all targets of a table must be: numbers, labels, or another type."""
    kind = y.dtype.kind
    return "numbers" if kind in _NUMBERS else "labels" if kind in "OUT" else str(y.dtype)


def fingerprint(X: Any) -> tuple[float, float]:
    """Return a number that other rows, or another order, would change, and its size."""
    n, d = X.shape
    rows = X @ np.cos(np.arange(d) + 1.0)
    return float(np.cos(np.arange(n) + 1.0) @ rows), float(np.abs(rows).sum())


def merged(batches: Iterator[Batch], size: int) -> Iterator[Batch]:
    """Yield the same rows in batches of exactly this size, and a last one."""
    waiting: list[Batch] = []
    missing = size
    for batch in batches:
        begin = 0
        while begin < batch.n:
            waiting.append(batch.part(begin, begin + missing))
            begin += waiting[-1].n
            missing -= waiting[-1].n
            if not missing:
                yield _joined(waiting)
                waiting, missing = [], size
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    X, y, weight, source, first = zip(*batches, strict=True)
    together = None if y[0] is None else np.concatenate(y)
    return Batch(np.concatenate(X), together, np.concatenate(weight), source[0], first[0])
