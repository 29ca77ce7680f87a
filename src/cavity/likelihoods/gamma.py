"""Positive numbers whose spread is in proportion to their mean."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from cavity.arrays import Array, namespace, same_kind, to_numpy
from cavity.likelihoods.base import require_positive
from cavity.likelihoods.numerical import quiet
from cavity.likelihoods.rates import LogLink, drawn_rates, log_moments, rate
from cavity.likelihoods.stirling import remainder
from cavity.sites import Marginals, Moments


@dataclass(frozen=True)
class Gamma(LogLink, name="gamma"):
    """Positive y of mean e^f and variance e^2f/k: p(y|f) ∝ y^{k−1} e^{−kf} exp(−k y e^{−f}).

    Parameters
    ----------
    shape : float, default=1.0
        The shape k; 1 is the exponential distribution.
    shape_bounds : pair of float or "fixed", default (0.01, 10000.0)
        Limits of k while it is tuned.
    """

    shape: float = 1.0
    shape_bounds: tuple[float, float] | str = (1e-2, 1e4)

    support = "positive"
    tunes: ClassVar[tuple[str, ...]] = ("shape",)

    def __post_init__(self) -> None:
        require_positive("shape", self.shape)

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return −k f − k y e^{−f} + k log k + (k − 1) log y − log Γ(k).

        The terms are gathered as k (1 + t − e^t) with t = log y − f, which is small for large k.
        """
        with quiet():
            t = self._log_ratio(y, f)
            return self.shape * (t - namespace(f).expm1(t)) + self._constant(y, f)

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return k (y e^{−f} − 1), −k y e^{−f} and k y e^{−f}."""
        with quiet():
            t = self._log_ratio(y, f)
            share = self.shape * namespace(f).exp(t)
            return self.shape * namespace(f).expm1(t), -share, share

    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Draw positive numbers."""
        return same_kind(drawn_rates(f, self.shape, rng), f)

    def expected(self, y: Array, q: Marginals) -> Moments:
        """Return −k m − k y e^{v/2 − m} and the constants, and its derivatives in m."""
        xp = namespace(q.mean)
        with quiet():
            t = self._log_ratio(y, q.mean)
            log_share = t + 0.5 * q.variance
            share = self.shape * xp.exp(log_share)
            log_p = self.shape * (t - xp.expm1(log_share)) + self._constant(y, q.mean)
            return Moments(log_p, self.shape * xp.expm1(log_share), -share)

    def variance(self, f: Array) -> Array:
        """Return e^2f/k."""
        return rate(2.0 * f) / self.shape

    def log_response(self, q: Marginals) -> tuple[Array, Array]:
        """Return the logs of the mean and of the standard deviation."""
        return log_moments(q, 1.0 / self.shape)

    def cdf(self, y: Array, f: Array) -> Array:
        """Return P(Y ≤ y|f), an incomplete gamma function."""
        with quiet():
            share = self.shape * np.exp(np.log(np.maximum(to_numpy(y), 0.0)) - to_numpy(f))
        return same_kind(special.gammainc(self.shape, share), f)

    def deviance(self, y: Array, mean: Array) -> Array:
        """Return 2 [(y − μ)/μ − log(y/μ)]."""
        return 2.0 * ((y - mean) / mean - namespace(mean).log(y / mean))

    def _log_ratio(self, y: Array, f: Array) -> Array:
        return same_kind(np.log(to_numpy(y)), f) - f

    def _constant(self, y: Array, like: Array) -> Array:
        """Return k log k − k − log Γ(k) − log y, by Stirling's formula."""
        k = self.shape
        own = 0.5 * math.log(k / (2.0 * math.pi)) - float(remainder(k))
        return own - same_kind(np.log(to_numpy(y)), like)
