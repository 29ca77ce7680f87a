"""Learning curves, forecasts and suspects."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    learning_curve,
    simulate_learning_curve,
)
from farm.draw import Spec, inputs_of, kernel_of, labels_of, rng_of, targets_of, with_noise
from farm.kinds import common
from farm.ledger import Ledger

_FIELDS = ("test_error", "test_log_loss", "pool_error", "posterior_variance")
_POINTS = ("point_error", "point_log_loss", "point_doubt", "point_mean", "point_variance")
_RISE, _RISE_OF_VARIANCE = 0.1, 0.02
"""By how much an average over more rows may seem higher, by the theory's own error."""
_REPEATS = 400
"""Refits that say whether it really is higher."""


def check(ledger: Ledger, spec: Spec) -> None:
    """Compute curves of labels and of numbers, drawn without and with replacement."""
    X = inputs_of(spec)
    way = "subsample" if rng_of(spec, 9).random() < 0.5 else "bootstrap"
    labels = GaussianProcessClassifier(kernel_of(spec), optimizer=None)
    numbers = GaussianProcessRegressor(
        with_noise(spec, kernel_of(spec)), alpha=0.01, optimizer=None
    )
    _curve(ledger, spec, f"classes {way}", labels, X, labels_of(spec, X), way)
    _curve(ledger, spec, f"targets {way}", numbers, X, targets_of(spec, X), way)


def _curve(ledger: Ledger, spec: Spec, of: str, model: Any, X: Any, y: Any, way: str) -> None:
    sizes = sorted({2, len(y) // 3 + 1, 2 * len(y) // 3 + 1, len(y)})
    fitted, _ = ledger.run(of, lambda: model.fit(X, y))
    if fitted is None or not common.settled(fitted):
        return
    curve, warned = ledger.run(
        of, lambda: learning_curve(fitted, X, y, train_sizes=sizes, resampling=way)
    )
    if curve is None:
        return
    ledger.ended(of, bool(curve.converged.all()), warned)
    whole = ledger.run(of, lambda: [getattr(curve, name) for name in (*_FIELDS, *_POINTS)])
    if whole.value is None:
        return
    good = [
        ledger.finite(of, name, part)
        for name, part in zip((*_FIELDS, *_POINTS), whole.value, strict=True)
    ]
    if not all(good):
        return
    if curve.converged.all() and not warned:
        _shape(ledger, of, curve, y, partial(_refits, curve, fitted, X, y))
    _questions(ledger, of, curve, len(y))
    _twins(ledger, of, curve, X, y)


def _refits(curve: Any, model: Any, X: Any, y: Any) -> Any:
    """Return the pool error of models that are fitted to random training sets."""
    sizes, way = curve.train_sizes.astype(int), curve.resampling
    options = {"train_sizes": sizes, "resampling": way, "n_repeats": _REPEATS, "random_state": 0}
    found = simulate_learning_curve(model, X, y, **options).pool_error
    # Refits to all rows but one; the one training set of all rows is the fit itself.
    left_out = (sizes >= len(y)) & (way == "subsample")
    return np.where(left_out, curve.apparent_error, found)


def _shape(ledger: Ledger, of: str, curve: Any, y: Any, refits: Callable[[], Any]) -> None:
    """Errors are rates, and more rows leave less variance and no more error in the pool.

    A model of noise, or one with a weak kernel, may really err more on all rows with more of them:
    then refits do, too.
    """
    if curve.task == "classification":
        for name in ("test_error", "pool_error", "point_error"):
            part = getattr(curve, name)
            ledger.require(np.all((part >= 0.0) & (part <= 1.0)), "within [0, 1]", of, name)
    unit = 1.0 if curve.task == "classification" else float(np.var(y)) + 1e-6 * np.mean(y**2)
    rise = np.max(np.diff(curve.pool_error) / unit)
    if rise > _RISE and (found := ledger.run(of, refits).value) is not None:
        really = np.max(np.diff(found) / unit)
        pair = f"{curve.pool_error}, by refits {found}"
        ledger.require(really > 0.5 * _RISE, "pool error rises", of, pair)
    variance = curve.posterior_variance
    rise = np.max(np.diff(variance) / variance[:-1])
    ledger.require(rise <= _RISE_OF_VARIANCE, "variance rises", of, variance)


def _questions(ledger: Ledger, of: str, curve: Any, n: int) -> None:
    """Require forecasts inside their intervals, error rates in [0, 1], and a size or none."""
    for measure in ("error", "log_loss"):
        for size in (n, 2 * n, 100 * n):
            found, _ = ledger.run(of, partial(curve.forecast, size, measure), may_refuse=False)
            if found is None or not ledger.finite(of, f"forecast {measure}", found):
                continue
            inside = found.low <= found.value <= found.high
            ledger.require(inside, "value outside of its interval", of, found)
            if measure == "error":
                top = 1.0 if curve.task == "classification" else np.inf
                ledger.require(0.0 <= found.low <= found.high <= top, "no error rate", of, found)
    goal = float(curve.test_error[-1])
    size, _ = ledger.run(of, lambda: curve.size_for(error=goal), may_refuse=False)
    ledger.require(size is None or size >= 1, "no size", of, size)
    chance, _ = ledger.run(of, lambda: curve.probability(2 * n, error=goal), may_refuse=False)
    if chance is not None:
        ledger.require(0.0 <= chance <= 1.0, "no probability", of, chance)


def _twins(ledger: Ledger, of: str, curve: Any, X: Any, y: Any) -> None:
    """Suspects are in order, and rows that are equal are equally suspect."""
    found, _ = ledger.run(of, lambda: curve.suspects(len(y)), may_refuse=False)
    if found is None:
        return
    doubts = np.array([one.doubt for one in found])
    ledger.require(np.all(np.diff(doubts) <= 1e-9 * (1.0 + np.abs(doubts[1:]))), "order", of)
    ledger.require({one.index for one in found} == set(range(len(y))), "each row once", of)
    _, first, inverse = np.unique(
        np.column_stack([X, y]), axis=0, return_index=True, return_inverse=True
    )
    doubt = curve.point_doubt[-1]
    twins = doubt[first][inverse.ravel()]
    ledger.near("twins", of, doubt, twins, 1e-4 * (1.0 + np.max(np.abs(doubt))), 1e-4)
