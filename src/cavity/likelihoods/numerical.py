"""Tilted and expected moments of any log-concave likelihood, by adaptive quadrature.

This is the slow reference for every closed form, and all that a new likelihood needs.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from cavity.arrays import Array, namespace
from cavity.likelihoods.normal import proper
from cavity.likelihoods.quadrature import graded_edges, integrate
from cavity.sites import Marginals, Moments

if TYPE_CHECKING:
    from cavity.likelihoods.base import Likelihood

# A Gaussian falls below the smallest double 39 standard deviations out: even tiny integrals in the
# far tail keep their relative accuracy.
_REACH = 40.0
_EPS = float(np.finfo(float).eps)
_SQRT_2PI = math.sqrt(2.0 * math.pi)


def quiet() -> np.errstate:
    """Let a likelihood overflow far out, where the Gaussian has long vanished."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def _times(weight: Array, value: Array) -> Array:
    """Return weight · value, and zero where the weight is zero whatever the value."""
    xp = namespace(weight)
    return xp.where(weight > 0.0, value, 0.0) * weight


def _mode(lik: Likelihood, y: Array, c: Marginals) -> Array:
    """Find the mode of the tilted density by Newton's method inside a shrinking bracket."""
    m, v = c
    xp = namespace(m)
    near, far = _bracket(lik, y, c)
    f = 0.5 * (near + far)
    for k in range(200):
        d1, d2, _ = lik.derivatives(y, f)
        slope, curvature = d1 - (f - m) / v, d2 - 1.0 / v
        short = slope * (far - near) > 0.0
        near, far = xp.where(short, f, near), xp.where(short, far, f)
        step = f - slope / curvature
        # On the steep side of e^f Newton's steps have length one, however far the mode is.
        patient = k < 20 or k % 2 == 0
        inside = ((step - near) * (step - far) <= 0.0) & patient
        old, f = f, xp.where(inside, step, 0.5 * (near + far))
        if not xp.any(xp.abs(f - old) > 1e-3 * xp.sqrt(v) / xp.sqrt(1.0 - d2 * v)):
            break
    return f


def _bracket(lik: Likelihood, y: Array, c: Marginals) -> tuple[Array, Array]:
    """Two points with the tilted mode in between, the one nearer the cavity's mean first."""
    m, v = c
    xp = namespace(m)
    step = xp.sqrt(v) * xp.sign(lik.derivatives(y, m)[0])
    near, far = m, m + step
    for _ in range(600):
        beyond = (lik.derivatives(y, far)[0] - (far - m) / v) * step > 0.0
        if not xp.any(beyond):
            break
        step = 4.0 * step
        near, far = xp.where(beyond, far, near), xp.where(beyond, m + step, far)
    return near, far


class _Tilt:
    """The tilted density exp ψ about its mode f, on offsets s from it."""

    def __init__(self, lik: Likelihood, y: Array, c: Marginals) -> None:
        c = proper(c)
        self.lik, self.y, self.v = lik, y, c.variance
        xp = namespace(c.mean)
        self.f = _mode(lik, y, c)
        self.offset = self.f - c.mean
        self.slope, curvature, d3 = lik.derivatives(y, self.f)
        self.peak = lik.log_prob(y, self.f) - 0.5 * self.offset**2 / self.v
        width = xp.sqrt(self.v / (1.0 - curvature * self.v))
        # Not beyond where the curvature changes: a bend between a wide panel's end and its first
        # node would be missed.
        self.width = width / (1.0 + width**3 * xp.abs(d3))
        self.edges = graded_edges(self.width, _REACH * xp.sqrt(self.v))
        # Slopes that hardly change within the cavity differ by the rounding of the first one.
        pull, none = xp.abs(self.slope) * self.width, 0.0 * self.width
        square = _EPS * xp.abs(self.slope) * pull
        self.least = xp.stack([none, none, none, none, pull, square, none])
        # Where Z is near one, log Z is as exact as the integral of p − 1.
        self.near_one = xp.abs(self.peak) < 1.0

    def logs(self, s: Array) -> tuple[Array, Array]:
        """Return log p and the log of the cavity density, unnormalised, at the offsets."""
        return self.lik.log_prob(self.y, self.f + s), -0.5 * (self.offset + s) ** 2 / self.v

    def integrands(self, s: Array) -> list[Array]:
        """Return what log Z, d1 and d2 are made of; slopes g are relative to that at the mode."""
        xp = namespace(s)
        log_p, log_n = self.logs(s)
        g, dg, _ = self.lik.derivatives(self.y, self.f + s)
        g = g - self.slope
        w = xp.exp(log_p + log_n - self.peak)
        t = s / xp.sqrt(self.v)
        rest = xp.where(self.near_one, xp.expm1(log_p), 0.0)
        slopes = [_times(w, dg), _times(w, g), _times(w, g * g)]
        return [w, w * t, w * t * t, *slopes, _times(xp.exp(log_n), rest)]

    def powers(self, s: Array) -> list[Array]:
        """Return the integrands of the first four moments, in units of the width."""
        log_p, log_n = self.logs(s)
        w = namespace(s).exp(log_p + log_n - self.peak)
        s = s / self.width
        return list(accumulate([w, s, s, s, s], operator.mul))


def tilted(lik: Likelihood, y: Array, c: Marginals) -> Moments:
    """Return log E p(y|f) under the cavity and its first two derivatives in the cavity mean.

    With g = ∂log p and averages over the tilted density, d1 = E g and d2 = E ∂g + Var g. These
    cancel where log p bends sharply within the cavity; there d1 = (E f − m)/v and
    d2 = (Var f/v − 1)/v are used, which cancel elsewhere.
    """
    xp = namespace(c.mean)
    with quiet():
        tilt = _Tilt(lik, y, c)
        norm, *averages, rest = integrate(tilt.integrands, tilt.edges, tilt.least)
        scale = _SQRT_2PI * xp.sqrt(tilt.v)
        log_z = tilt.peak + xp.log(norm / scale)
        near_one = tilt.near_one & (xp.abs(log_z) < 0.5)
        log_z = xp.where(near_one, xp.log1p(rest / scale), log_z)
        t, tt, dg, g, gg = (average / norm for average in averages)
    sharp, sd = -dg * tilt.v > 1.0, xp.sqrt(tilt.v)
    d1 = xp.where(sharp, (tilt.offset / sd + t) / sd, tilt.slope + g)
    d2 = xp.where(sharp, (tt - t * t - 1.0) / tilt.v, dg + (gg - g * g))
    return Moments(log_z, d1, d2)


def cumulants(lik: Likelihood, y: Array, c: Marginals) -> tuple[Array, Array]:
    """Return the third and fourth cumulants of the tilted density."""
    with quiet():
        tilt = _Tilt(lik, y, c)
        norm, *moments = integrate(tilt.powers, tilt.edges)
    a, b, third, fourth = (moment / norm for moment in moments)
    c3 = third - 3.0 * a * b + 2.0 * a**3
    c4 = fourth - 4.0 * third * a - 3.0 * b**2 + 12.0 * b * a**2 - 6.0 * a**4
    return c3 * tilt.width**3, c4 * tilt.width**4


def expected(lik: Likelihood, y: Array, q: Marginals) -> Moments:
    """Return E log p(y|f), E ∂log p and E ∂²log p under a Gaussian."""
    return average(lambda f: (lik.log_prob(y, f), *lik.derivatives(y, f)[:2]), q)


def response(lik: Likelihood, q: Marginals) -> Marginals:
    """Return the mean and variance of y under a Gaussian over f."""
    [mean] = averages(lambda f: [lik.mean(f)], q)

    def variances(f: Array) -> list[Array]:
        return [lik.variance(f), (lik.mean(f) - mean) ** 2]

    within, between = averages(variances, q)
    return Marginals(mean, within + between)


def average(values: Callable[[Array], Sequence[Array]], q: Marginals) -> Moments:
    """Return the averages under Gaussians of what is given: log p, ∂log p and ∂²log p."""
    return Moments(*averages(values, q))


def averages(values: Callable[[Array], Sequence[Array]], q: Marginals) -> list[Array]:
    """Return the averages under Gaussians of any number of functions."""
    m, v = proper(q)
    xp = namespace(m)
    sd = xp.sqrt(v)

    def integrands(t: Array) -> list[Array]:
        w = xp.exp(-0.5 * t * t) / _SQRT_2PI
        return [_times(w, value) for value in values(m + sd * t)]

    unit = xp.ones_like(m)
    with quiet():
        return integrate(integrands, graded_edges(unit, _REACH * unit))
