"""The time and memory of a curve, against refits and against the floor of LAPACK."""

import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessClassifier as SklearnClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import ShuffleSplit
from sklearn.model_selection import learning_curve as sklearn_learning_curve

from benchmarks.contestants.common import timed
from benchmarks.curves.tasks import Plan, say
from benchmarks.data import synthetic
from benchmarks.measure import dpotrf, median, threads
from benchmarks.tables import markdown
from cavity import GaussianProcessClassifier, learning_curve, simulate_learning_curve

__all__ = ["speed", "speed_page"]

_ROUNDS = 5


def speed(plan: Plan) -> dict[str, Any]:
    """Time ten sizes against refits, which are counted up from fewer, and against dpotrf(n)."""
    return {
        "threads": threads(),
        "refits_per_size": 100,
        "small": _alone(against_refits, plan.size),
        "large": _alone(against_floor, plan.large),
    }


def _alone(job: Callable[[int], dict[str, Any]], n: int) -> dict[str, Any]:
    """Do a job in a fresh process."""
    say(f"{job.__name__}, n = {n}")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(job, n).result()


def _fixed(n: int) -> tuple[np.ndarray, np.ndarray, Any, np.ndarray]:
    """Return data, a classifier that is not tuned, and ten sizes."""
    X, y, _, _ = synthetic(n, 10)
    kernel = 30.0 * RBF([2.5, 3.5, 3.5, 8.0, *[100.0] * 6])
    return X, y, GaussianProcessClassifier(kernel, optimizer=None), np.linspace(0.1, 0.95, 10)


def against_refits(n: int) -> dict[str, Any]:
    """Time a curve, two of our refits at each size and one of scikit-learn's, in turn."""
    X, y, model, sizes = _fixed(n)
    _warm(X, y, model)
    model.fit(X, y)
    peer = SklearnClassifier(model.kernel, optimizer=None)
    about = {"train_sizes": sizes, "n_repeats": 2}

    def theirs(seed: int) -> Any:
        # Its largest training set is a share of the split's: give it all but what is judged.
        split = ShuffleSplit(1, train_size=0.95, random_state=seed)
        return sklearn_learning_curve(peer, X, y, train_sizes=sizes / 0.95, cv=split)

    rounds = [
        (
            timed(lambda: learning_curve(model, X, y, train_sizes=sizes))[0],
            timed(lambda k=k: simulate_learning_curve(model, X, y, random_state=k, **about))[0],
            timed(lambda k=k: theirs(k))[0],
        )
        for k in range(_ROUNDS)
    ]
    ours, refits, others = (median(list(seconds)) for seconds in zip(*rounds, strict=True))
    return {"n": n, "seconds": ours, "refits": 50.0 * refits, "scikit_learn": 100.0 * others}


def against_floor(n: int) -> dict[str, Any]:
    """Time a curve in units of dpotrf(n), and measure its memory above that of the fitted model."""
    X, y, model, sizes = _fixed(n)
    _warm(X, y, model)
    kept, peak = _memory(X, y, model, sizes)
    floor = dpotrf(n)
    seconds, curve = timed(lambda: learning_curve(model, X, y, train_sizes=sizes))
    each = seconds / len(sizes)
    floor = median(floor + dpotrf(n))
    return {
        "n": n,
        "seconds_per_size": each,
        "dpotrf": floor,
        "floors_per_size": each / floor,
        "iterations": [int(k) for k in curve.n_iter],
        "model_memory": kept / (8.0 * n * n),
        "memory": (peak - kept) / (8.0 * n * n),
    }


def _memory(X: np.ndarray, y: np.ndarray, model: Any, sizes: np.ndarray) -> tuple[int, int]:
    """Return the bytes that the fitted model keeps, and the most in use during a curve."""
    tracemalloc.start()
    model.fit(X, y)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    learning_curve(model, X, y, train_sizes=sizes[:2])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept, peak


def _warm(X: np.ndarray, y: np.ndarray, model: Any) -> None:
    """Load whatever is loaded lazily."""
    learning_curve(clone(model), X[:40], y[:40])


def speed_page(found: dict[str, Any]) -> str:
    """Return the times and what they are compared with."""
    small, large = found["small"], found["large"]
    rows = [
        (f"n = {small['n']}, ten sizes", f"{small['seconds']:.3g} s", "", ""),
        ("the same by 100 of our refits a size", *_times(small, "refits"), ">= 10 x"),
        ("the same by scikit-learn's learning_curve", *_times(small, "scikit_learn"), ">= 100 x"),
        (
            f"n = {large['n']}, one size",
            f"{large['seconds_per_size']:.3g} s",
            f"{large['floors_per_size']:.0f} dpotrf(n)",
            "<= 120 dpotrf(n)",
        ),
        (
            "its memory, above the fitted model's",
            f"{large['memory']:.2g} n² doubles",
            f"model {large['model_memory']:.2g}",
            "<= 6 n² doubles",
        ),
    ]
    return "\n\n".join(
        [
            "## Speed",
            "Classification with a fixed kernel, medians of five rounds. Refits are counted up: "
            "two of ours and one of scikit-learn's at each size, times 50 and 100. "
            f"Threads: {found['threads']}.",
            markdown(["work", "measured", "against theory", "bar"], rows),
        ]
    )


def _times(small: dict[str, Any], who: str) -> tuple[str, str]:
    return f"{small[who]:.3g} s", f"{small[who] / small['seconds']:.0f} x"
