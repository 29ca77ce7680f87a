"""Gaussian noise on targets that are cut off at limits (tobit regression)."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from cavity.arrays import Array, clip, namespace, same_kind, to_numpy
from cavity.arrays.special import ndtr
from cavity.likelihoods.base import Likelihood, divided, require_positive
from cavity.likelihoods.gaussian import Gaussian
from cavity.likelihoods.probit import Probit
from cavity.sites import Marginals, Moments

_FAR = 40.0


@dataclass(frozen=True)
class Censored(Likelihood, name="censored"):
    """y is f plus Gaussian noise, but not less than a lower limit nor more than an upper one.

    A row at a limit, or beyond, says only that f plus noise is there or beyond: p = Φ(±(f − c)/σ).

    Parameters
    ----------
    noise_variance : float, default=1.0
        The variance σ² of the noise.
    lower, upper : float, optional
        The limits; minus or plus infinity if there is none. One that is not given is taken from
        the targets (`fitted_to`): the smallest or the largest, if several rows share it.
    noise_variance_bounds : pair of float or "fixed", default (1e-06, 10000.0)
        Limits of σ² while it is tuned.
    """

    noise_variance: float = 1.0
    lower: float | None = None
    upper: float | None = None
    noise_variance_bounds: tuple[float, float] | str = (1e-6, 1e4)

    support = "reals"
    tunes: ClassVar[tuple[str, ...]] = ("noise_variance",)

    def __post_init__(self) -> None:
        require_positive("noise_variance", self.noise_variance)
        low, high = self._limits
        if not low < high:
            raise ValueError(f"lower must be less than upper, got {low!r} and {high!r}.")

    @property
    def _limits(self) -> tuple[float, float]:
        low = -math.inf if self.lower is None else self.lower
        return low, math.inf if self.upper is None else self.upper

    def in_units(self, origin: float, scale: float) -> Likelihood:
        """Return the likelihood of targets (y − origin)/scale, between limits in these units."""
        low, high = (None if c is None else (c - origin) / scale for c in (self.lower, self.upper))
        bounds, noise = divided(self.noise_variance_bounds, scale**2), self.noise_variance
        return replace(
            self,
            noise_variance=noise / scale**2,
            lower=low,
            upper=high,
            noise_variance_bounds=bounds,
        )

    def fitted_to(self, y: Array, weight: Array | None = None) -> Likelihood:
        """Return the likelihood with the limits that the targets show."""
        values = to_numpy(y)
        counted = values if weight is None else values[to_numpy(weight) > 0.0]
        low, high = np.min(counted), np.max(counted)
        if low == high:
            return self
        lower = float(low) if np.sum(counted == low) > 1 else -math.inf
        upper = float(high) if np.sum(counted == high) > 1 else math.inf
        return replace(
            self,
            lower=lower if self.lower is None else self.lower,
            upper=upper if self.upper is None else self.upper,
        )

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log N(y; f, σ²), or log Φ(±(f − c)/σ) at a limit."""
        side, inside, past = self._rows(y, f)
        exact = Gaussian(self.noise_variance).log_prob(inside, f)
        beyond = Probit(self.noise_variance).log_prob(side, f - past)
        return namespace(f).where(side == 0.0, exact, beyond)

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return those of the Gaussian, or of the probit at a limit."""
        side, inside, past = self._rows(y, f)
        exact = Gaussian(self.noise_variance).derivatives(inside, f)
        beyond = Probit(self.noise_variance).derivatives(side, f - past)
        xp = namespace(f)
        d1, d2, d3 = (xp.where(side == 0.0, a, b) for a, b in zip(exact, beyond, strict=True))
        return d1, d2, d3

    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Draw f plus noise, cut off at the limits."""
        return clip(Gaussian(self.noise_variance).sample(f, rng), *self._limits)

    def tilted(self, y: Array, c: Marginals) -> Moments:
        """Return the moments of the Gaussian, or of the probit at a limit."""
        side, inside, past = self._rows(y, c.mean)
        exact = Gaussian(self.noise_variance).tilted(inside, c)
        shifted = Marginals(c.mean - past, c.variance)
        return _chosen(side, exact, Probit(self.noise_variance).tilted(side, shifted))

    def expected(self, y: Array, q: Marginals) -> Moments:
        """Return the averages of the Gaussian, or of the probit at a limit."""
        side, inside, past = self._rows(y, q.mean)
        exact = Gaussian(self.noise_variance).expected(inside, q)
        if not namespace(side).any(side != 0.0):
            return exact
        shifted = Marginals(q.mean - past, q.variance)
        return _chosen(side, exact, Probit(self.noise_variance).expected(side, shifted))

    def cumulants(self, y: Array, c: Marginals) -> tuple[Array, Array]:
        """Return zeros, or the cumulants of the probit at a limit."""
        side, _, past = self._rows(y, c.mean)
        shifted = Marginals(c.mean - past, c.variance)
        xp = namespace(side)
        c3, c4 = Probit(self.noise_variance).cumulants(side, shifted)
        return xp.where(side == 0.0, 0.0, c3), xp.where(side == 0.0, 0.0, c4)

    def mean(self, f: Array) -> Array:
        """Return E[y|f] of the cut-off target."""
        return clipped_moments(f, self.noise_variance + 0.0 * f, *self._limits).mean

    def variance(self, f: Array) -> Array:
        """Return Var[y|f] of the cut-off target."""
        return clipped_moments(f, self.noise_variance + 0.0 * f, *self._limits).variance

    def response(self, q: Marginals) -> Marginals:
        """Return the moments of the cut-off target, of which the latent part is Gaussian, too."""
        return clipped_moments(q.mean, q.variance + self.noise_variance, *self._limits)

    def cdf(self, y: Array, f: Array) -> Array:
        """Return Φ((y − f)/σ) between the limits, zero below and one from the upper one on."""
        low, high = self._limits
        xp = namespace(f)
        y = y + 0.0 * f
        p = ndtr((y - f) / math.sqrt(self.noise_variance))
        return xp.where(y < low, 0.0, xp.where(y >= high, 1.0, p))

    def has_mass(self, y: Array) -> Array:
        """Return whether targets are at a limit."""
        low, high = self._limits
        return (y <= low) | (y >= high)

    def _rows(self, y: Array, like: Array) -> tuple[Array, Array, Array]:
        """Return which limit a row is at (−1, 1, or 0), its target if inside, the limit if not."""
        low, high = self._limits
        xp = namespace(like)
        y = y + 0.0 * like
        side = xp.where(y <= low, -1.0, xp.where(y >= high, 1.0, 0.0 * like))
        past = xp.where(side < 0.0, low, xp.where(side > 0.0, high, 0.0 * like))
        return side, xp.where(side == 0.0, y, like), same_kind(past, like)


def _chosen(side: Array, exact: Moments, beyond: Moments) -> Moments:
    xp = namespace(side)
    return Moments(*(xp.where(side == 0.0, a, b) for a, b in zip(exact, beyond, strict=True)))


def clipped_moments(m: Array, v: Array, low: float, high: float) -> Marginals:
    """Return mean and variance of a Gaussian variable that is cut off at two limits.

    Limits more than forty standard deviations away are as good as there or never reached.
    """
    xp = namespace(m)
    sd = xp.sqrt(v)
    a, b = clip((low - m) / sd, -_FAR, _FAR), clip((high - m) / sd, -_FAR, _FAR)
    inside = ndtr(b) - ndtr(a)
    mean = a * ndtr(a) + b * ndtr(-b) + _density(a) - _density(b)
    square = a * a * ndtr(a) + b * b * ndtr(-b) + inside + a * _density(a) - b * _density(b)
    return Marginals(clip(m + sd * mean, low, high), v * clip(square - mean * mean, low=0.0))


def _density(z: Array) -> Array:
    return namespace(z).exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
