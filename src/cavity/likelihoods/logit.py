"""The logit likelihood σ(y f), with moments under Gaussians in closed form to machine precision.

On either side of f = 0 the powers of σ and log σ are functions of x = e^{−|f|} in [0, 1] that
short polynomials match to machine precision, and the integral of xᵏ over half a Gaussian is known.
The polynomial for 1/(1+x) is the one by which Cohen, Rodriguez Villegas and Zagier sum alternating
series (Experimental Mathematics 9, 2000); its derivatives and its integral serve the others.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import polynomial

from cavity.arrays import Array, clip, namespace, same_kind
from cavity.arrays.special import erfcx, ndtr
from cavity.likelihoods.base import Likelihood, draw_labels
from cavity.likelihoods.normal import hazard, proper, standardise
from cavity.sites import Marginals, Moments

# The relative error of 1/(1+x) is 5.8^−n, that of 1/(1+x)³ some n⁴ times as much.
_DEGREE = 28
# Share of the cavity's variance below which the tilted variance V is better by the first order of
# the cavity's shape, which is off by less than 1e-5 of V there. The general form has an error of up
# to 1e-7 of the cavity's variance.
_NARROW = 1e-4


def _reciprocal(n: int) -> Array:
    """(1 − P(x)/P(−1))/(1 + x) for P(x) = T_n(1 − 2x), close to 1/(1 + x) on [0, 1].

    Coefficients are exact, the lowest first.
    """
    one = Fraction(1)
    before, P = np.array([one]), np.array([one, -2 * one])
    for _ in range(n - 1):
        before, P = P, polynomial.polysub(polynomial.polymul([2, -4], P), before)
    at_pole = sum(c * (-1) ** k for k, c in enumerate(P))
    return polynomial.polydiv(polynomial.polysub([one], P / at_pole), [one, one])[0]


def _tables() -> tuple[Array, Array]:
    """Rows of coefficients in x for σ, σ², σ³, σ′, σ″ and −log σ(|f|), on f < 0 and on f > 0."""
    times, slope = polynomial.polymul, polynomial.polyder
    one = _reciprocal(_DEGREE)
    two = -slope(one)
    three = -slope(two) / 2
    log = [0, *(c / (k + 1) for k, c in enumerate(one))]
    first, second = times([0, 1], two), times([0, 1, -1], three)
    below = [times([0, 1], one), times([0, 0, 1], two), times([0, 0, 0, 1], three)]
    return _rows([*below, first, second, log]), _rows([one, two, three, first, -second, log])


def _rows(polynomials: list[Any]) -> Array:
    rows = np.zeros((len(polynomials), _DEGREE + 1))
    for row, coefficients in zip(rows, polynomials, strict=True):
        row[: len(coefficients)] = coefficients
    return rows


_BELOW, _ABOVE = _tables()


class _Averages(NamedTuple):
    """Averages under N(m, v), m ≤ 0, all divided by exp(log_scale)."""

    log_scale: Array
    s1: Array
    s2: Array
    s3: Array
    slope: Array
    bend: Array
    log: Array


def _averages(q: Marginals) -> _Averages:
    """Return the averages of σ, σ², σ³, σ′, σ″ and log(1 + e^{−|f|}) under N(m, v) for m ≤ 0.

    The scale is the factor that the half-line integrals share, so that none of them underflows.
    """
    m, v = q
    xp = namespace(m)
    below, above = _half_line_powers(m, v)
    sums = xp.tensordot(same_kind(_BELOW[:, 1:], m), below, axes=1)
    sums = sums + xp.tensordot(same_kind(_ABOVE, m), above, axes=1)
    log_scale = xp.where(m + v < 0.0, m + 0.5 * v, -0.5 * m * clip(m / v, -1.0, 0.0))
    return _Averages(log_scale, *(sums[i, ...] for i in range(6)))


def _half_line_powers(m: Array, v: Array) -> tuple[Array, Array]:
    """Return ∫_{f<0} e^{kf} N df for k ≥ 1 and ∫_{f>0} e^{−kf} N df for k ≥ 0, over the scale.

    With a = (m + kv)/√v the first is e^{−m²/2v} erfcx(a/√2)/2 = e^{km + k²v/2} Φ(−a): the one form
    is used for a > 0, the other for a < 0, where the first would overflow.
    """
    xp = namespace(m)
    sd = xp.sqrt(v)
    k = xp.reshape(same_kind(np.arange(_DEGREE + 1.0), m), (-1,) + (1,) * m.ndim)
    distance = clip((m + v) / sd, -100.0, 0.0)
    shared = 0.5 * xp.exp(-0.5 * distance * distance)
    above = shared * erfcx((k * v - m) / (sd * math.sqrt(2.0)))
    k = k[1:, ...]
    a = (m + k * v) / sd
    outer = shared * erfcx(clip(a, low=0.0) / math.sqrt(2.0))
    inner = xp.exp(clip((k - 1.0) * (m + 0.5 * (k + 1.0) * v), high=0.0)) * ndtr(-a)
    return xp.where(a < 0.0, inner, outer), above


def _tilted_below(avg: _Averages) -> tuple[Array, Array, Array]:
    """Moments for a mean that contradicts the label."""
    xp = namespace(avg.s1)
    d1, e2, e3 = (moment / avg.s1 for moment in (avg.slope, avg.s2, avg.s3))
    # The first form cancels where σ is mostly near one, the second where it is mostly near zero.
    d2 = xp.where(d1 < 0.5, avg.bend / avg.s1 - d1 * d1, 2.0 * e3 - e2 - e2 * e2)
    return avg.log_scale + xp.log(avg.s1), d1, d2


def _tilted_above(avg: _Averages) -> tuple[Array, Array, Array]:
    """Moments for a mean that agrees with the label, from those of the complement."""
    xp = namespace(avg.s1)
    scale = xp.exp(avg.log_scale)
    z = 1.0 - scale * avg.s1
    d1 = scale * avg.slope / z
    return xp.log1p(-scale * avg.s1), d1, -scale * avg.bend / z - d1 * d1


@dataclass(frozen=True)
class Logit(Likelihood, name="logit"):
    """p(y|f) = σ(y f) = 1/(1 + e^{−y f}) for labels ±1."""

    @property
    def symmetric(self) -> bool:
        """p(−1|−f) = p(+1|f)."""
        return True

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log σ(y f)."""
        xp = namespace(f)
        return clip(y * f, high=0.0) - xp.log1p(xp.exp(-xp.abs(f)))

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return the first three derivatives of log σ(y f) in f."""
        xp = namespace(f)
        u = y * f
        e = xp.exp(-xp.abs(f))
        bend = e / (1.0 + e) ** 2
        return y * xp.where(u > 0.0, e, 1.0) / (1.0 + e), -bend, y * bend * xp.tanh(0.5 * u)

    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Draw labels ±1."""
        return draw_labels(self.log_prob(1.0, f), rng)

    def tilted(self, y: Array, c: Marginals) -> Moments:
        """Return log E σ(y f) and its derivatives in m."""
        xp = namespace(c.mean)
        avg = _averages(proper(Marginals(-xp.abs(c.mean), c.variance)))
        agrees = y * c.mean > 0.0
        pairs = zip(_tilted_above(avg), _tilted_below(avg), strict=True)
        log_z, d1, d2 = (xp.where(agrees, a, b) for a, b in pairs)
        d2 = _bend_of_wide(y * c.mean, c.variance, d2)
        # No label is sharper than at the steepest place of σ: rounding must not make it so.
        sharpest = -1.0 / (4.0 + c.variance)
        return Moments(log_z, y * d1, xp.minimum(xp.maximum(d2, sharpest), 0.0 * d2))

    def expected(self, y: Array, q: Marginals) -> Moments:
        """Return E log σ(y f) and its derivatives in m."""
        xp = namespace(q.mean)
        u, v = proper(Marginals(y * q.mean, q.variance))
        avg = _averages(Marginals(-xp.abs(u), v))
        scale = xp.exp(avg.log_scale)
        d1 = xp.where(u > 0.0, scale * avg.s1, 1.0 - scale * avg.s1)
        return Moments(_negative_part(u, v) - scale * avg.log, y * d1, -scale * avg.slope)


def _bend_of_wide(m: Array, v: Array, d2: Array) -> Array:
    """Return d2 = (V/v − 1)/v with the digits of V/v, where that is small and m is negative.

    The tilted density is then e^{af} σ(f) with a = m/v, but for a factor e^{−f²/2v}. Without it
    log ∫ is log(π/sin πa), which has the cumulants of f; the factor is taken to first order.
    """
    # No cavity is wide below one.
    xp, v = namespace(m), clip(v, low=1.0)
    a = -m / v
    inside = clip(a, low=1e-4, high=1.0 - 1e-4)
    s, c = xp.sin(math.pi * inside), xp.cos(math.pi * inside)
    k1, k2 = -math.pi * c / s, (math.pi / s) ** 2
    k3, k4 = 2.0 * k1 * k2, 2.0 * k2**2 * (1.0 + 2.0 * c**2)
    V = k2 - (2.0 * k1 * k3 + k4 + 2.0 * k2**2) / (2.0 * v)
    return xp.where((a == inside) & (k2 < _NARROW * v), (V / v - 1.0) / v, d2)


def _negative_part(m: Array, v: Array) -> Array:
    """E min(f, 0) under N(m, v): −√v Φ(−z)(h(−z) − z) with z = m/√v, which never cancels."""
    xp = namespace(m)
    sd = xp.sqrt(v)
    z = standardise(m, sd)
    _, _, excess = hazard(-clip(z, low=0.0))
    density = xp.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return xp.where(m > 0.0, -sd * ndtr(-z) * excess, m * ndtr(-z) - sd * density)
