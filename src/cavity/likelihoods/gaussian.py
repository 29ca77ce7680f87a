"""Regression with Gaussian noise."""

import math
from dataclasses import dataclass

import numpy as np

from cavity.arrays import Array, namespace, same_kind, to_numpy
from cavity.arrays.special import ndtr
from cavity.likelihoods.base import Likelihood, require_positive, take
from cavity.sites import Marginals, Moments


@dataclass(frozen=True, eq=False)
class Gaussian(Likelihood, name="gaussian"):
    """p(y|f) = N(y; f, σ²) for real y.

    Parameters
    ----------
    noise_variance : float or array, default=1.0
        The variance σ² of the noise, one for all examples or one for each.
    log_scale : float or array, default=0.0
        A constant added to log p, as needed for a power of a Gaussian density.
    """

    noise_variance: Array | float = 1.0
    log_scale: Array | float = 0.0

    support = "reals"

    def __post_init__(self) -> None:
        require_positive("noise_variance", self.noise_variance)

    @property
    def quadratic(self) -> bool:
        """A Gaussian is its own site."""
        return True

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log N(y; f, σ²)."""
        return self._moments(y, f, 0.0).log_z

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return (y − f)/σ², −1/σ² and 0."""
        _, d1, d2 = self._moments(y, f, 0.0)
        return d1, d2, 0.0 * d1

    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Draw f plus noise."""
        noise = np.sqrt(to_numpy(self.noise_variance)) * rng.standard_normal(f.shape)
        return f + same_kind(noise, f)

    def tilted(self, y: Array, c: Marginals) -> Moments:
        """Return log N(y; m, σ² + v) and its derivatives in m."""
        return self._moments(y, c.mean, c.variance)

    def expected(self, y: Array, q: Marginals) -> Moments:
        """Return log N(y; m, σ²) − v/2σ² and its derivatives in m."""
        log_p, d1, d2 = self._moments(y, q.mean, 0.0)
        return Moments(log_p + 0.5 * q.variance * d2, d1, d2)

    def mean(self, f: Array) -> Array:
        """Return f."""
        return f

    def variance(self, f: Array) -> Array:
        """Return σ²."""
        return 0.0 * f + same_kind(self.noise_variance, f)

    def response(self, q: Marginals) -> Marginals:
        """Return m and σ² + v."""
        return Marginals(q.mean, q.variance + same_kind(self.noise_variance, q.mean))

    def cdf(self, y: Array, f: Array) -> Array:
        """Return Φ((y − f)/σ)."""
        return ndtr((y - f) / same_kind(np.sqrt(to_numpy(self.noise_variance)), f))

    def deviance(self, y: Array, mean: Array) -> Array:
        """Return (y − μ)², in units that do not depend on the noise."""
        return (y - mean) ** 2

    def cumulants(self, y: Array, c: Marginals) -> tuple[Array, Array]:
        """Return zeros: the tilted distribution is Gaussian."""
        zero = 0.0 * c.variance
        return zero, zero

    def power(self, eta: Array | float) -> Likelihood:
        """Return a Gaussian of noise σ²/eta and the scale that makes it the power."""
        require_positive("eta", eta)
        eta, noise = to_numpy(eta), to_numpy(self.noise_variance)
        scale = 0.5 * (1.0 - eta) * np.log(2.0 * math.pi * noise) - 0.5 * np.log(eta)
        return Gaussian(noise / eta, eta * to_numpy(self.log_scale) + scale)

    def subset(self, rows: slice) -> Likelihood:
        """Return the likelihood of some of the examples."""
        return Gaussian(take(self.noise_variance, rows), take(self.log_scale, rows))

    def in_units(self, origin: float, scale: float) -> Likelihood:
        """Return the likelihood of targets (y − origin)/scale."""
        return Gaussian(self.noise_variance / scale**2, self.log_scale)

    def with_noise(self, variance: float) -> Likelihood:
        """Return the Gaussian with more noise."""
        return Gaussian(self.noise_variance + variance, self.log_scale)

    def _moments(self, y: Array, m: Array, v: Array | float) -> Moments:
        """Return log N(y; m, σ² + v) and its derivatives in m."""
        xp = namespace(m)
        total = same_kind(self.noise_variance, m) + v
        residual = y - m
        d1 = residual / total
        log_norm = 0.5 * xp.log(2.0 * math.pi * total)
        log_z = same_kind(self.log_scale, m) - log_norm - 0.5 * residual * d1
        return Moments(log_z, d1, 0.0 * d1 - 1.0 / total)
