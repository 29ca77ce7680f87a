"""Clocks and rulers: children in fresh processes, the floor dpotrf(n), peak memory."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import lapack

from benchmarks.calm import undisturbed
from benchmarks.contestants.common import timed
from benchmarks.plan import Plan

__all__ = [
    "DISTURBANCES",
    "child",
    "cpu_seconds",
    "dpotrf",
    "interleaved",
    "median",
    "peak_bytes",
    "threads",
]

ROOT = Path(__file__).resolve().parent.parent
DISTURBANCES: list[float] = []
"""Cores that others kept busy during each measurement of this run."""
_LONG = 45.0
"""Seconds after which a measurement is not repeated."""
_LARGE = 2000
"""Size beyond which a factorisation takes long enough to be timed less often."""


def dpotrf(n: int) -> list[float]:
    """Return the seconds of LAPACK's Cholesky factorisation of an n×n matrix, several times."""
    repeats = 5 if n <= _LARGE else 2
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((n, 50))
    A = np.asfortranarray(Z @ Z.T / 50.0)
    A[np.diag_indices(n)] += 1.0
    return [_factor(A.copy(order="F")) for _ in range(repeats)]


def _factor(A: np.ndarray) -> float:
    seconds, _ = timed(lambda: lapack.dpotrf(A, lower=1, overwrite_a=1))
    return seconds


def peak_bytes() -> int:
    """Return the largest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def cpu_seconds(children: bool = False) -> float:
    """Return the processor time of this process so far, or that of its children that have ended."""
    who = resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def child(timeout: float, module: str = "benchmarks.jobs", **job: Any) -> dict[str, Any]:
    """Do a job of `benchmarks.jobs` or a module like it in a fresh process.

    A failure is an answer, too.

    The answer goes through a file: some peers write to standard output.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, "-W", "ignore", "-m", module, json.dumps(job)]
        try:
            done = subprocess.run(
                [*command, str(answer)], cwd=ROOT, capture_output=True, text=True, timeout=timeout
            )
        except subprocess.TimeoutExpired:
            return {"failed": f"no answer after {timeout:.0f} s"}
        if done.returncode:
            silent = [f"ended with code {done.returncode} and no message"]
            last = (done.stderr.strip().splitlines() or silent)[-1]
            return {"failed": last[:200]}
        return dict(json.loads(answer.read_text()))


def interleaved(
    calls: Mapping[str, Callable[[], dict[str, Any]]], plan: Plan, say: Callable[[str], None]
) -> dict[str, list[dict[str, Any]]]:
    """Call all in turn, several times round: what disturbs one disturbs its neighbours.

    A contestant that failed, or took very long, is not called again.
    """
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in calls}
    retired: set[str] = set()
    for turn in range(plan.repeats):
        for name in [name for name in calls if name not in retired]:
            say(f"  {name}, {turn + 1} of {plan.repeats}")
            answer = undisturbed(calls[name], plan.quiet, plan.tries)
            answers[name].append(answer)
            DISTURBANCES.append(answer["others"])
            if "failed" in answer or answer.get("seconds", 0.0) > _LONG:
                retired.add(name)
    return answers


def median(values: list[float]) -> float:
    """Return the median."""
    return float(np.median(values))


def threads() -> str:
    """Return the number of threads that all contestants were given."""
    return os.environ.get("OMP_NUM_THREADS", "not set")
