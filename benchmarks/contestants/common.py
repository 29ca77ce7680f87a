"""What every contestant hands back."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Evaluation", "Fitted", "timed"]


class Evaluation(NamedTuple):
    """One log evidence with its gradient, and what it took."""

    seconds: float
    evidence: float


class Fitted(NamedTuple):
    """A tuned model: its log evidence, and P(+1) at new inputs."""

    evidence: float
    proba: Callable[[np.ndarray], np.ndarray]
    note: str = ""


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that a call took, and what it returned."""
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result
