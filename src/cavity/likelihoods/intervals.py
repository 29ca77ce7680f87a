"""The probability of an interval under a Gaussian, log[Φ((b − m)/s) − Φ((a − m)/s)], exactly."""

import math

from cavity.arrays import Array, clip, is_numpy_array, namespace
from cavity.arrays.special import erfcx, log_ndtr
from cavity.likelihoods.normal import hazard, log_ndtr_derivatives, standardise

# Below it log Φ is taken apart, so that differences of it keep their digits.
_TAIL = -5.0
# An interval is narrow if it is less than half as wide as the scale on which the density changes.
_NARROW, _TERMS = 0.25, 7
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


def log_interval(
    low: Array, high: Array, m: Array, s: Array | float, order: int = 2
) -> list[Array]:
    """Return log[Φ((high − m)/s) − Φ((low − m)/s)] and its first derivatives in m.

    Parameters
    ----------
    low, high : array
        The ends, of which one may be infinite.
    m, s : array
        Mean and standard deviation.
    order : {2, 4}, default 2
        How many derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.likelihoods.intervals import log_interval
    >>> one = np.ones(1)
    >>> log_p, d1, _ = log_interval(0.0 * one, 1e-9 * one, -40.0 * one, 1.0)
    >>> log_p.round(6).tolist(), d1.round(6).tolist()
    ([-821.642204], [40.0])
    """
    xp, s = namespace(m), s + 0.0 * m
    whole = xp.isinf(low) | xp.isinf(high)
    # A half-line has neither width nor centre.
    zero, one = 0.0 * m, 0.0 * m + 1.0
    length = xp.where(whole, one, xp.where(whole, one, high - low) / s)
    middle = 0.5 * (xp.where(whole, zero, low) + xp.where(whole, zero, high))
    centre = standardise(middle - m, s)
    narrow = ~whole & (0.5 * length * clip(xp.abs(centre), low=1.0) < _NARROW)
    if is_numpy_array(m) and not narrow.any():
        found = _wide(low, high, m, s, length, order)
    else:
        # Arguments that are harmless for either branch.
        ends = xp.where(narrow, m - 3.0 * s, low), xp.where(narrow, m, high)
        wide = _wide(*ends, m, s, xp.where(narrow, 3.0 * one, length), order)
        small = xp.where(narrow, length, 0.1 * one), xp.where(narrow, centre, zero)
        pairs = zip(_narrow(*small, order), wide, strict=True)
        found = [xp.where(narrow, a, b) for a, b in pairs]
    return [part / s**k for k, part in enumerate(found)]


def _narrow(length: Array, c: Array, order: int) -> list[Array]:
    """Return log ∫ φ over the interval about c, and derivatives in −c.

    With half the length h, the mean of e^{−c x − x²/2} over |x| < h is Σ_k a_k He_2k(c) h^2k,
    a_k = 1/(2k + 1)!; its derivatives follow from He_n′ = n He_{n−1}.
    """
    xp, h2 = namespace(c), 0.25 * length * length
    hermite = [xp.ones_like(c), c]
    for n in range(1, 2 * _TERMS):
        hermite.append(c * hermite[n] - n * hermite[n - 1])

    def derivative(j: int) -> Array:
        total, power = xp.zeros_like(c), xp.ones_like(c)
        for k in range(1, _TERMS):
            power = power * h2
            if 2 * k >= j:
                a = math.perm(2 * k, j) / math.factorial(2 * k + 1)
                total = total + a * hermite[2 * k - j] * power
        return total

    # F − 1, and derivatives of F over F.
    more = derivative(0)
    f1, f2, *higher = (derivative(j) / (1.0 + more) for j in range(1, order + 1))
    log_mass = xp.log(length) - 0.5 * c * c - _LOG_SQRT_2PI + xp.log1p(more)
    found = [log_mass, c - f1, (f2 - f1 * f1) - 1.0]
    if order > 2:
        f3, f4 = higher
        found.append(3.0 * f2 * f1 - 2.0 * f1**3 - f3)
        mixed = 4.0 * f3 * f1 + 3.0 * f2 * f2 - 12.0 * f2 * f1 * f1
        found.append(f4 - mixed - 6.0 * f1**4)
    return found


def _wide(low: Array, high: Array, m: Array, s: Array, length: Array, order: int) -> list[Array]:
    """Return the same of other intervals.

    Reflected if need be so that a's side is the far one, the interval is the part
    L(b) + log(1 − e^{−δ}) of the lower tail with L = log Φ and δ = L(b) − L(a). With
    q = 1/(e^δ − 1), the derivatives of the second term in δ are q, −q (1 + q), …: no difference of
    large numbers is left.
    """
    xp = namespace(m)
    below, above = (standardise(end - m, s) for end in (low, high))
    reflected = below + above > 0.0
    sign = xp.where(reflected, 1.0, -1.0 + 0.0 * m)
    b = xp.where(reflected, -below, above)
    whole = xp.isinf(xp.where(reflected, high, low))
    a = xp.where(whole, b - 1.0, xp.where(reflected, -above, below))
    gap = xp.where(whole, 1.0, _log_ratio(a, b, length))
    # Beyond this e^−δ is zero.
    q = xp.where(whole, 0.0, 1.0 / xp.expm1(clip(gap, high=700.0)))
    rest = xp.where(gap > 0.5, xp.log1p(-xp.exp(-gap)), xp.log(-xp.expm1(-gap)))
    (log_b, h_b, e_b), (_, h_a, e_a) = hazard(b), hazard(a)
    one, two = (e_b - e_a) - length, h_a * e_a - h_b * e_b
    found = [log_b + xp.where(whole, 0.0, rest), sign * (h_b + q * one)]
    found.append(q * two - h_b * e_b - q * (1.0 + q) * one**2)
    if order > 2:
        third, fourth = _higher(a, b, q, one, two)
        found += [sign * third, fourth]
    return found


def _higher(a: Array, b: Array, q: Array, one: Array, two: Array) -> tuple[Array, Array]:
    """Return the third and fourth derivatives, given the first two of δ."""
    at_b, at_a = log_ndtr_derivatives(b), log_ndtr_derivatives(a)
    three, four = at_b[2] - at_a[2], at_b[3] - at_a[3]
    l2, l3 = -q * (1.0 + q), q * (1.0 + q) * (1.0 + 2.0 * q)
    l4 = l2 * (1.0 + 6.0 * q * (1.0 + q))
    d3 = at_b[2] + q * three + 3.0 * l2 * one * two + l3 * one**3
    d4 = at_b[3] + q * four + l2 * (4.0 * one * three + 3.0 * two**2)
    return d3, d4 + 6.0 * l3 * one**2 * two + l4 * one**4


def _log_ratio(a: Array, b: Array, length: Array) -> Array:
    """Return δ = log Φ(b)/Φ(a)."""
    xp = namespace(b)
    tail = b < _TAIL
    near_b, near_a = clip(b, high=_TAIL), clip(a, high=_TAIL)
    scaled = xp.log(erfcx(-near_b * math.sqrt(0.5)) / erfcx(-near_a * math.sqrt(0.5)))
    apart = -0.5 * length * (near_a + near_b) + scaled
    return xp.where(tail, apart, log_ndtr(b) - log_ndtr(a))
