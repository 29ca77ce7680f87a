"""Three ways in which labels are turned wrong."""

from collections.abc import Callable

import numpy as np
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

__all__ = ["KINDS", "turned"]

Turned = tuple[np.ndarray, np.ndarray]
"""Labels as given, and which of them are wrong."""
_NEIGHBOURS = 15
_MOST = 0.4
"""Share of a class that is called another one: of more, it could be the other way round."""


def turned(
    kind: str, X: np.ndarray, y: np.ndarray, share: float, rng: np.random.Generator
) -> Turned:
    """Return labels of which a share is wrong."""
    return KINDS[kind](X, y, round(share * len(y)), rng)


def uniform(X: np.ndarray, y: np.ndarray, count: int, rng: np.random.Generator) -> Turned:
    """Turn any label into any other one."""
    return _with(y, rng.choice(len(y), count, replace=False), _any_other(y, rng))


def near_the_boundary(X: np.ndarray, y: np.ndarray, count: int, rng: np.random.Generator) -> Turned:
    """Turn labels into the second likeliest, the more often the closer both are.

    How likely classes are is what fifteen neighbours say, a judge that no contestant uses.
    """
    judge = make_pipeline(StandardScaler(), KNeighborsClassifier(_NEIGHBOURS))
    votes = cross_val_predict(judge, X, y, cv=5, method="predict_proba")
    own = votes[np.arange(len(y)), y].copy()
    votes[np.arange(len(y)), y] = -1.0
    weight = np.exp(-4.0 * (own - votes.max(axis=1)))
    chosen = rng.choice(len(y), count, replace=False, p=weight / weight.sum())
    return _with(y, chosen, np.argmax(votes + 1e-6 * rng.random(votes.shape), axis=1))


def one_into_another(X: np.ndarray, y: np.ndarray, count: int, rng: np.random.Generator) -> Turned:
    """Call some rows of one class, drawn at random, by the name of another."""
    first, second = rng.permutation(y.max() + 1)[:2]
    own = np.flatnonzero(y == first)
    chosen = rng.choice(own, min(count, int(_MOST * len(own))), replace=False)
    return _with(y, chosen, np.full(len(y), second))


def _any_other(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n_classes = y.max() + 1
    return (y + rng.integers(1, n_classes, len(y))) % n_classes


def _with(y: np.ndarray, chosen: np.ndarray, others: np.ndarray) -> Turned:
    wrong = np.zeros(len(y), dtype=bool)
    wrong[chosen] = True
    return np.where(wrong, others, y), wrong


KINDS: dict[str, Callable[..., Turned]] = {
    "uniform": uniform,
    "near the boundary": near_the_boundary,
    "one class into another": one_into_another,
}
