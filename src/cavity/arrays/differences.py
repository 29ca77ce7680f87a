"""Derivatives by differences."""

from collections.abc import Callable

from cavity.arrays.standard import Array


def slope(function: Callable[[float], Array], h: float) -> Array:
    """Return the derivative at zero by differences of fourth order, with the step h."""
    near, far = function(h) - function(-h), function(2.0 * h) - function(-2.0 * h)
    return (8.0 * near - far) / (12.0 * h)
