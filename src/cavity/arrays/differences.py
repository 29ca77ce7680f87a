"""Derivatives by differences."""

from collections.abc import Callable
from functools import partial

import numpy as np

from cavity.arrays.standard import Array


def bend(function: Callable[[float], Array], h: float) -> Array:
    """Return the second derivative at zero by differences of fourth order, with the step h."""
    near, far = function(h) + function(-h), function(2.0 * h) + function(-2.0 * h)
    return (16.0 * near - far - 30.0 * function(0.0)) / (12.0 * h**2)


def slope(function: Callable[[float], Array], h: float) -> Array:
    """Return the derivative at zero by differences of fourth order, with the step h."""
    near, far = function(h) - function(-h), function(2.0 * h) - function(-2.0 * h)
    return (8.0 * near - far) / (12.0 * h)


def row_gradients(
    function: Callable[[Array], Array], X: Array, step: float = 1e-4, like: Array | None = None
) -> Array:
    """Return the gradient of each row's value in the row's own entries, of the shape of X.

    The function gives one number for each row of a NumPy array, or several: these are the last
    axis of the result. The step is a share of the spread of a column (of X, or of inputs ``like``
    it), or of its largest entry where all are equal.
    """
    spread = np.std(X if like is None else like, axis=0)
    spread = np.where(spread > 0.0, spread, np.maximum(np.max(np.abs(X), axis=0), 1.0))
    # Entries move by powers of two, without rounding.
    steps = 2.0 ** np.round(np.log2(step * spread))
    units = np.eye(X.shape[1])

    def moved(unit: Array, h: float) -> Array:
        return function(X + h * unit)

    found = [slope(partial(moved, unit), h) for unit, h in zip(units, steps, strict=True)]
    return np.stack(found, axis=1)
