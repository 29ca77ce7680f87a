"""The Matérn function of any order ν, M(t) = 2^(1−ν)/Γ(ν) t^ν K_ν(t), and its slope."""

from functools import cache

import numpy as np
from numpy.polynomial import Polynomial
from scipy.special import gammaln, kve

from cavity.arrays import Array, namespace, same_kind, to_numpy

_LARGE_ORDER = 25.0
"""From here on the expansion for large orders is exact to rounding, while K_ν overflows."""


def matern(nu: float, t: Array) -> Array:
    """Return M(t), which is 1 at t = 0."""
    if nu >= _LARGE_ORDER:
        return _large_order(nu, t)
    constant = (1.0 - nu) * np.log(2.0) - gammaln(nu)
    return same_kind(_power_times_bessel(nu, nu, constant, to_numpy(t), at_zero=1.0), t)


def matern_slope(nu: float, t: Array) -> Array:
    """Return w = −k′(r)/r of k(r) = M(t), t = sqrt(2ν) r.

    d(t^ν K_ν)/dt = −t^ν K_(ν−1) makes it 2ν 2^(1−ν)/Γ(ν) t^(ν−1) K_(ν−1)(t).
    """
    if nu > 1.0:
        return nu / (nu - 1.0) * matern(nu - 1.0, t)
    constant = np.log(2.0 * nu) + (1.0 - nu) * np.log(2.0) - gammaln(nu)
    # The slope diverges at t = 0, but the differences that it multiplies vanish there.
    values = _power_times_bessel(nu - 1.0, 1.0 - nu, constant, to_numpy(t), at_zero=0.0)
    return same_kind(values, t)


def _power_times_bessel(a: float, mu: float, constant: float, t: Array, at_zero: float) -> Array:
    """Return exp(constant) t^a K_μ(t) without overflow in between."""
    # Below, the value is that at 0 if there is one; above, it has long underflowed to 0, while
    # scipy's function gives nan for arguments beyond 1e9.
    s = np.clip(t, 1e-100, 1e4)
    bessel = kve(mu, s)
    regular = (t > 0.0) & np.isfinite(bessel)
    values = np.exp(constant + a * np.log(s) - s) * np.where(regular, bessel, 0.0)
    return np.where(regular, values, at_zero)


def _large_order(nu: float, t: Array) -> Array:
    """Return M(t) by the expansion of K_ν(νz) that is uniform in z (DLMF 10.41.4).

    Divided by its own limit at z = 0 it needs no Γ(ν): with s = sqrt(1 + z²),
    log M = ν[1 − s + log((1 + s)/2)] − ½ log s + log of the ratio of the two series.
    """
    xp = namespace(t)
    z = t / nu
    s = xp.hypot(xp.ones_like(z), z)
    excess = z * (z / (1.0 + s))
    log_m = nu * (xp.log1p(0.5 * excess) - excess) - 0.5 * xp.log(s)
    series = _debye_series(nu)
    p = 1.0 / s
    value = xp.zeros_like(p)
    for c in reversed(series.coef):
        value = value * p + float(c)
    return xp.exp(log_m) * (value / float(series(1.0)))


@cache
def _debye_series(nu: float, terms: int = 9) -> Polynomial:
    """Return Σ_k (−1)^k u_k(p)/ν^k as a polynomial in p (DLMF 10.41.9)."""
    square, u = Polynomial([0.0, 0.0, 1.0]), Polynomial([1.0])
    total = Polynomial([0.0])
    for k in range(terms):
        total = total + (-1.0) ** k * nu**-k * u
        u = 0.5 * square * (1.0 - square) * u.deriv() + ((1.0 - 5.0 * square) * u).integ() / 8.0
    return total
