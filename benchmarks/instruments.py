"""Timers around the library's calls of LAPACK and BLAS."""

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from benchmarks.contestants.common import timed
from cavity import arrays

__all__ = ["Counts", "counted"]

_ROUTINES = (
    "add_outer",
    "cholesky",
    "gram",
    "invert_lower",
    "lower_gram",
    "lower_product",
    "matmul",
    "pivots",
    "solve_lower",
    "symmetric_product",
)
_FACTORISATIONS = ("cholesky", "invert_lower", "lower_gram", "solve_lower")


class Counts(NamedTuple):
    """An evaluation's seconds, and those in each routine with the number of calls."""

    seconds: float
    inside: dict[str, float]
    calls: dict[str, int]
    factorisations: int


class _Stopwatch:
    def __init__(self) -> None:
        self.inside: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*args: Any, **options: Any) -> Any:
            begin = time.perf_counter()
            result = call(*args, **options)
            self.inside[name] += time.perf_counter() - begin
            self.calls[name] += 1
            return result

        return measured


def counted(evidence: Any, theta: Any) -> Counts:
    """Evaluate with timers around every routine."""
    watch = _Stopwatch()
    with _installed(watch):
        seconds, _ = timed(lambda: evidence.at(theta).gradient)
    factorisations = sum(watch.calls[name] for name in _FACTORISATIONS)
    return Counts(seconds, dict(watch.inside), dict(watch.calls), factorisations)


@contextmanager
def _installed(watch: _Stopwatch) -> Iterator[None]:
    """Replace the routines in every module that has imported them."""
    rooms = [room for name, room in sys.modules.items() if name.startswith("cavity")]
    routines = {name: getattr(arrays, name) for name in _ROUTINES}
    places = [
        (r, name) for r in rooms for name in _ROUTINES if getattr(r, name, None) is routines[name]
    ]
    for room, name in places:
        setattr(room, name, watch.around(name, routines[name]))
    try:
        yield
    finally:
        for room, name in places:
            setattr(room, name, routines[name])
