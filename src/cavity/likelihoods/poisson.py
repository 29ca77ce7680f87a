"""Counts with a rate e^f."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from cavity.arrays import Array, namespace, same_kind, to_numpy
from cavity.likelihoods.base import Likelihood
from cavity.likelihoods.rates import log_mean, log_normal, rate
from cavity.sites import Marginals, Moments


@dataclass(frozen=True)
class Poisson(Likelihood, name="poisson"):
    """p(y|f) = e^{yf} exp(−e^f)/y! for counts y = 0, 1, 2, ….

    An exposure E, such as a length of time or a number of people, is log E added to f.
    """

    support = "counts"

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return y f − e^f − log y!."""
        return y * f - rate(f) - log_factorial(y, f)

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return y − e^f, −e^f and −e^f."""
        r = rate(f)
        return y - r, -r, -r

    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Draw counts."""
        return same_kind(rng.poisson(to_numpy(rate(f))).astype(float), f)

    def expected(self, y: Array, q: Marginals) -> Moments:
        """Return y m − e^{m + v/2} − log y! and its derivatives in m."""
        r = log_normal(q).mean
        return Moments(y * q.mean - r - log_factorial(y, q.mean), y - r, -r)

    def mean(self, f: Array) -> Array:
        """Return e^f."""
        return rate(f)

    def variance(self, f: Array) -> Array:
        """Return e^f."""
        return rate(f)

    def response(self, q: Marginals) -> Marginals:
        """Return r = e^{m + v/2} and r + r² (e^v − 1)."""
        mean, spread = log_normal(q)
        return Marginals(mean, mean + spread)

    def cdf(self, y: Array, f: Array) -> Array:
        """Return P(Y ≤ y|f) = Γ(⌊y⌋ + 1, e^f)/⌊y⌋!."""
        whole = np.floor(to_numpy(y + 0.0 * f))
        p = special.gammaincc(np.maximum(whole, 0.0) + 1.0, to_numpy(rate(f)))
        return same_kind(np.where(whole < 0.0, 0.0, p), f)

    def level(self, y: Array, weight: Array, offset: Array | float = 0.0) -> float:
        """Return the log of the mean rate."""
        return log_mean(y, weight, offset)

    def deviance(self, y: Array, mean: Array) -> Array:
        """Return 2 [y log(y/μ) − y + μ]."""
        return 2.0 * (y * log_ratio(y, mean) - y + mean)


def log_ratio(y: Array, mean: Array) -> Array:
    """Return log(y/μ), and zero where y is."""
    xp = namespace(mean)
    return xp.log(xp.where(y > 0.0, y, mean) / mean)


def log_factorial(y: Array, like: Array) -> Array:
    """Return log y!, as an array of the kind of another."""
    return same_kind(special.gammaln(to_numpy(y) + 1.0), like)
