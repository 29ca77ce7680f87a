"""The standard normal's hazard h = φ/Φ and the derivatives of log Φ, exact in both tails.

With t = −z, the excess s = x − t of a standard normal x beyond t has the density
∝ exp(−t s − s²/2), so log Φ(z) + z²/2 is its cumulant generating function up to a constant:
z + h is the excess's mean, 1 + ∂²log Φ its variance, ∂³log Φ and ∂⁴log Φ its next cumulants.
"""

import math

from cavity.arrays import Array, clip, is_numpy_array, namespace
from cavity.arrays.special import log_ndtr
from cavity.sites import Marginals

# The formulas in h lose a factor z² for each derivative beyond the first; the continued fraction
# needs more terms for smaller −z. At −4, with 30 terms, four derivatives keep ten digits on either
# side; the excess alone keeps twelve up to −10, where twelve terms are enough.
_TAIL, _DEPTH = -4.0, 30
_EXCESS_TAIL, _EXCESS_DEPTH = -10.0, 12
_LARGEST, _SMALLEST_VARIANCE = 1e154, 1e-150
_SQRT_2PI = math.sqrt(2.0 * math.pi)


def proper(q: Marginals) -> Marginals:
    """Return the Gaussians with zero variances replaced by negligibly small ones."""
    return Marginals(q.mean, clip(q.variance, low=_SMALLEST_VARIANCE))


def standardise(m: Array, scale: Array | float) -> Array:
    """Return m/scale, limited so that its square does not overflow."""
    return clip(m / scale, -_LARGEST, _LARGEST)


def _split(z: Array, switch: float) -> tuple[Array, Array, Array]:
    """Return where the tail is, and arguments that are harmless for either branch."""
    return z < switch, clip(-z, low=-switch), clip(z, low=switch)


def _is_empty(tail: Array) -> bool:
    """Whether the tail is known to be empty; outside NumPy the check would cost too much."""
    return is_numpy_array(tail) and not tail.any()


def _excess_ratios(t: Array, depth: int) -> tuple[Array, Array, Array, Array]:
    """Return r_k = E sᵏ/(k E sᵏ⁻¹) of the excess s beyond t, for k = 1, ..., 4.

    Integration by parts gives r_k = 1/(t + (k+1) r_{k+1}), run downwards from its fixed point.
    """
    r = 2.0 / (t + namespace(t).sqrt(t * t + 4.0 * (depth + 1)))
    ratios = []
    for k in range(depth - 1, 0, -1):
        r = 1.0 / (t + (k + 1.0) * r)
        ratios.append(r)
    r4, r3, r2, r1 = ratios[-4:]
    return r1, r2, r3, r4


def _direct_hazard(z: Array, log_cdf: Array) -> Array:
    return namespace(z).exp(-0.5 * z * z - log_cdf) / _SQRT_2PI


def hazard(z: Array) -> tuple[Array, Array, Array]:
    """Return log Φ(z), the hazard h(z) = φ(z)/Φ(z) and the excess z + h(z), for |z| up to 1e154."""
    xp = namespace(z)
    log_cdf = log_ndtr(z)
    tail, t, near = _split(z, _EXCESS_TAIL)
    if _is_empty(tail):
        h = _direct_hazard(z, log_cdf)
        return log_cdf, h, z + h
    excess = _excess_ratios(t, _EXCESS_DEPTH)[0]
    h = _direct_hazard(near, xp.where(tail, 0.0, log_cdf))
    return log_cdf, xp.where(tail, t + excess, h), xp.where(tail, excess, near + h)


def log_ndtr_derivatives(z: Array) -> tuple[Array, Array, Array, Array]:
    """Return the first four derivatives of log Φ at z, for |z| up to 1e154."""
    xp = namespace(z)
    tail, t, near = _split(z, _TAIL)
    if _is_empty(tail):
        return _direct_derivatives(z)
    pairs = zip(_tail_derivatives(t), _direct_derivatives(near), strict=True)
    d1, d2, d3, d4 = (xp.where(tail, a, b) for a, b in pairs)
    return d1, d2, d3, d4


def _tail_derivatives(t: Array) -> tuple[Array, Array, Array, Array]:
    """Cumulants of the excess from its moments; all are of the same order, so little is lost."""
    r1, r2, r3, r4 = _excess_ratios(t, _DEPTH)
    h = t + r1
    third = r1 * (6.0 * r2 * (r3 - r1) + 2.0 * r1 * r1)
    fourth = 24.0 * r2 * (r3 * r4 - r1 * r3 + r1 * r1) - 12.0 * r1 * r2 * r2 - 6.0 * r1**3
    return h, -h * r1, third, r1 * fourth


def _direct_derivatives(z: Array) -> tuple[Array, Array, Array, Array]:
    return hazard_derivatives(_direct_hazard(z, log_ndtr(z)), z)


def hazard_derivatives(h: Array, z: Array) -> tuple[Array, Array, Array, Array]:
    """Return h = c φ/(c Φ + b) and its next derivatives: h′ = −h (z + h) for any b and c."""
    # Where h has underflowed, z may be too large to be cubed.
    z = clip(z, -100.0, 100.0)
    mean = z + h
    variance = 1.0 - h * mean
    skew = mean * mean - variance
    return h, -h * mean, h * skew, h * (2.0 * mean * variance - (h + mean) * skew)
