"""Counts with a rate e^f."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from cavity.arrays import Array, namespace, same_kind, to_numpy
from cavity.likelihoods.numerical import quiet
from cavity.likelihoods.rates import LogLink, drawn_counts, log_moments, rate
from cavity.likelihoods.stirling import remainder
from cavity.sites import Marginals, Moments

_NORMAL = 1e30
"""Beyond it a Poisson is Gaussian in all digits, and the incomplete gamma function fails at last.
"""


@dataclass(frozen=True)
class Poisson(LogLink, name="poisson"):
    """p(y|f) = e^{yf} exp(−e^f)/y! for counts y = 0, 1, 2, ….

    An exposure E, such as a length of time or a number of people, is log E added to f.
    """

    support = "counts"

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return y f − e^f − log y!, gathered as what is below the best f, and the best."""
        return self._below_best(y, f, 0.0) + self._best(y, f)

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return y − e^f, −e^f and −e^f."""
        r = rate(f)
        return y - r, -r, -r

    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Draw counts."""
        return same_kind(drawn_counts(to_numpy(rate(f)), rng), f)

    def expected(self, y: Array, q: Marginals) -> Moments:
        """Return y m − e^{m + v/2} − log y! and its derivatives in m."""
        r = rate(q.mean + 0.5 * q.variance)
        log_p = self._below_best(y, q.mean, q.variance) + self._best(y, q.mean)
        return Moments(log_p, y - r, -r)

    def variance(self, f: Array) -> Array:
        """Return e^f."""
        return rate(f)

    def log_response(self, q: Marginals) -> tuple[Array, Array]:
        """Return the logs of the mean and of the standard deviation."""
        return log_moments(q, counted=True)

    def cdf(self, y: Array, f: Array) -> Array:
        """Return P(Y ≤ y|f) = Γ(⌊y⌋ + 1, e^f)/⌊y⌋!."""
        whole, r = np.floor(to_numpy(y + 0.0 * f)), to_numpy(rate(f))
        with quiet():
            many = special.ndtr((whole - r) / np.sqrt(whole))
        few = special.gammaincc(np.clip(whole, 0.0, _NORMAL) + 1.0, r)
        p = np.where(whole > _NORMAL, many, few)
        return same_kind(np.where(whole < 0.0, 0.0, p), f)

    def deviance(self, y: Array, mean: Array) -> Array:
        """Return 2 [y log(y/μ) − y + μ]."""
        with quiet():
            return -2.0 * self._below_best(y, namespace(mean).log(mean), 0.0)

    def _below_best(self, y: Array, m: Array, v: Array | float) -> Array:
        """Return E log p less its largest value, log p(y| log y): no large numbers cancel."""
        xp = namespace(m)
        with quiet():
            t = log_over(m, y)
            some = y * (t - xp.expm1(t + 0.5 * v))
            return xp.where(y > 0.0, some, -xp.exp(m + 0.5 * v))

    def _best(self, y: Array, like: Array) -> Array:
        """Return y log y − y − log y!, by Stirling's formula."""
        count = np.maximum(to_numpy(y), 1.0)
        best = -0.5 * np.log(2.0 * np.pi * count) - remainder(count)
        return same_kind(np.where(to_numpy(y) > 0.0, best, 0.0), like)


def log_over(f: Array, y: Array) -> Array:
    """Return log(e^f/y), the f of a mean of one where there is no y to compare it with."""
    return f - same_kind(np.log(np.maximum(to_numpy(y), 1.0)), f)
