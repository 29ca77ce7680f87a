"""Small matrices keep to one thread of BLAS: several spin while they wait for each other."""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

__all__ = ["is_small", "one_thread", "threads_for"]

_SMALL = 500
"""Examples up to which one thread of BLAS does: several would gain nothing, and would round
differently from one, which is all that a worker has."""


def is_small(n: int) -> bool:
    """Whether matrices of n examples are too small for several threads."""
    return n <= _SMALL


def threads_for(n: int) -> AbstractContextManager[Any]:
    """Return a context with as many threads of BLAS as matrices of n examples are worth."""
    return one_thread() if is_small(n) else nullcontext()


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS has one thread."""
    limits: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limits


@cache
def _controller() -> Any:
    """Return what sets the threads of BLAS; looking for it takes longer than a small fit's step."""
    return ThreadpoolController()
