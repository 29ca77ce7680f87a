"""The probability that two correlated Gaussians are both positive."""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from cavity.arrays import Array
from cavity.likelihoods.base import Likelihood
from cavity.likelihoods.normal import hazard, standardise
from cavity.sites import Marginals

_EPS = float(np.finfo(float).eps)
_RULES = [np.polynomial.legendre.leggauss(nodes) for nodes in (14, 22)]
_CLOSE = 1e-11
"""Relative difference of the two rules up to which the finer one is exact, or nearly."""
_LEAST = -0.5
"""A product of which a negative correlation takes more than this share loses digits."""
_FARTHEST = 30.0
"""Farther out in a tail both rules could miss a narrow peak, and agree."""


def log_quadrant(h: Array, G: Array) -> Array:
    """Return log P(g + ε > 0) of both entries of g ~ N(h, G), with standard normal ε.

    Parameters
    ----------
    h : array of shape (n, 2)
    G : array of shape (n, 2, 2)
    """
    sd = np.sqrt(np.diagonal(G, axis1=1, axis2=2) + 1.0)
    z, rho = standardise(h, sd), G[:, 0, 1] / (sd[:, 0] * sd[:, 1])
    found, same = by_angle(z, rho)
    rest = np.flatnonzero(~same)
    if len(rest):
        found[rest] = by_quadrature(z[rest], rho[rest])
    return found


def by_angle(z: Array, rho: Array) -> tuple[Array, Array]:
    """Return the logarithms by Plackett's identity, and where two rules agree.

    It is Φ(z_1) Φ(z_2) plus the integral of exp(−(z_1² + z_2² − 2 z_1 z_2 sin θ)/(2 cos² θ))/2π
    over θ from zero to arcsin ρ: no digits are lost where ρ is positive, however small both are.
    """
    apart = np.sum(log_ndtr(z), axis=1)
    whole, (a, b) = np.arcsin(np.clip(rho, -1.0, 1.0)), z.T
    logs = []
    # What overflows is left to the other way.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for nodes, weights in _RULES:
            theta = 0.5 * whole[:, None] * (1.0 + nodes)
            square = (a**2 + b**2)[:, None] - 2.0 * (a * b)[:, None] * np.sin(theta)
            part = np.exp(-0.5 * square / np.cos(theta) ** 2 - apart[:, None])
            share = whole / (4.0 * np.pi) * np.sum(weights * part, axis=1)
            logs.append(np.log1p(np.maximum(share, _LEAST)))
        same = np.abs(logs[1] - logs[0]) < _CLOSE
    found = apart + logs[1]
    return found, same & (share > _LEAST) & (np.min(z, axis=1) > -_FARTHEST)


def by_quadrature(z: Array, rho: Array) -> Array:
    """Return the same by quadrature over what the two have in common.

    It is E Π Φ((z_k ± √|ρ| x)/√(1 − |ρ|)).
    """
    left = np.sqrt(np.clip(1.0 - np.abs(rho), _EPS, None))
    both = np.sqrt(np.abs(rho)) / left
    z = standardise(z, left[:, None])
    pair = _TwoProbits(z[:, 0], z[:, 1], both, np.sign(rho) * both)
    return pair.tilted(1.0, Marginals(0.0 * rho, 0.0 * rho + 1.0)).log_z


@dataclass(frozen=True)
class _TwoProbits(Likelihood):
    """Φ(a + c x) Φ(b + d x), the label of two probits at once."""

    a: Array
    b: Array
    c: Array
    d: Array

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return the sum of the two logarithms."""
        return hazard(self.a + self.c * f)[0] + hazard(self.b + self.d * f)[0]

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return the first two derivatives, and none for the third.

        It would place the quadrature's panels; without it they are a sixth fewer, with the same
        digits.
        """
        _, first, e = hazard(self.a + self.c * f)
        _, second, r = hazard(self.b + self.d * f)
        d2 = -(self.c**2 * first * e + self.d**2 * second * r)
        return self.c * first + self.d * second, d2, np.zeros_like(d2)

    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Draw whether both labels are positive."""
        return np.where(rng.random(np.shape(f)) < np.exp(self.log_prob(1.0, f)), 1.0, -1.0)
