"""Rows that are held in memory."""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, TypeVar

from cavity.rows.base import ENGINES, added
from cavity.sites import Rows

T = TypeVar("T")


class MemoryBlocks:
    """Blocks of rows in memory.

    Parameters
    ----------
    rows : Rows
        The whole table.
    size : int, optional
        Rows of a block; one block for all if not given.
    """

    def __init__(self, rows: Rows, size: int | None = None) -> None:
        n = int(rows.y.shape[0])
        if not n:
            raise ValueError("There are no rows.")
        places = [slice(i, min(i + (size or n), n)) for i in range(0, n, size or n)]
        self._blocks = [rows] if len(places) == 1 else [_part(rows, place) for place in places]
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
        found = [visit(rows, k, shared) for rows, k in zip(self._blocks, kept, strict=True)]
        self._states[state] = [k for k, _ in found]
        return reduce(added, [parts for _, parts in found])

    def collect(self, look: Callable[[Rows, Any, Any], T], shared: Any, state: str) -> Iterator[T]:
        """As in `RowBlocks`."""
        kept = self._states.get(state, [None] * len(self._blocks))
        return (look(rows, k, shared) for rows, k in zip(self._blocks, kept, strict=True))

    def drop(self, state: str) -> None:
        """As in `RowBlocks`."""
        self._states.pop(state, None)


def _part(rows: Rows, place: slice) -> Rows:
    X = None if rows.X is None else rows.X[place]
    begin = rows.place.start or 0
    own = slice(begin + place.start, begin + place.stop)
    return Rows(rows.y[place], rows.weight[place], X, own)


ENGINES["memory"] = MemoryBlocks
