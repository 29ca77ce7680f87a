"""Long streams: after millions of updates a posterior is still the exact one.

``python -m farm.streams [--updates 10000000] [--out FILE]`` learns rows one after the other whose
inputs are the basis points themselves. With Gaussian noise the exact posterior then follows from
counts and sums, also under forgetting. With labels it depends on the order: the same updates, one
after the other, are made of mean and covariance with more digits than the stream has.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.gaussian_process.kernels import RBF

from cavity import OnlineGaussianProcessClassifier, OnlineGaussianProcessRegressor
from cavity.likelihoods import Gaussian

__all__ = ["STREAMS", "drift"]

_GRID = np.linspace(-2.0, 2.0, 5)[:, None]
_NOISE, _FORGET = 0.09, 0.999
_CHUNK = 64 * 1000
"""Rows of a call, whole intervals of the forgetting."""
_INTERVAL = 64
_HAZARD = math.sqrt(2.0 / math.pi)


def _regressor(forget: float) -> Any:
    likelihood = Gaussian(_NOISE)
    return OnlineGaussianProcessRegressor(
        RBF(1.0), budget=len(_GRID), likelihood=likelihood, forget=forget
    )


def _classifier() -> Any:
    return OnlineGaussianProcessClassifier(RBF(1.0), budget=len(_GRID))


def _rows(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Draw places on the grid and values there; the first rows visit each place."""
    places = rng.integers(0, len(_GRID), n)
    return places, np.sin(_GRID[places, 0]) + np.sqrt(_NOISE) * rng.standard_normal(n)


class _Exact:
    """Precision and source that all rows so far give to each place of the grid."""

    def __init__(self, forget: float) -> None:
        self.kept = forget**_INTERVAL
        self.tau, self.nu = np.zeros((2, len(_GRID)), dtype=np.longdouble)

    def learn(self, places: Any, y: Any) -> None:
        """Add some intervals, each of which fades with all before it."""
        size, m = _INTERVAL, len(_GRID)
        number = np.arange(len(y)) // size
        flat = number * m + places
        shape = (number[-1] + 1, m)
        counts = np.bincount(flat, minlength=shape[0] * m).reshape(shape)
        sums = np.bincount(flat, weights=y, minlength=shape[0] * m).reshape(shape)
        for count, total in zip(counts, sums, strict=True):
            self.tau = self.kept * (self.tau + count / _NOISE)
            self.nu = self.kept * (self.nu + total / _NOISE)

    def answer(self) -> tuple[Any, Any]:
        """Return mean and standard deviation at the grid."""
        K = RBF(1.0)(_GRID)
        s = np.sqrt(self.tau.astype(float))
        B = np.eye(len(s)) + s[:, None] * K * s
        half = np.linalg.solve(np.linalg.cholesky(B), s[:, None] * K)
        cov = K - half.T @ half
        return cov @ self.nu.astype(float), np.sqrt(np.diag(cov))


def _numbers(updates: int, forget: float, rng: np.random.Generator) -> dict[str, float]:
    """Return the largest deviations from the exact posterior, after every call."""
    model, exact, worst = _regressor(forget), _Exact(forget), {"mean": 0.0, "deviation": 0.0}
    for begin in range(0, updates, _CHUNK):
        places, y = _rows(rng, min(_CHUNK, updates - begin))
        if not begin:
            places[: len(_GRID)] = np.arange(len(_GRID))
        model.partial_fit(_GRID[places], y)
        exact.learn(places, y)
        _note(worst, model.predict(_GRID, return_std=True), exact.answer())
    return worst


class _Updates:
    """Mean and covariance at the grid, updated label by label in extended precision.

    The moments of a probit are those of Rasmussen and Williams (3.82) and (3.85), and the updates
    are written for the values themselves: neither shares a line with the library.
    """

    def __init__(self) -> None:
        self.mean = np.zeros(len(_GRID), dtype=np.longdouble)
        self.cov = RBF(1.0)(_GRID).astype(np.longdouble)

    def learn(self, places: Any, signs: Any) -> None:
        """Add some labels, each of them +1 or -1."""
        mean, cov = self.mean, self.cov
        for i, y in zip(places.tolist(), signs.tolist(), strict=True):
            column = cov[i].copy()
            s = math.sqrt(1.0 + float(column[i]))
            z = y * float(mean[i]) / s
            hazard = _HAZARD * math.exp(-0.5 * z * z) / math.erfc(-z * math.sqrt(0.5))
            mean += column * (y * hazard / s)
            cov -= (column * (hazard * (z + hazard) / (s * s)))[:, None] * column

    def answer(self) -> tuple[Any, Any]:
        """Return mean and standard deviation at the grid."""
        return self.mean.astype(float), np.sqrt(np.diag(self.cov)).astype(float)


def _latent(model: Any, near: Any) -> tuple[Any, Any]:
    """Return mean and standard deviation at the grid, from probabilities Φ((m + o)/√(1 + v)).

    Offsets o that lead to both sides of even chances show m and v with the most digits.
    """
    low, high = (ndtri(model.predict_proba(_GRID, side - near)[:, 1]) for side in (-1.0, 1.0))
    spread = 2.0 / (high - low)
    return near + 0.5 * (high + low) * spread, np.sqrt(spread**2 - 1.0)


def _labels(updates: int, rng: np.random.Generator) -> dict[str, float]:
    """Return the largest deviations from the same updates with more digits, after every call."""
    model, exact, worst = _classifier(), _Updates(), {"mean": 0.0, "deviation": 0.0}
    for begin in range(0, updates, _CHUNK):
        places, y = _rows(rng, min(_CHUNK, updates - begin))
        if not begin:
            places[: len(_GRID)] = np.arange(len(_GRID))
        label = y > 0.0
        model.partial_fit(_GRID[places], label.astype(int), classes=[0, 1])
        exact.learn(places, np.where(label, 1.0, -1.0))
        truth = exact.answer()
        _note(worst, _latent(model, truth[0]), truth)
    return worst


def _note(worst: dict[str, float], found: tuple[Any, Any], truth: tuple[Any, Any]) -> None:
    """Note the largest error of a mean, and the largest relative one of a deviation."""
    (mean, sd), (true_mean, true_sd) = found, truth
    worst["mean"] = max(worst["mean"], float(np.max(np.abs(mean - true_mean))))
    worst["deviation"] = max(worst["deviation"], float(np.max(np.abs(sd / true_sd - 1.0))))


STREAMS: dict[str, Callable[[int, np.random.Generator], dict[str, float]]] = {
    "numbers": lambda updates, rng: _numbers(updates, 1.0, rng),
    "numbers, forgetting": lambda updates, rng: _numbers(updates, _FORGET, rng),
    "labels": _labels,
}


def drift(name: str, updates: int, seed: int = 0) -> dict[str, float]:
    """Learn a stream; return what it deviates by, and the time of an update."""
    begin = time.process_time()
    found = STREAMS[name](updates, np.random.default_rng(seed))
    return found | {"updates": updates, "seconds": time.process_time() - begin}


def main() -> int:
    """Learn all streams; the exit code is 1 if any has drifted by more than 1e-6."""
    parser = argparse.ArgumentParser(prog="farm.streams", description=__doc__)
    parser.add_argument("--updates", type=int, default=10_000_000, help="of each stream")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = {name: drift(name, options.updates) for name in STREAMS}
    text = json.dumps(found, indent=1)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", encoding="utf-8")
    off = [one[part] for one in found.values() for part in ("mean", "deviation")]
    return not max(off) <= 1e-6


if __name__ == "__main__":
    sys.exit(main())
