"""Ways to choose rows: each takes a fitted model, what is labelled, the rest of the pool, and k."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import clone

from cavity import suggest

Choice = tuple[Any, dict[str, Any]]
"""Numbers of rows of the pool, and what else was said."""
Strategy = Callable[[Any, np.ndarray, np.ndarray, np.ndarray, int, int], Choice]


def at_random(model: Any, X: Any, y: Any, pool: Any, k: int, seed: int) -> Choice:
    """Return random rows."""
    return np.random.default_rng(seed).choice(len(pool), k, replace=False), {}


def uncertain(model: Any, X: Any, y: Any, pool: Any, k: int, seed: int) -> Choice:
    """Return the rows whose most probable class is least probable."""
    return np.argsort(model.predict_proba(pool).max(axis=1), kind="stable")[:k], {}


def suggested(criterion: str) -> Strategy:
    """Return the rows that `cavity.suggest` names, and its forecast."""

    def strategy(model: Any, X: Any, y: Any, pool: Any, k: int, seed: int) -> Choice:
        found = suggest(model, pool, k, criterion=criterion, random_state=seed)
        said = {"stop": found.stop, "fall": found.loss - found.loss_after, "loss": found.loss}
        return found.index, said

    return strategy


def clue(model: Any, X: Any, y: Any, pool: Any, k: int, seed: int) -> Choice:
    """Return what scikit-activeml's CLUE names with this model: uncertain rows, one a cluster."""
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.pool import Clue

    wrapped = SklearnClassifier(clone(model), classes=np.unique(y)).fit(X, y)
    everything = np.vstack([X, pool])
    known = np.concatenate([y.astype(float), np.full(len(pool), np.nan)])
    query = Clue(random_state=seed)
    chosen = query.query(everything, known, wrapped, fit_estimator=False, batch_size=k)
    return np.asarray(chosen) - len(X), {}


def strategies() -> dict[str, Strategy]:
    """Return the strategies whose packages are installed."""
    found = {
        "random": at_random,
        "uncertainty": uncertain,
        "suggest, error": suggested("error"),
        "suggest, information": suggested("information"),
    }
    return found | ({"CLUE": clue} if find_spec("skactiveml") else {})
