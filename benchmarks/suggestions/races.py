"""One race: the same first rows, then ten more at a time, chosen by one strategy."""

import time
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import StandardScaler

from benchmarks.suggestions.sets import CHOSEN_ON, REPORTED, Race, race
from benchmarks.suggestions.strategies import strategies
from cavity import GaussianProcessClassifier, suggest

START, STEP, STEPS = 20, 10, 5
SETS = CHOSEN_ON | REPORTED
_RADIUS = 3.0


def measure(name: str, strategy: str, seed: int) -> dict[str, Any]:
    """Return the log loss on fresh rows after each step, and what was said before it."""
    begin, given = time.process_time(), scaled(race(SETS[name], seed, START))
    labelled, choose = given.first.tolist(), strategies()[strategy]
    model = fitted(given, labelled)
    losses, said = [log_loss(model, given)], []
    for step in range(STEPS):
        rest = np.setdiff1d(np.arange(len(given.y)), labelled)
        known = given.X[labelled], given.y[labelled]
        chosen, about = choose(model, *known, given.X[rest], STEP, 1000 * seed + step)
        labelled += rest[chosen].tolist()
        model = fitted(given, labelled)
        losses.append(log_loss(model, given))
        said.append(about)
    seconds = time.process_time() - begin
    about = {"set": name, "strategy": strategy, "seed": seed, "seconds": seconds}
    return about | {"losses": losses, "said": said}


def scaled(given: Race) -> Race:
    """Return inputs in units of the pool's spread, which needs no labels."""
    scaler = StandardScaler().fit(given.X)
    return given._replace(X=scaler.transform(given.X), X_fresh=scaler.transform(given.X_fresh))


def fitted(given: Race, labelled: list[int]) -> GaussianProcessClassifier:
    """Return the model of the rows labelled so far, whose kernel is chosen and tuned on them."""
    with warnings.catch_warnings():
        # A length scale at its bound is how an input is left out.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianProcessClassifier("auto").fit(given.X[labelled], given.y[labelled])


def log_loss(model: GaussianProcessClassifier, given: Race) -> float:
    """Return the mean log loss on fresh rows."""
    log_p = model.predict_log_proba(given.X_fresh)
    codes = np.searchsorted(model.classes_, given.y_fresh)
    return float(-np.mean(log_p[np.arange(len(codes)), codes]))


def cost(rows: int = 1000, pool: int = 10_000, k: int = 10) -> dict[str, float]:
    """Return the CPU seconds of k suggestions from a large pool, for a model of many rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, 8))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(rows) > 0.0
    model = GaussianProcessClassifier(4.0 * RBF(_RADIUS), optimizer=None).fit(X, y)
    X_pool, found = rng.standard_normal((pool, 8)), {}
    for criterion in ("error", "information"):
        begin = time.process_time()
        suggest(model, X_pool, k, criterion=criterion)
        found[criterion] = time.process_time() - begin
    return found
