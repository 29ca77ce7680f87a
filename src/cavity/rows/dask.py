"""Rows on the workers of a Dask cluster.

A round is one task for each thread of each worker, on the blocks of rows that the worker holds, and
a tree of sums. What blocks keep between visits stays with the worker. If a worker is lost, Dask
loads its rows again elsewhere, and their visits find nothing kept.
"""

import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from time import monotonic, sleep
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np

from cavity.arrays import Array
from cavity.rows.partitions import (
    RowsElsewhere,
    aligned,
    check_facts,
    facts_of,
    load,
    partitions,
    table_of,
    without_columns,
)
from cavity.rows.remote import Order, applied, forget, look_at, same, sum_of, unpacked, visit_all
from cavity.sites import Rows

T = TypeVar("T")

_KEPT = 2**30
_SHARE_OF_MEMORY = 0.125
"""At most this share of a worker's memory is for what a prior makes of the rows."""
_AT_ONCE = 2**28
"""Bytes of rows for one task: they have to be in memory together."""
_MESSAGE = 2**22
"""Dask warns about messages to the scheduler of more than 10 MB."""
_FAN = 8
_ATTEMPTS, _PAUSE = 5, 0.5

_NO_CLIENT = """There is no Dask client. Make one first, and keep it open:
    from distributed import Client
    client = Client()  # on this machine; Client("tcp://address:8786") for a cluster"""
_GONE = (
    "All Dask workers have been gone for {:.0f} seconds. Their rows cannot be visited: "
    "start workers (and the scheduler) again, then call fit again."
)
_DYING = (
    "Dask workers died during each of {} attempts to visit the rows, perhaps for lack of memory: "
    "see their logs, and use smaller chunks or more memory."
)
_CLOSED = (
    "The Dask client is closed, or its scheduler is gone: connect with a new client, then load the "
    "data and call fit again."
)
_CANCELLED = (
    "Dask has cancelled the rows. Either the scheduler was restarted: then call fit again. Or a "
    "worker was lost whose rows cannot be loaded again because they were scattered: load them by "
    "tasks, for example with dask.array.from_array."
)


class DaskBlocks:
    """Blocks of rows on Dask's workers, one for each chunk or partition that is not empty.

    Parameters
    ----------
    X : dask array of shape (n, d), or dask data frame
    y : dask or NumPy array of n targets, dask series or frame, or name of a column; optional
    weight : the same, optional
        How often each row counts.
    client : distributed.Client, optional
        By default the one made last.
    kept : float, optional
        Bytes on each worker for what a prior makes of the rows between visits; by default 1 GiB,
        or an eighth of the worker's memory if that is less.
    patience : float, default 60.0
        Seconds to wait for a worker if there is none.

    Attributes
    ----------
    client : distributed.Client
    n_rows, n_features : int
    feature_names : list of str, or None
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        weight: Any = None,
        *,
        client: Any = None,
        kept: float | None = None,
        patience: float = 60.0,
    ) -> None:
        self.client, self.patience, self._kept = client_or_default(client), patience, kept
        X, (y, weight) = without_columns(X, (y, weight))
        self._given = X, weight
        self.feature_names = [str(c) for c in X.columns] if hasattr(X, "columns") else None
        self._name, self._keys, self._rows = uuid4().hex, dict[str, str](), list[Any]()
        with self.client.as_current():
            arrays = aligned(X, y, weight)
        self._load(partitions(*needed("dask").optimize(*arrays)))
        weakref.finalize(self, _forget_soon, self.client, self._name).atexit = False

    @property
    def n_rows(self) -> int:
        """The number of rows in all blocks."""
        return sum(self._sizes)

    def with_targets(self, y: Any) -> "DaskBlocks":
        """Return the same table with these targets: an array of n, or the name of a column."""
        X, weight = self._given
        return DaskBlocks(X, y, weight, client=self.client, kept=self._kept, patience=self.patience)

    def reduce(
        self,
        visit: Callable[[Rows, Any, Any], tuple[Any, T]],
        shared: Any,
        state: str,
        start: str | None = None,
    ) -> T:
        """As in `RowBlocks`."""
        fresh = state not in self._keys
        # A name that is dropped and used again means another state.
        key = self._keys.setdefault(state, uuid4().hex)
        order = Order(_this_worker, visit, shared, self._name, key, self._keys.get(start or "", ""))
        return self._insist(partial(self._round, order, fresh))  # type: ignore[no-any-return]

    def collect(self, look: Callable[[Rows, Any, Any], T], shared: Any, state: str) -> Iterator[T]:
        """As in `RowBlocks`; only a few results are on their way at a time."""
        return self._looks(
            Order(_this_worker, look, shared, self._name, self._keys.get(state, ""), "")
        )

    def drop(self, state: str) -> None:
        """As in `RowBlocks`."""
        key = self._keys.pop(state, None)
        if key is not None:
            _forget_soon(self.client, self._name, key)

    def __reduce__(self) -> tuple[Any, ...]:
        return RowsElsewhere, (self.n_rows, self.n_features, self.feature_names)

    def _load(self, parts: list[tuple[Any, ...]]) -> None:
        share = self._budget() * len(self._threads()) / len(parts)
        task = needed("dask").delayed(load, pure=False)
        rows = self.client.compute([task(*each, share) for each in parts])
        facts = self._insist(partial(self._facts, rows))
        check_facts(facts)
        used = [k for k, fact in enumerate(facts) if fact.n]
        self._rows = [rows[k] for k in used]
        self._sizes, self._nbytes = ([facts[k][f] for k in used] for f in (0, 2))
        self.n_features = facts[used[0]].n_features
        ends = np.cumsum(self._sizes).tolist()
        self._places = [slice(b - n, b) for b, n in zip(ends, self._sizes, strict=True)]
        found = self.client.who_has(self._rows)
        self._homes = [next(iter(found.get(row.key, ())), "") for row in self._rows]

    def _facts(self, rows: list[Any]) -> list[Any]:
        asked = self.client.map(facts_of, rows, pure=False)
        return [self._result(future) for future in asked]

    def _budget(self) -> float:
        if self._kept is not None:
            return self._kept
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [w["memory_limit"] for w in workers if w.get("memory_limit")]
        return float(min([_KEPT, *(_SHARE_OF_MEMORY * limit for limit in limits)]))

    def _round(self, order: Order, fresh: bool) -> Any:
        sent = self._sent(order)
        tasks = []
        for home, group in self._groups(fresh):
            places, rows = ([a[i] for i in group] for a in (self._places, self._rows))
            tasks.append(self._submit(visit_all, sent, group, places, rows, home=home))
        while len(tasks) > 1:
            several = [tasks[i : i + _FAN] for i in range(0, len(tasks), _FAN)]
            tasks = [self._submit(sum_of, some) for some in several]
        found = self._result(tasks[0])
        for i, home in found.homes.items():
            self._homes[i] = home
        return found.parts

    def _looks(self, order: Order) -> Iterator[Any]:
        sent, n = self._sent(order), len(self._rows)
        futures: dict[int, Any] = {}

        def look(i: int) -> Any:
            place, rows = self._places[i], self._rows[i]
            return self._submit(look_at, sent, i, place, rows, home=self._homes[i])

        def answer(i: int) -> Any:
            return self._result(futures.pop(i, None) or look(i))

        begun, ahead = 0, 2 * sum(self._threads().values())
        for i in range(n):
            while begun < min(i + ahead, n):
                futures[begun] = look(begun)
                begun += 1
            yield self._insist(partial(answer, i))

    def _sent(self, order: Order) -> Any:
        """Send what is the same for all blocks, as a task: if its worker dies, Dask repeats it."""
        raw = needed("distributed.protocol.pickle").dumps(order)
        cuts = range(0, len(raw), _MESSAGE)
        pieces = [raw[i : i + _MESSAGE] for i in cuts]
        if len(pieces) > 1:
            pieces = [self._submit(same, piece) for piece in pieces]
        return self._submit(unpacked, pieces)

    def _submit(self, task: Callable[..., Any], *args: Any, home: str = "") -> Any:
        where = {"workers": [home], "allow_other_workers": True} if home else {}
        key = f"cavity-{task.__name__}-{uuid4().hex}"
        return self.client.submit(task, *args, key=key, pure=False, **where)

    def _groups(self, fresh: bool) -> Iterator[tuple[str, list[int]]]:
        """Yield blocks for one task each, with the worker that has them.

        As a worker gets no more tasks than it has threads, unless its rows are too many for its
        memory, others do not steal any: a block that is visited elsewhere has lost what it kept.
        """
        threads = self._threads()
        self._settle(threads, fresh)
        for home, count in threads.items():
            own = [i for i, where in enumerate(self._homes) if where == home]
            own.sort(key=lambda i: -self._sizes[i])
            count = max(count, -(-sum(self._nbytes[i] for i in own) // _AT_ONCE))
            yield from ((home, sorted(own[k::count])) for k in range(min(count, len(own))))

    def _settle(self, threads: dict[str, int], fresh: bool) -> None:
        """Find new homes for blocks whose worker is gone.

        If nothing is kept yet, a worker also gives away what is more than its fair share.
        """
        fair = self.n_rows / sum(threads.values())
        load, homeless = dict.fromkeys(threads, 0), []
        for i, home in enumerate(self._homes):
            if home in load and (not fresh or load[home] < fair * threads[home]):
                load[home] += self._sizes[i]
            else:
                homeless.append(i)
        for i in homeless:
            home = min(load, key=lambda w: (load[w] + self._sizes[i]) / threads[w])
            load[home] += self._sizes[i]
            self._homes[i] = home

    def _threads(self) -> dict[str, int]:
        """Return every worker's number of threads; if there is none, wait, but not forever."""
        end = monotonic() + self.patience
        while True:
            found: dict[str, int] = {}
            with suppress(OSError):  # no answer
                found = self.client.nthreads()
            if found:
                return found
            if monotonic() > end:
                raise RuntimeError(_GONE.format(self.patience))
            sleep(0.2)

    def _result(self, future: Any) -> Any:
        wait = needed("distributed").wait
        # What is waiting for a worker waits forever, if nobody looks whether there is one.
        while not future.done():
            with suppress(TimeoutError):
                wait(future, timeout=1.0)
                break
            self._threads()
        return future.result()

    def _insist(self, call: Callable[[], T]) -> T:
        """Call again if a worker died at a bad moment; a second visit does no harm."""
        dask, closed = needed("distributed"), needed("distributed.client").ClosedClientError
        lost = (dask.CancelledError, dask.KilledWorker, closed, OSError)
        for left in reversed(range(_ATTEMPTS)):
            try:
                return call()
            except lost as error:
                self._give_up(left, error)
                sleep(_PAUSE)
        raise AssertionError

    def _give_up(self, left: int, error: BaseException) -> None:
        """Raise an error if there is nothing left to try."""
        if self.client.status in ("closed", "closing"):
            raise RuntimeError(_CLOSED) from error
        if any(row.cancelled() for row in self._rows):
            raise RuntimeError(_CANCELLED) from error
        if not left:
            raise RuntimeError(_DYING.format(_ATTEMPTS)) from error
        self.client.retry([row for row in self._rows if row.status == "error"])


def needed(module: str) -> Any:
    """Import a module of Dask, or say how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f'{module} is missing: pip install "cavity[dask]"') from error


def client_or_default(client: Any = None) -> Any:
    """Return the client, or the one made last; its methods have to return results."""
    if client is None:
        try:
            client = needed("distributed").get_client()
        except ValueError as error:
            raise ValueError(_NO_CLIENT) from error
    if client.asynchronous:
        raise ValueError("The Dask client is asynchronous; pass one made without asynchronous=True")
    return client


def _forget_soon(client: Any, engine: str, state: str = "") -> None:
    """Have all workers drop a state, or all states; do not wait for it.

    This is called when an object dies, perhaps in the thread that serves the client.
    """
    with suppress(RuntimeError):  # the client is closed
        client.loop.add_callback(_forget_everywhere, client, engine, state)


async def _forget_everywhere(client: Any, engine: str, state: str) -> None:
    with suppress(Exception):  # what dies with a worker is forgotten, too
        await client.run(forget, engine, state, on_error="ignore")


def _this_worker() -> Any:
    return needed("distributed").get_worker()


def mapped(function: Callable[[Any, Array], Array], model: Any, X: Any, empty: Array) -> Any:
    """Return a Dask array of ``function(model, chunk)`` for each chunk of X, computed when needed.

    ``empty`` is what it returns for no rows: the type, and the shape of what belongs to a row.
    """
    X = table_of(X)
    chunks = (X.chunks[0], *((n,) for n in empty.shape[1:]))
    axes = {"drop_axis": 1} if empty.ndim == 1 else {"new_axis": list(range(2, empty.ndim))}
    own = needed("dask").delayed(model, name=f"model-{uuid4().hex}", traverse=False)
    said = {"dtype": empty.dtype, "meta": empty, "chunks": chunks, **axes}
    return X.map_blocks(applied, function=function, model=own, empty=empty, **said)
