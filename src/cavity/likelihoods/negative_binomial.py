"""Counts that vary more than a Poisson's."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import special

from cavity.arrays import Array, namespace, same_kind, to_numpy
from cavity.likelihoods.base import Likelihood, require_positive
from cavity.likelihoods.logit import Logit
from cavity.likelihoods.poisson import log_factorial, log_ratio
from cavity.likelihoods.rates import log_mean, log_normal, rate
from cavity.likelihoods.stirling import log_rising
from cavity.sites import Marginals, Moments


@dataclass(frozen=True)
class NegativeBinomial(Likelihood, name="negative_binomial"):
    """Counts y = 0, 1, 2, … of mean μ = e^f and variance μ + μ²/k.

    p(y|f) = Γ(y + k)/(Γ(k) y!) σ(t)^y σ(−t)^k with t = f − log k: a Poisson whose rate varies from
    row to row by a gamma of shape k. As k grows it becomes the Poisson.

    Parameters
    ----------
    shape : float, default=1.0
        The shape k.
    shape_bounds : pair of float or "fixed"
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
        """Return y log σ(t) + k log σ(−t) + log Γ(y + k)/(Γ(k) y!)."""
        t, k = self._logit(f), self.shape
        return y * Logit().log_prob(1.0, t) + k * Logit().log_prob(-1.0, t) + self._constant(y, f)

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return y σ(−t) − k σ(t) and its derivatives."""
        t, n = self._logit(f), y + self.shape
        up, d2, d3 = Logit().derivatives(1.0, t)
        down = Logit().derivatives(-1.0, t)[0]
        return y * up + self.shape * down, n * d2, n * d3

    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Draw counts."""
        rates = rng.gamma(self.shape, to_numpy(rate(f)) / self.shape)
        return same_kind(rng.poisson(rates).astype(float), f)

    def expected(self, y: Array, q: Marginals) -> Moments:
        """Return the moments from those of log σ(t) and log σ(−t)."""
        t = Marginals(self._logit(q.mean), q.variance)
        pairs = zip(Logit().expected(1.0, t), Logit().expected(-1.0, t), strict=True)
        log_p, d1, d2 = (y * up + self.shape * down for up, down in pairs)
        return Moments(log_p + self._constant(y, q.mean), d1, d2)

    def mean(self, f: Array) -> Array:
        """Return e^f."""
        return rate(f)

    def variance(self, f: Array) -> Array:
        """Return e^f + e^2f/k."""
        return log_normal(Marginals(f, 0.0 * f), 1.0 / self.shape).variance + rate(f)

    def response(self, q: Marginals) -> Marginals:
        """Return r = e^{m + v/2} and r + r² (e^v − 1 + e^v/k)."""
        mean, spread = log_normal(q, 1.0 / self.shape)
        return Marginals(mean, mean + spread)

    def cdf(self, y: Array, f: Array) -> Array:
        """Return P(Y ≤ y|f), an incomplete beta function."""
        whole, t = np.floor(to_numpy(y + 0.0 * f)), to_numpy(self._logit(f))
        p = special.betainc(self.shape, np.maximum(whole, 0.0) + 1.0, special.expit(-t))
        return same_kind(np.where(whole < 0.0, 0.0, p), f)

    def level(self, y: Array, weight: Array, offset: Array | float = 0.0) -> float:
        """Return the log of the mean."""
        return log_mean(y, weight, offset)

    def deviance(self, y: Array, mean: Array) -> Array:
        """Return 2 [y log(y/μ) − (y + k) log((y + k)/(μ + k))]."""
        k = self.shape
        xp = namespace(mean)
        return 2.0 * (y * log_ratio(y, mean) - (y + k) * xp.log1p((y - mean) / (mean + k)))

    def _logit(self, f: Array) -> Array:
        return f - math.log(self.shape)

    def _constant(self, y: Any, like: Array) -> Array:
        """Return log Γ(y + k) − log Γ(k) − log y!."""
        rising = log_rising(self.shape, y) + to_numpy(y) * math.log(self.shape)
        return same_kind(rising, like) - log_factorial(y, like)
