"""Whole fits of small tables beside scikit-learn's, on one thread.

    python -m benchmarks.small

writes results/small.md. Every figure is the median over interleaved rounds.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_iris
from sklearn.gaussian_process import GaussianProcessClassifier as Theirs
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessClassifier as Ours

_RESULTS = Path(__file__).parent / "results" / "small.md"
_ROUNDS = 15
_FITS: dict[str, Callable[[Any], Any]] = {
    "scikit-learn": Theirs,
    "cavity EP": Ours,
    "cavity Laplace, logit": lambda kernel: Ours(kernel, inference="laplace", likelihood="logit"),
}


def _made_up(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.normal(size=n) > 0.4


def _tables() -> dict[str, tuple[tuple[Any, Any], Any]]:
    iris = load_iris(return_X_y=True)
    return {
        "made up, n = 50, d = 2, one scale per input": (_made_up(50), 1.0 * RBF([1.0, 1.0])),
        "made up, n = 50, d = 2, one scale": (_made_up(50), 1.0 * RBF(1.0)),
        "made up, n = 100, d = 2, one scale per input": (_made_up(100), 1.0 * RBF([1.0, 1.0])),
        "iris, one scale": (iris, 1.0 * RBF(1.0)),
        "iris, one scale per input": (iris, 1.0 * RBF(np.ones(4))),
    }


def _seconds(make: Callable[[Any], Any], kernel: Any, data: tuple[Any, Any]) -> float:
    model = make(kernel)
    begin = time.perf_counter()
    model.fit(*data)
    return time.perf_counter() - begin


def _row(name: str, data: tuple[Any, Any], kernel: Any) -> str:
    rounds = [[_seconds(make, kernel, data) for make in _FITS.values()] for _ in range(_ROUNDS)]
    theirs, *ours = 1e3 * np.median(rounds, axis=0)
    cells = [f"{theirs:.1f}", *(f"{own:.1f} ({own / theirs:.2f})" for own in ours)]
    return " | ".join([f"| {name}", *cells]) + " |"


def main() -> None:
    """Measure and write."""
    warnings.simplefilter("ignore")
    lines = [
        "# Whole fits of small tables",
        "",
        "Milliseconds on one thread, medians of interleaved rounds; in brackets the ratio to",
        "scikit-learn's Laplace. Several classes are fitted one against the rest.",
        "",
        "| table | " + " | ".join(_FITS) + " |",
        "|---|" + "---|" * len(_FITS),
        *(_row(name, *table) for name, table in _tables().items()),
    ]
    _RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
