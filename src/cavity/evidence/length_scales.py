"""Coordinates in which the evidence is easy to climb: those of long scales have an end."""

from collections.abc import Sequence

import numpy as np

from cavity.arrays import Array
from cavity.kernels import length_scales

__all__ = ["Coordinates"]

_LONG = 5.0
"""How many times longer than the given one a scale is from which on its inverse counts."""
_ENDLESS = 1e3
"""How many κ are as good as infinity: of the relevance at κ a millionth is left."""
_AWAKE = 0.1
"""The κ/ℓ to which a scale is brought back that has gone there by mistake."""
_ROUSED = 0.2
"""The κ/ℓ at which to ask whether a scale that has gone to the end would rather stay."""
_WORTH = 0.1
"""Growth of the log evidence, in (κ/ℓ)² or in −u, from which on to bring a scale back."""
_LARGEST = 700.0
"""A logarithm whose exponential is still a finite number."""


class Coordinates:
    """u with e^-u = 1/ℓ + 1/κ for a length scale ℓ, and u = θ for other hyperparameters.

    The evidence levels off as an input loses its relevance: it becomes a parabola in 1/ℓ, whose
    end in log ℓ is far away. There every step of a quasi-Newton method adds about the same to
    log ℓ, while in u the end is a finite place with a curvature like any other. Scales much
    shorter than κ keep their logarithms.

    Parameters
    ----------
    names : sequence of str
        Of the hyperparameters, in scikit-learn's way.
    theta : array of shape (p,)
        Hyperparameters of the right order of magnitude: κ is some times the scale given here.

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.evidence.length_scales import Coordinates
    >>> there = Coordinates(["constant_value", "length_scale"], np.zeros(2))
    >>> u = there.of(np.log([1e5, 1e5]))
    >>> np.exp(u).round(3), np.exp(there.theta(u)).round(3)
    (array([1.e+05, 5.e+00]), array([100000., 100000.]))
    """

    def __init__(self, names: Sequence[str], theta: Array) -> None:
        self._log_rate = np.where(length_scales(names), -theta - np.log(_LONG), -np.inf)

    def of(self, theta: Array) -> Array:
        """Return u."""
        theta = np.clip(theta, -_LARGEST, _LARGEST)
        return -np.logaddexp(-theta, self._log_rate)

    def limits(self, bounds: Array) -> Array:
        """Return lower and upper limits of u, as two rows.

        A scale that is as good as infinite ends at half of its bound: it has not been stopped by
        the bound, and nobody should be told to widen it.
        """
        lower, upper = bounds.T
        endless = np.maximum(np.log(_ENDLESS) - self._log_rate, upper - np.log(2.0))
        return self.of(np.stack([lower, np.clip(endless, lower, upper)]))

    def theta(self, u: Array) -> Array:
        """Return the hyperparameters at u."""
        with np.errstate(divide="ignore"):
            # Rounding may put u at the very end, where the scale is infinite.
            theta = u - np.log(-np.expm1(np.minimum(u + self._log_rate, 0.0)))
        return np.clip(theta, -_LARGEST, _LARGEST)

    def slope(self, theta: Array, gradient: Array) -> Array:
        """Return the gradient in u, given the one in theta."""
        return gradient * (1.0 + np.exp(theta + self._log_rate))

    def awake(self, u: Array, slope: Array) -> Array:
        """Return u with the length scales brought back that have gone to the end by mistake.

        Parameters
        ----------
        u : array of shape (p,)
        slope : array of shape (p,)
            Gradient in u of what is minimised. Where κ/ℓ is zero it vanishes, also where the
            curvature says that the input is relevant: a long step that has led there is final.
        """
        s = self._relevance(u)
        curvature = -slope / (2.0 * s * (1.0 + s))
        wrong = (s * _ENDLESS < 1.0) & (curvature < -_WORTH)
        return np.where(wrong, -np.log1p(_AWAKE) - self._log_rate, u)

    def roused(self, u: Array) -> Array:
        """Return u with all length scales that have gone to the end brought back some way.

        The evidence may have one summit there and a higher one here, with a dip in between.
        """
        asleep = self._relevance(u) * _ENDLESS < 1.0
        return np.where(asleep, -np.log1p(_ROUSED) - self._log_rate, u)

    @staticmethod
    def climbing(u: Array, roused: Array, slope: Array) -> Array:
        """Return u with those scales roused that would go on to become shorter.

        Parameters
        ----------
        u, roused : arrays of shape (p,)
        slope : array of shape (p,)
            Gradient at the roused ones of what is minimised.
        """
        return np.where((u != roused) & (slope > _WORTH), roused, u)

    def _relevance(self, u: Array) -> Array:
        """Return κ/ℓ, within limits that keep what is wide awake or at the end from overflowing."""
        return np.expm1(np.clip(-u - self._log_rate, np.finfo(float).eps, 1.0))
