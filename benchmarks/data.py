"""The data that all contestants see."""

from typing import NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler

from cavity.datasets import load_pima

__all__ = ["TEST_SIZE", "Data", "load", "synthetic", "theta"]

TEST_SIZE = 2000
_NOISE = 0.5
_RELEVANT = 4


class Data(NamedTuple):
    """Training and test inputs with labels of ±1."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def load(name: str) -> Data:
    """Return the data set "pima", or "synthetic-N-D" with N examples of D inputs."""
    if name == "pima":
        return _pima()
    _, n, d = name.split("-")
    return synthetic(int(n), int(d))


def synthetic(n: int, d: int, seed: int = 0) -> Data:
    """Return labels that depend smoothly on the first four of d normal inputs, and on noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n + TEST_SIZE, d))
    f = 2.0 * np.sin(X[:, 0]) + 0.7 * X[:, 1] * X[:, 2] + 0.5 * X[:, 3]
    y = np.where(f + _NOISE * rng.standard_normal(len(f)) > 0.0, 1.0, -1.0)
    return Data(X[:n], y[:n], X[n:], y[n:])


def theta(name: str, d: int) -> np.ndarray:
    """Return logarithms of amplitude and length scales: "start", or "tuned" as fits find them."""
    if name == "start":
        return np.r_[1.0, np.full(d, np.log(3.0))]
    irrelevant = [100.0] * (d - _RELEVANT)
    return np.log([30.0, 2.5, 3.5, 3.5, 8.0, *irrelevant])


def _pima() -> Data:
    X, y = load_pima(return_X_y=True)
    X_test, y_test = load_pima(subset="test", return_X_y=True)
    scaler = StandardScaler().fit(X)
    return Data(scaler.transform(X), _sign(y), scaler.transform(X_test), _sign(y_test))


def _sign(y: np.ndarray) -> np.ndarray:
    return np.where(y == 1, 1.0, -1.0)
