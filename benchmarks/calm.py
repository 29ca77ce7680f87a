"""Other people's work on the same machine: wait until it rests, and say how much there was.

Threads of a BLAS wait for each other in a spin: a neighbour that takes one core away can slow a
small factorisation down a hundredfold. Without Linux's /proc/stat nothing is known or waited for.
"""

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["undisturbed"]

_STAT = Path("/proc/stat")
_GLANCE = 0.3
_QUIET = 0.1
"""Share of a core that others may take of those that the measurement needs."""


def undisturbed(call: Callable[[], dict[str, Any]], patience: float, tries: int) -> dict[str, Any]:
    """Call when the machine is quiet, again if others came in between; keep the calmest answer.

    Parameters
    ----------
    call : callable
        Works in processes of its own and waits for them to end.
    patience : float
        The most seconds to wait for quiet before each try.
    tries : int
    """
    answers = []
    for _ in range(tries):
        _wait(patience)
        answers.append(_watched(call))
        if "failed" in answers[-1] or answers[-1]["others"] <= _room():
            break
    return min(answers, key=lambda answer: float(answer["others"]))


def _watched(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Add to the answer how many cores others kept busy meanwhile."""
    busy, own, begin = _busy(), _own(), time.perf_counter()
    answer = call()
    others = (_busy() - busy) - (_own() - own)
    return {**answer, "others": max(0.0, others / (time.perf_counter() - begin))}


def _wait(patience: float) -> None:
    stop = time.perf_counter() + patience
    while time.perf_counter() < stop:
        busy = _busy()
        time.sleep(_GLANCE)
        if (_busy() - busy) / _GLANCE <= _room():
            return


def _room() -> float:
    """Return how many cores others may keep busy without taking one away."""
    cores = os.cpu_count() or 1
    return max(0, cores - int(os.environ.get("OMP_NUM_THREADS", cores))) + _QUIET


def _busy() -> float:
    """Return the seconds that all cores together have worked since the machine started."""
    if not _STAT.exists():
        return 0.0
    user, nice, system, _, _, irq, softirq, steal = map(int, _STAT.read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own() -> float:
    """Return the seconds that this process and the children that have ended have worked."""
    if not _STAT.exists():
        return 0.0
    usages = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
