"""Counts that vary more than a Poisson's."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from cavity.arrays import Array, clip, namespace, same_kind, to_numpy
from cavity.likelihoods.base import require_positive
from cavity.likelihoods.logit import Logit
from cavity.likelihoods.numerical import quiet
from cavity.likelihoods.poisson import log_over
from cavity.likelihoods.rates import LogLink, drawn_counts, drawn_rates, log_moments, rate
from cavity.likelihoods.stirling import remainder
from cavity.sites import Marginals, Moments

_ENORMOUS = 1e17
"""Beyond it a Poisson varies by less than the rounding of its rate, even if the shape is 10^4."""


@dataclass(frozen=True)
class NegativeBinomial(LogLink, name="negative_binomial"):
    """Counts y = 0, 1, 2, … of mean μ = e^f and variance μ + μ²/k.

    p(y|f) = Γ(y + k)/(Γ(k) y!) σ(t)^y σ(−t)^k with t = f − log k: a Poisson whose rate varies from
    row to row by a gamma of shape k. As k grows it becomes the Poisson.

    Parameters
    ----------
    shape : float, default=1.0
        The shape k.
    shape_bounds : pair of float or "fixed", default (0.01, 10000.0)
        Limits of k while it is tuned.
    """

    shape: float = 1.0
    shape_bounds: tuple[float, float] | str = (1e-2, 1e4)

    support = "counts"
    tunes: ClassVar[tuple[str, ...]] = ("shape",)
    open_ends = frozenset({("likelihood__shape", "upper")})

    def __post_init__(self) -> None:
        require_positive("shape", self.shape)

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return y log σ(t) + k log σ(−t) + log Γ(y + k)/(Γ(k) y!).

        These are gathered as what is below the best f, and the best.
        """
        return self._below_best(y, f) + self._best(y, f)

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return y σ(−t) − k σ(t) and its derivatives."""
        t, n = self._logit(f), y + self.shape
        up, d2, d3 = Logit().derivatives(1.0, t)
        down = Logit().derivatives(-1.0, t)[0]
        return y * up + self.shape * down, n * d2, n * d3

    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Draw counts."""
        return same_kind(drawn_counts(drawn_rates(f, self.shape, rng), rng), f)

    def expected(self, y: Array, q: Marginals) -> Moments:
        """Return the moments from those of log σ(t) and log σ(−t)."""
        t = Marginals(self._logit(q.mean), q.variance)
        pairs = zip(Logit().expected(1.0, t), Logit().expected(-1.0, t), strict=True)
        log_p, d1, d2 = (y * up + self.shape * down for up, down in pairs)
        return Moments(log_p + self._constant(y, q.mean), d1, d2)

    def variance(self, f: Array) -> Array:
        """Return e^f + e^2f/k."""
        return rate(2.0 * f) / self.shape + rate(f)

    def log_response(self, q: Marginals) -> tuple[Array, Array]:
        """Return the logs of the mean and of the standard deviation."""
        return log_moments(q, 1.0 / self.shape, counted=True)

    def cdf(self, y: Array, f: Array) -> Array:
        """Return P(Y ≤ y|f), an incomplete beta function; of enormous y that of the gamma rate."""
        whole, t = np.floor(to_numpy(y + 0.0 * f)), to_numpy(self._logit(f))
        count = np.clip(whole, 0.0, _ENORMOUS) + 1.0
        few = special.betainc(self.shape, count, special.expit(-t))
        with quiet():
            many = special.gammainc(self.shape, np.exp(np.log(whole) - t))
        p = np.where(whole > _ENORMOUS, many, few)
        return same_kind(np.where(whole < 0.0, 0.0, p), f)

    def deviance(self, y: Array, mean: Array) -> Array:
        """Return 2 [y log(y/μ) − (y + k) log((y + k)/(μ + k))]."""
        with quiet():
            return -2.0 * self._below_best(y, namespace(mean).log(mean))

    def _logit(self, f: Array) -> Array:
        return f - math.log(self.shape)

    def _constant(self, y: Array, like: Array) -> Array:
        """Return log Γ(y + k) − log Γ(k) − log y!."""
        k, count = self.shape, np.maximum(to_numpy(y), 1.0)
        more = count * np.log1p(k / count) + k * np.log1p(count / k)
        return self._best(y, like) + same_kind(np.where(to_numpy(y) > 0.0, more, 0.0), like)

    def _best(self, y: Array, like: Array) -> Array:
        """Return log p(y| log y), by Stirling's formula; one value of f explains any count."""
        k, count = self.shape, np.maximum(to_numpy(y), 1.0)
        best = 0.5 * np.log(k / (2.0 * np.pi * count * (count + k)))
        best += remainder(count + k) - remainder(k) - remainder(count)
        return same_kind(np.where(to_numpy(y) > 0.0, best, 0.0), like)

    def _below_best(self, y: Array, f: Array) -> Array:
        """Return log p less that: y δ − (y + k) log(q + p e^δ), δ = f − log y, p = y/(y + k).

        No large numbers cancel; of no counts it is all of log p.
        """
        xp, k = namespace(f), self.shape
        p, q = y / (y + k), k / (y + k)
        with quiet():
            t, beyond = log_over(f, y), self._logit(f)
            # The larger of the two parts of the logarithm is taken out of it.
            down = y * t - (y + k) * _log_mean(q, p, t - clip(beyond, low=0.0))
            up = -k * t - (y + k) * _log_mean(p, q, clip(beyond, high=0.0) - t)
            none = k * Logit().log_prob(-1.0, beyond)
            return xp.where(y > 0.0, xp.where(beyond > 0.0, up, down), none)


def _log_mean(q: Array, p: Array, t: Array) -> Array:
    """Return log(q + p e^t) for q + p = 1 and p e^t up to q."""
    xp = namespace(t)
    change = p * xp.expm1(t)
    return xp.where(change > -0.5, xp.log1p(change), xp.log(q + p * xp.exp(t)))
