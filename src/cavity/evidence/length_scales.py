"""Coordinates in which infinitely long length scales are a finite distance away."""

from collections.abc import Sequence

import numpy as np

from cavity.arrays import Array
from cavity.kernels import length_scales

_LONG = 5.0
"""Scales longer than this many times the given one are described by their inverse."""
_ENDLESS = 1e3
"""A scale of this many κ counts as infinite: it has a millionth of the relevance at κ."""
_REVIVED = 0.2
"""The κ/ℓ at which to look for another maximum with a scale that has reached its limit."""
_WORTH = 0.1
"""A revived scale is kept if the log evidence grows at least this fast in −u."""
_STEEP = 0.5
"""With a larger slope of the log evidence in θ a search has not come to a maximum."""
_LARGEST = 700.0
"""A logarithm whose exponential is still finite."""


class Coordinates:
    """u with e^-u = 1/ℓ + 1/κ for a length scale ℓ, and u = θ for other hyperparameters.

    As ℓ grows, the input loses its relevance and the evidence levels off like a parabola in 1/ℓ.
    In log ℓ a quasi-Newton method needs many equal steps to get there; in u the limit ℓ = ∞ is a
    finite distance away, with a curvature like any other (292 evaluations instead of 384 on nine
    tables). Scales much shorter than κ keep their logarithms.

    Parameters
    ----------
    names : sequence of str
        Of the hyperparameters, as in scikit-learn.
    theta : array of shape (p,)
        Hyperparameters of the right order of magnitude: κ is a multiple of the scale given here.

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

        A scale that counts as infinite stops at half of its bound, so that no warning asks to
        widen the bound.
        """
        lower, upper = bounds.T
        endless = np.maximum(np.log(_ENDLESS) - self._log_rate, upper - np.log(2.0))
        return self.of(np.stack([lower, np.clip(endless, lower, upper)]))

    def theta(self, u: Array) -> Array:
        """Return the hyperparameters at u."""
        with np.errstate(divide="ignore"):
            # Rounding may put u at its limit, where the scale is infinite.
            theta = u - np.log(-np.expm1(np.minimum(u + self._log_rate, 0.0)))
        return np.clip(theta, -_LARGEST, _LARGEST)

    def slope(self, theta: Array, gradient: Array) -> Array:
        """Return the gradient in u, given the one in theta."""
        return gradient * (1.0 + np.exp(theta + self._log_rate))

    def is_steep(self, u: Array, slope: Array, limits: Array) -> bool:
        """Whether an objective still falls in θ, away from the limits of u, given its gradient.

        Scales far above κ leave only tiny steps in u, and a search in a curved valley gives up.
        """
        at_lower, at_upper = np.abs(np.asarray(limits) - u) < 1e-6
        outwards = (at_lower & (slope > 0.0)) | (at_upper & (slope < 0.0))
        in_theta = slope / (1.0 + np.exp(self.theta(u) + self._log_rate))
        return bool(np.any(np.abs(in_theta[~outwards]) > _STEEP))

    def revived(self, u: Array) -> Array:
        """Return u with all length scales at their limit made shorter again.

        The evidence may have one maximum at the limit and a higher one here, with a dip between.
        """
        return np.where(self.at_limit(u), -np.log1p(_REVIVED) - self._log_rate, u)

    def at_limit(self, u: Array) -> Array:
        """Whether a length scale counts as infinite."""
        # κ/ℓ, within limits that keep short scales from overflowing.
        relevance = np.expm1(np.clip(-u - self._log_rate, np.finfo(float).eps, 1.0))
        return relevance * _ENDLESS < 1.0

    @staticmethod
    def worthwhile(u: Array, revived: Array, slope: Array) -> Array:
        """Return u with those scales revived whose evidence grows as they become shorter.

        Parameters
        ----------
        u, revived : arrays of shape (p,)
        slope : array of shape (p,)
            Gradient of the objective, which is minimised, at the revived ones.
        """
        return np.where((u != revived) & (slope > _WORTH), revived, u)
