"""Rows that are held in memory."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from cavity.arrays import is_numpy_array, side_by_side
from cavity.rows.base import ENGINES, Memo, added
from cavity.sites import Rows

T = TypeVar("T")

_KEPT = 2**30
"""Bytes that may be kept of what a prior has made of the rows."""


class MemoryBlocks:
    """Blocks of rows in memory, or in files that are mapped into it (`numpy.memmap`).

    A block's inputs are made float64 when it is visited, so the table may have another type
    and be larger than memory. Estimators take it in the place of X and y.

    Parameters
    ----------
    rows : Rows
        The whole table.
    size : int, optional
        Rows of a block; one block for all if not given.
    kept : float, default 1073741824
        Bytes of memory for what a prior makes of the rows between visits.
    """

    feature_names: list[str] | None = None

    def __init__(self, rows: Rows, size: int | None = None, kept: float = _KEPT) -> None:
        n = int(rows.weight.shape[0])
        if not n:
            raise ValueError("There are no rows.")
        places = [slice(i, min(i + (size or n), n)) for i in range(0, n, size or n)]
        blocks = [rows] if len(places) == 1 else [_part(rows, place) for place in places]
        share = kept / len(blocks)
        shape: tuple[int, ...] = getattr(rows.X, "shape", ())
        self.n_rows, self.n_features = n, int(shape[1]) if len(shape) == 2 else 0
        self._how = rows, size, kept
        self._blocks = [block._replace(memo=Memo(share)) for block in blocks]
        self._states: dict[str, list[Any]] = {}

    def reduce(
        self,
        visit: Callable[[Rows, Any, Any], tuple[Any, T]],
        shared: Any,
        state: str,
        start: str | None = None,
    ) -> T:
        """As in `RowBlocks`."""
        nothing = [None] * len(self._blocks)
        kept = self._states.get(state, self._states.get(start or state, nothing))
        states: list[Any] = []
        total = None
        pairs = zip(self._blocks, kept, strict=True)
        # One at a time: a memory map is not to be loaded whole.
        jobs = ((_loaded(rows), k, shared) for rows, k in pairs)
        for own, parts in self._each(visit, jobs):
            states.append(own)
            total = parts if total is None else added(total, parts)
        self._states[state] = states
        return total  # type: ignore[return-value]

    def collect(self, look: Callable[[Rows, Any, Any], T], shared: Any, state: str) -> Iterator[T]:
        """As in `RowBlocks`."""
        kept = self._states.get(state, [None] * len(self._blocks))
        return (look(_loaded(rows), k, shared) for rows, k in zip(self._blocks, kept, strict=True))

    def with_targets(self, y: Any) -> "MemoryBlocks":
        """Return the same table with other targets.

        Parameters
        ----------
        y : array of shape (n_rows,) or (n_rows, n_targets)
        """
        (rows, size, kept), y = self._how, np.asarray(y)
        if y.shape[:1] != (self.n_rows,):
            raise ValueError(f"Expected {self.n_rows:,} targets; got shape {y.shape}.")
        return MemoryBlocks(rows._replace(y=y), size, kept)

    def _each(self, visit: Callable[..., T], jobs: Iterable[Any]) -> Iterable[T]:
        """Visit the blocks, several at a time if that can be of use."""
        if len(self._blocks) > 1 and is_numpy_array(self._blocks[0].weight):
            return side_by_side(visit, jobs)
        return (visit(*job) for job in jobs)

    def drop(self, state: str) -> None:
        """As in `RowBlocks`."""
        self._states.pop(state, None)


def _part(rows: Rows, place: slice) -> Rows:
    X = None if rows.X is None else rows.X[place]
    begin = rows.place.start or 0
    own = slice(begin + place.start, begin + place.stop)
    y = None if rows.y is None else rows.y[place]
    return Rows(y, rows.weight[place], X, own)


def _loaded(rows: Rows) -> Rows:
    """Return a block as plain arrays, its numbers as float64; nothing is copied if it is that."""
    return rows._replace(X=_float64(rows.X), y=_plain(rows.y), weight=_float64(rows.weight))


def _plain(x: Any) -> Any:
    return np.asarray(x) if is_numpy_array(x) else x


def _float64(x: Any) -> Any:
    return np.asarray(x, dtype=np.float64) if is_numpy_array(x) and x.dtype.kind in "biuf" else x


ENGINES["memory"] = MemoryBlocks
