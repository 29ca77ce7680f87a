"""Made-up tables whose truth is known. Each takes a number of rows and a random generator."""

import numpy as np

__all__ = ["additive", "coins", "friedman", "linear", "linear_target", "noise", "one_of", "ring"]

Table = tuple[np.ndarray, np.ndarray]
Rng = np.random.Generator


def coins(n: int, rng: Rng, d: int = 10) -> Table:
    """Toss a coin for each label: the best log loss is log 2."""
    return rng.standard_normal((n, d)), rng.integers(2, size=n)


def one_of(n: int, rng: Rng, d: int = 30) -> Table:
    """Let one input of thirty decide, smoothly and not monotonically."""
    X = rng.standard_normal((n, d))
    return X, _labels(3.0 * np.sin(1.5 * X[:, 0]), rng)


def additive(n: int, rng: Rng) -> Table:
    """Add functions of four inputs, on scales from a thousandth to a thousand; two are idle."""
    X = rng.standard_normal((n, 6))
    f = 2.0 * np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 - 1.0 + 1.5 * np.abs(X[:, 2]) - 1.2 + X[:, 3]
    return X * [1e-3, 1.0, 1e3, 10.0, 1.0, 100.0], _labels(f, rng)


def ring(n: int, rng: Rng) -> Table:
    """Put one class in a ring around the other, in two dimensions."""
    X = rng.standard_normal((n, 2))
    return X, _labels(6.0 * (1.2 - np.hypot(X[:, 0], X[:, 1])), rng)


def linear(n: int, rng: Rng) -> Table:
    """Draw from a logistic regression on ten inputs."""
    X = rng.standard_normal((n, 10))
    return X, _labels(X @ np.linspace(-1.0, 1.0, 10), rng)


def friedman(n: int, rng: Rng) -> Table:
    """Draw from Friedman's first function: five of ten inputs matter, unit noise."""
    X = rng.uniform(size=(n, 10))
    f = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2
    return X, f + 10.0 * X[:, 3] + 5.0 * X[:, 4] + rng.standard_normal(n)


def linear_target(n: int, rng: Rng) -> Table:
    """Draw from a linear regression on ten inputs with noise of variance one."""
    X = rng.standard_normal((n, 10))
    return X, 50.0 + X @ np.linspace(-1.0, 1.0, 10) + rng.standard_normal(n)


def noise(n: int, rng: Rng) -> Table:
    """Draw a target that has nothing to do with its ten inputs."""
    return rng.standard_normal((n, 10)), 3.0 + 2.0 * rng.standard_normal(n)


def _labels(log_odds: np.ndarray, rng: Rng) -> np.ndarray:
    return (rng.uniform(size=len(log_odds)) < 1.0 / (1.0 + np.exp(-log_odds))).astype(int)
