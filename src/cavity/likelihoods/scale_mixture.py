"""Moments of a Student t under Gaussians, by quadrature over the precision λ of its Gaussian parts.

With s = σ²/λ + v and d = y − m, log Z = log ∫ Ga(λ; ν/2, ν/2) N(d; 0, s) dλ. In u = log λ the
integrand is smooth whatever v and d are. It may have two peaks: where the row is an outlier, and
where the prior puts λ.
"""

from __future__ import annotations

import math

from cavity.arrays import Array, clip, namespace
from cavity.likelihoods.numerical import quiet
from cavity.likelihoods.quadrature import graded_edges, integrate
from cavity.likelihoods.stirling import remainder
from cavity.sites import Marginals, Moments

_BISECTIONS = 45
# The integrand falls at least like e^{u/2} below its peaks, and doubly exponentially above.
_REACH = 100.0
# Its square does not overflow, nor that over the narrowest noise.
_LARGEST = 1e150


class _Precision:
    """The posterior of u = log λ, up to the height of its peak."""

    def __init__(self, y: Array, c: Marginals, nu: float, sigma: float) -> None:
        self.d = clip(y - c.mean, -_LARGEST * sigma, _LARGEST * sigma)
        self.v = c.variance + 0.0 * self.d
        self.nu, self.sigma = nu, sigma
        xp = namespace(self.d)
        self.D = (self.d / sigma) ** 2
        low, high = -xp.log1p(self.D / nu), 0.0 * self.D + math.log1p(1.0 / nu)
        first, second = (xp.minimum(xp.maximum(u, low), high) for u in self._separators())
        modes = [self._mode(low, first), self._mode(second, high)]
        heights = [self.log_density(u) for u in modes]
        self.peak = xp.maximum(*heights)
        self.centre = xp.where(heights[0] > heights[1], *modes)
        edges = [e + u for u in modes for e in graded_edges(self._width(u), _REACH + 0.0 * u)]
        sorted_edges = xp.sort(xp.stack(edges), axis=0)
        self.edges = [sorted_edges[k, ...] for k in range(len(edges))]

    def parts(self, u: Array) -> tuple[Array, Array]:
        """Return s and the share 1 − v/s of the noise in it."""
        noise = self.sigma**2 * namespace(u).exp(-u)
        s = noise + self.v
        return s, noise / s

    def log_density(self, u: Array) -> Array:
        """Return log [λ Ga(λ) N(d; 0, s)]."""
        xp = namespace(u)
        a = 0.5 * self.nu
        s = self.parts(u)[0]
        # a (log a + u − e^u) − log Γ(a), by Stirling's formula.
        constant = 0.5 * math.log(a / (2.0 * math.pi)) - float(remainder(a))
        prior = a * (u - xp.expm1(u)) + constant
        return prior - 0.5 * xp.log(2.0 * math.pi * s) - 0.5 * self.d * (self.d / s)

    def _slope(self, u: Array) -> Array:
        """Return twice the derivative of the log density, but for its sign's sake only."""
        xp = namespace(u)
        _, r = self.parts(u)
        return -self.nu * xp.expm1(u) + r * (1.0 - (xp.exp(u) * r) * self.D)

    def _separators(self) -> tuple[Array, Array]:
        """Return log λ at the two extrema of the cubic in λ that the slope is, where it has any."""
        xp = namespace(self.D)
        kappa = self.v / self.sigma**2
        root = xp.sqrt(
            clip(1.0 + 3.0 * ((kappa - self.D) / (kappa + 1.0)) / (self.nu * (kappa + 1.0)), 0.0)
        )
        x = [(kappa + 1.0) * (1.0 + sign * root) / 3.0 for sign in (-1.0, 1.0)]
        tiny = 1e-300
        first, second = (xp.log(clip((z - 1.0) / clip(kappa, low=tiny), low=tiny)) for z in x)
        return first, second

    def _mode(self, low: Array, high: Array) -> Array:
        """Return where the slope changes its sign, or an end of the interval."""
        xp = namespace(low)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            rising = self._slope(middle) > 0.0
            low, high = xp.where(rising, middle, low), xp.where(rising, high, middle)
        return 0.5 * (low + high)

    def _width(self, u: Array) -> Array:
        """Return the width of a peak, at most one."""
        xp = namespace(u)
        _, r = self.parts(u)
        e = (xp.exp(u) * r) * r * self.D
        bend = 0.5 * (self.nu * xp.exp(u) + r * (1.0 - r) + e * (2.0 * r - 1.0))
        return 1.0 / xp.sqrt(clip(bend, low=1.0))

    def weight(self, u: Array) -> Array:
        """Return the density over its height at the peak."""
        return namespace(u).exp(self.log_density(u) - self.peak)


def tilted(y: Array, c: Marginals, nu: float, sigma: float) -> Moments:
    """Return log Z and its first two derivatives in m: d1 = E d/s, d2 = Var d/s − E 1/s."""
    with quiet():
        over = _Precision(y, c, nu, sigma)
        reference = over.d / over.parts(over.centre)[0]

        def integrands(u: Array) -> list[Array]:
            s, _ = over.parts(u)
            w, g = over.weight(u), over.d / s - reference
            return [w, w * g, w * g * g, w / s]

        norm, *sums = integrate(integrands, over.edges)
        g, gg, inverse = (part / norm for part in sums)
        log_z = over.peak + namespace(norm).log(norm)
    return Moments(log_z, reference + g, (gg - g * g) - inverse)


def cumulants(y: Array, c: Marginals, nu: float, sigma: float) -> tuple[Array, Array]:
    """Return the third and fourth cumulants of f, by the law of total cumulance over λ.

    Under λ, f is Gaussian with mean m + v d/s and variance v − v²/s. Both are taken less their
    values at the peak, in units of √v: M and V.
    """
    with quiet():
        over = _Precision(y, c, nu, sigma)
        sd = namespace(over.v).sqrt(over.v)
        at_peak = 1.0 / over.parts(over.centre)[0]

        def integrands(u: Array) -> list[Array]:
            w, change = over.weight(u), 1.0 / over.parts(u)[0] - at_peak
            M, V = sd * over.d * change, -over.v * change
            return [w, *(w * p for p in (M, V, M * M, M * V, V * V, M**3, M * M * V, M**4))]

        norm, *sums = integrate(integrands, over.edges)
        m, v, mm, mv, vv, mmm, mmv, mmmm = (part / norm for part in sums)
    var = mm - m * m
    cov = mv - m * v
    third = mmm - 3.0 * m * mm + 2.0 * m**3
    mixed = mmv - 2.0 * m * mv - v * mm + 2.0 * m * m * v
    fourth = mmmm - 4.0 * m * mmm + 6.0 * m * m * mm - 3.0 * m**4 - 3.0 * var**2
    c4 = fourth + 6.0 * mixed + 3.0 * (vv - v * v)
    return (third + 3.0 * cov) * sd**3, c4 * sd**4
