"""What a worker process does for an engine: visit its blocks, keep what belongs to them, add up."""

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

from cavity.arrays import Array
from cavity.rows.base import added
from cavity.sites import Rows

Kept = dict[str, dict[int, Any]]
"""What blocks keep, by the name of the state and the number of the block."""


class Order(NamedTuple):
    """What workers have to know in a round."""

    worker: Callable[[], Any]
    """Returns the worker that asks: an object with an address, which may have more attributes."""
    visit: Callable[[Rows, Any, Any], Any]
    shared: Any
    engine: str
    state: str
    start: str

    def kept(self) -> Kept:
        """Return what the blocks of this worker keep."""
        everything = vars(self.worker()).setdefault("cavity_states", {})
        return everything.setdefault(self.engine, {})  # type: ignore[no-any-return]


class Found(NamedTuple):
    """What visits add up to, and at which address each block was visited."""

    parts: Any
    homes: dict[int, str]


def visit_all(order: Order, numbers: list[int], places: list[slice], blocks: list[Rows]) -> Found:
    """Visit blocks of this worker one after the other."""
    states, total = order.kept(), None
    start, kept = states.get(order.start, {}), states.setdefault(order.state, {})
    for i, place, rows in zip(numbers, places, blocks, strict=True):
        before = kept.get(i, start.get(i))
        kept[i], parts = order.visit(rows._replace(place=place), before, order.shared)
        total = parts if total is None else added(total, parts)
    return Found(total, dict.fromkeys(numbers, order.worker().address))


def look_at(order: Order, i: int, place: slice, rows: Rows) -> Any:
    """Look at a block of this worker."""
    kept = order.kept().get(order.state, {}).get(i)
    return order.visit(rows._replace(place=place), kept, order.shared)


def sum_of(several: list[Found]) -> Found:
    """Add up what several tasks have found."""
    total = several[0]
    for more in several[1:]:
        total = Found(added(total.parts, more.parts), total.homes | more.homes)
    return total


def same(piece: bytes) -> bytes:
    """Return a piece of a long message."""
    return piece


def unpacked(pieces: list[bytes]) -> Any:
    """Return the message that the pieces make up."""
    return pickle.loads(b"".join(pieces))


def forget(engine: str, state: str, dask_worker: Any) -> None:
    """Drop a state; without a name, everything that the engine's blocks keep."""
    everything = getattr(dask_worker, "cavity_states", {})
    if state:
        everything.get(engine, {}).pop(state, None)
    else:
        everything.pop(engine, None)


def applied(X: Array, function: Callable[[Any, Array], Array], model: Any, empty: Array) -> Array:
    """Return ``function(model, X)``, or what it would return for no rows."""
    return function(model, X) if len(X) else empty
