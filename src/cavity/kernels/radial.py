"""Functions of the scaled distance: the squared exponential (RBF) and Matérn kernels.

With u the difference of two scaled inputs and r its length, every k(r) here has
∂k/∂log ℓ_d = w(r) u_d², w = −k′(r)/r: each kernel is a profile k and a slope w.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern

from cavity.arrays import Array, namespace
from cavity.kernels import bessel
from cavity.kernels.base import StationaryRule, register
from cavity.kernels.distances import (
    centre,
    contract,
    elementwise,
    exp,
    pull,
    root,
    scale,
    tiles,
    tiles_of,
)


class Profile(NamedTuple):
    """k and w as functions of r²; whether k has a term |r|^a with a < 2."""

    k: Callable[[Array], Array]
    w: Callable[[Array], Array]
    rough: bool


def _gaussian(D: Array) -> Array:
    D *= -0.5
    return exp(D)


def _exponential(D: Array) -> Array:
    return exp(-root(D))


def _exponential_slope(D: Array) -> Array:
    xp = namespace(D)
    # exp(−r)/r, and no weight for coinciding points, whose differences vanish.
    r = xp.where(D == 0.0, xp.full_like(D, inf), xp.sqrt(D))
    return exp(-r) / r


def _matern_3_2(D: Array) -> Array:
    D *= 3.0
    t = root(D)
    decay = exp(-t)
    t += 1.0
    t *= decay
    return t


def _matern_3_2_slope(D: Array) -> Array:
    D *= 3.0
    decay = exp(-root(D))
    decay *= 3.0
    return decay


def _matern_5_2(D: Array) -> Array:
    D *= 5.0
    t = namespace(D).sqrt(D)
    return (1.0 + t + D / 3.0) * exp(-t)


def _matern_5_2_slope(D: Array) -> Array:
    D *= 5.0
    t = root(D)
    return 5.0 / 3.0 * (1.0 + t) * exp(-t)


_GAUSSIAN = Profile(_gaussian, _gaussian, rough=False)
_CLOSED = {
    0.5: Profile(_exponential, _exponential_slope, rough=True),
    1.5: Profile(_matern_3_2, _matern_3_2_slope, rough=False),
    2.5: Profile(_matern_5_2, _matern_5_2_slope, rough=False),
    inf: _GAUSSIAN,
}


def _bessel_profile(nu: float) -> Profile:
    def t(D: Array) -> Array:
        return sqrt(2.0 * nu) * namespace(D).sqrt(D)

    k = partial(bessel.matern, nu)
    w = partial(bessel.matern_slope, nu)
    return Profile(lambda D: k(t(D)), lambda D: w(t(D)), rough=nu < 1.0)


def _profile(kernel: Any) -> Profile:
    nu = getattr(kernel, "nu", inf)
    return _CLOSED[nu] if nu in _CLOSED else _bessel_profile(nu)


@register(RBF, Matern)
@dataclass(frozen=True)
class RadialRule(StationaryRule):
    """RBF and Matérn kernels with one length scale or one per input column."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return K(X, Z), or K(X, X) if Z is None."""
        profile = _profile(self.kernel)
        return elementwise(profile.k, *scale(self.kernel.length_scale, X, Z), exact=profile.rough)

    def vjp(self, X: Array, Z: Array | None, G: Array, K: Array | None = None) -> Array:
        """Contract the weights with ∂K/∂log ℓ by matrix products."""
        return self.vjp_scaled(1.0, X, Z, G, K)

    def vjp_scaled(
        self, c: float, X: Array, Z: Array | None, G: Array, K: Array | None = None
    ) -> Array:
        """Contract with c ∂K/∂log ℓ, read from c K where the two are proportional: for an RBF."""
        if self.kernel.hyperparameter_length_scale.fixed:
            return np.empty(0)
        profile = _profile(self.kernel)
        # Scaled only when centred: differences of scaled offsets would have lost digits.
        U, V = scale(self.kernel.length_scale, X, Z, centre(X))
        if K is not None and profile is _GAUSSIAN:
            gradient = contract(G, U, V, tiles_of(K, Z is None))
        else:
            gradient = c * contract(G, U, V, tiles(profile.w, U, V, exact=profile.rough))
        return gradient if self.kernel.anisotropic else gradient.sum(keepdims=True)

    def vjp_inputs(self, X: Array, Z: Array, G: Array) -> Array:
        """Contract the weights with ∂k/∂x_d = −w(r) u_d/ℓ_d by matrix products."""
        profile = _profile(self.kernel)
        return -pull(self.kernel.length_scale, X, Z, G, profile.w, exact=profile.rough)
