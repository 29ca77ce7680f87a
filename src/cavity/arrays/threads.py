"""One BLAS thread for small matrices: several spin while they wait for each other."""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

_SMALL = 500
"""Rows up to which one thread is enough. Several would gain nothing, and would round differently
from the one thread that a worker has."""


def is_small(n: int) -> bool:
    """Whether matrices of n rows are too small for several threads."""
    return n <= _SMALL


def threads_for(n: int) -> AbstractContextManager[Any]:
    """Return a context in which BLAS has as many threads as matrices of n rows can use."""
    return one_thread() if is_small(n) else nullcontext()


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS has one thread."""
    # Entered and left in 10 µs.
    limits: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limits


@cache
def _controller() -> Any:
    """Return the controller of the threads; finding the libraries takes a thousand times longer."""
    return ThreadpoolController()
