"""The probit likelihood Φ(y f/s): a sign observed through Gaussian noise."""

import math
from dataclasses import dataclass

import numpy as np

from cavity.arrays import Array
from cavity.arrays.special import log_ndtr
from cavity.likelihoods.base import Likelihood, draw_labels, require_positive
from cavity.likelihoods.normal import hazard, log_ndtr_derivatives, standardise
from cavity.likelihoods.numerical import average
from cavity.likelihoods.step import Step
from cavity.sites import Marginals, Moments

__all__ = ["Probit"]


@dataclass(frozen=True)
class Probit(Likelihood, name="probit"):
    """p(y|f) = Φ(y f/s) for labels ±1.

    Parameters
    ----------
    noise_variance : float, default=1.0
        The variance s² of the noise under the sign.
    """

    noise_variance: float = 1.0

    def __post_init__(self) -> None:
        require_positive("noise_variance", self.noise_variance)

    def _noisy(self, c: Marginals) -> Marginals:
        return Marginals(c.mean, c.variance + self.noise_variance)

    @property
    def symmetric(self) -> bool:
        """Yes."""
        return True

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log Φ(y f/s)."""
        return log_ndtr(standardise(y * f, math.sqrt(self.noise_variance)))

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return the first three derivatives of log Φ(y f/s) in f."""
        s = math.sqrt(self.noise_variance)
        d1, d2, d3, _ = log_ndtr_derivatives(standardise(y * f, s))
        return y * d1 / s, d2 / s**2, y * d3 / s**3

    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Draw labels ±1."""
        return draw_labels(self.log_prob(1.0, f), rng)

    def tilted(self, y: Array, c: Marginals) -> Moments:
        """Return the moments of the step likelihood with the noise in the cavity."""
        return Step().tilted(y, self._noisy(c))

    def expected(self, y: Array, q: Marginals) -> Moments:
        """Return the moments by quadrature, with what log Φ and its derivatives have in common."""
        s = math.sqrt(self.noise_variance)

        def values(f: Array) -> tuple[Array, Array, Array]:
            log_p, h, excess = hazard(standardise(y * f, s))
            return log_p, y * h / s, -(h / s) * (excess / s)

        return average(values, q)

    def cumulants(self, y: Array, c: Marginals) -> tuple[Array, Array]:
        """Return v^l ∂^l log Z for l = 3 and 4."""
        c3, c4 = Step().cumulants(y, self._noisy(c))
        share = c.variance / (c.variance + self.noise_variance)
        return c3 * share**3, c4 * share**4

    def blurred(self, variance: float) -> Likelihood:
        """Return the probit with more noise."""
        return Probit(self.noise_variance + variance)

    @property
    def latent_noise(self) -> Array | float:
        """The noise variance: a probit is a step on f plus noise."""
        return self.noise_variance
