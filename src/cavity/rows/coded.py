"""The same rows with other targets: one problem out of a table of several."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from cavity.arrays import Array
from cavity.rows.base import RowBlocks
from cavity.sites import Rows

T = TypeVar("T")


class Coded:
    """A table whose targets are coded each time that a block of it is visited.

    Problems that share a table share the engine, and with it what a prior makes of the rows.

    Parameters
    ----------
    blocks : RowBlocks
        The table with its targets as they are.
    code : callable
        From the targets of a block to those of one problem; it is sent along with the visits.
    view : callable, optional
        From a block with such targets to the rows that the problem is about, if these are others.
    """

    def __init__(
        self,
        blocks: RowBlocks,
        code: Callable[[Array], Array],
        view: Callable[[Rows], Rows] | None = None,
    ) -> None:
        self.blocks, self.code, self.view = blocks, code, view

    def reduce(
        self,
        visit: Callable[[Rows, Any, Any], tuple[Any, T]],
        shared: Any,
        state: str,
        start: str | None = None,
    ) -> T:
        """As in `RowBlocks`."""
        coded: Any = _Coding(visit, self.code, self.view)
        return self.blocks.reduce(coded, shared, state, start)  # type: ignore[no-any-return]

    def collect(self, look: Callable[[Rows, Any, Any], T], shared: Any, state: str) -> Iterator[T]:
        """As in `RowBlocks`."""
        coded: Any = _Coding(look, self.code, self.view)
        return self.blocks.collect(coded, shared, state)

    def drop(self, state: str) -> None:
        """As in `RowBlocks`."""
        self.blocks.drop(state)


class _Coding(NamedTuple):
    """A visit to rows whose targets are coded first."""

    visit: Callable[[Rows, Any, Any], Any]
    code: Callable[[Array], Array]
    view: Callable[[Rows], Rows] | None

    def __call__(self, rows: Rows, kept: Any, shared: Any) -> Any:
        coded = rows._replace(y=self.code(rows.y))
        return self.visit(coded if self.view is None else self.view(coded), kept, shared)
