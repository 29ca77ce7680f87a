"""What inference needs from a table, wherever its rows are."""

import weakref
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from cavity.sites import Rows

T = TypeVar("T")


ENGINES: dict[str, Callable[[Rows, int], Any]] = {}
"""Every place to keep rows, by name: how to make it from rows in blocks of a given size."""


class RowBlocks(Protocol):
    """A table in blocks of rows.

    What a visit returns for keeping stays with its rows, under a name. A warm start is the name
    of another state; for rows that were lost and loaded again, nothing is kept: None.
    """

    def reduce(
        self,
        visit: Callable[[Rows, Any, Any], tuple[Any, T]],
        shared: Any,
        state: str,
        start: str | None = None,
    ) -> T:
        """Call ``visit(rows, kept, shared) → (kept, parts)`` on every block; add up the parts.

        Parameters
        ----------
        visit : callable
            A function of a module, so that it can be sent to other processes.
        shared : object
            The same for all blocks.
        state : str
            The name under which the blocks keep what ``visit`` returns first.
        start : str, optional
            The name to look under if a block keeps nothing under ``state`` yet.
        """

    def collect(self, look: Callable[[Rows, Any, Any], T], shared: Any, state: str) -> Iterator[T]:
        """Yield ``look(rows, kept, shared)`` for every block, in the order of the rows."""

    def drop(self, state: str) -> None:
        """Forget what the blocks keep under this name."""


class State:
    """A name under which blocks keep what belongs to their rows, dropped with its last holder.

    Parameters
    ----------
    blocks : RowBlocks
    name : str, optional
        A new one by default.
    """

    def __init__(self, blocks: RowBlocks, name: str | None = None) -> None:
        self.blocks, self.name = blocks, name or uuid4().hex
        # When the program ends, there is nothing to tidy up, and perhaps nobody to do it.
        weakref.finalize(self, blocks.drop, self.name).atexit = False

    def __reduce__(self) -> tuple[Any, ...]:
        return State, (self.blocks, self.name)


class Memo:
    """What the last prior has made of a block of rows, kept if it is not too large.

    Parameters
    ----------
    most : float
        The number of bytes that may be kept.
    """

    def __init__(self, most: float) -> None:
        self._most, self._name = most, ""
        self._value: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        # It can be made again, and takes longer to send.
        return Memo, (self._most,)

    def of(self, name: str, make: Callable[[], tuple[Any, ...]]) -> Any:
        """Return what was made under this name, or make it."""
        if self._name == name:
            return self._value
        # The old one is freed before there is a new one.
        self._name, self._value = "", None
        value = make()
        if sum(getattr(part, "nbytes", 0) for part in value) <= self._most:
            self._name, self._value = name, value
        return value


def added(a: Any, b: Any) -> Any:
    """Add two results of visits: tuples entry by entry; of fields called ``largest`` the larger."""
    if a is None:
        return None
    if not isinstance(a, tuple):
        return a + b
    names = getattr(a, "_fields", [""] * len(a))
    parts = [
        (y if y != y else max(x, y)) if name == "largest" else added(x, y)
        for name, x, y in zip(names, a, b, strict=True)
    ]
    return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
