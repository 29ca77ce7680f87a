"""Which threads work: one for small matrices, BLAS's own for large ones, or one for each block.

Several threads of BLAS spin while they wait for each other.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache, partial
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

T = TypeVar("T")

_lock = Lock()
_holders: list[None] = []
"""One entry for each context of one thread that has not ended."""
_limits: list[Any] = []
"""What BLAS had before the first of them."""
_SMALL = 1500
"""Rows up to which one thread is enough: a product then takes less than the tenth of a second for
which the system may stop a thread that the others wait for. With other work on two cores, two
threads took 2.2 times the CPU time of one at 900 rows and 1.7 at 1,500, 1.3 at 2,200."""


def is_small(n: int) -> bool:
    """Whether matrices of n rows are too small for several threads."""
    return n <= _SMALL


def threads_for(n: int) -> AbstractContextManager[Any]:
    """Return a context in which BLAS has as many threads as matrices of n rows can use."""
    return one_thread() if is_small(n) else nullcontext()


@contextmanager
def all_threads_for(n: int) -> Iterator[None]:
    """Return the same context, also for compiled loops (OpenMP), as in scikit-learn's trees."""
    with threads_for(n), ExitStack() as stack:
        if is_small(n):
            # Not the controller from before: the library may have been loaded since.
            stack.enter_context(ThreadpoolController().limit(limits=1, user_api="openmp"))
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Return a context in which BLAS has one thread.

    Contexts of several Python threads may overlap: the last to leave gives BLAS its threads back.
    """
    with _lock:
        if not _holders:
            # Entered and left in 10 µs.
            _limits.append(_controller().limit(limits=1, user_api="blas"))
        _holders.append(None)
    try:
        yield
    finally:
        with _lock:
            _holders.pop()
            if not _holders:
                _limits.pop().restore_original_limits()


def side_by_side(call: Callable[..., T], jobs: Iterable[tuple[Any, ...]]) -> Iterator[T]:
    """Yield ``call(*job)`` for each job, in order, as many at a time as BLAS has threads.

    Meanwhile BLAS has one thread: its own threads would leave everything but products to one.
    """
    count = _threads()
    if count < 2:
        yield from (call(*job) for job in jobs)
        return
    waiting: deque[Future[T]] = deque()
    # What NumPy ignores, it shall ignore in the other threads as well.
    here = partial(np.seterr, **np.geterr())
    with one_thread(), ThreadPoolExecutor(count, initializer=here) as pool:
        for job in jobs:
            # Results wait for their turn; not too many of them.
            if len(waiting) > count:
                yield waiting.popleft().result()
            waiting.append(pool.submit(call, *job))
        while waiting:
            yield waiting.popleft().result()


def _threads() -> int:
    """Return how many threads BLAS has at present."""
    found = _controller().lib_controllers
    return max((lib.num_threads for lib in found if lib.user_api == "blas"), default=1)


@cache
def _controller() -> Any:
    """Return the controller of the threads; finding the libraries takes a thousand times longer."""
    return ThreadpoolController()
