"""The probit likelihood Φ(y f/s), a sign observed through Gaussian noise, and its limit s = 0."""

import math
from dataclasses import dataclass

import numpy as np

from cavity.arrays import Array, namespace
from cavity.arrays.special import log_ndtr
from cavity.likelihoods.base import REGISTRY, Likelihood, draw_labels, require_positive
from cavity.likelihoods.normal import hazard, log_ndtr_derivatives, proper, standardise
from cavity.likelihoods.numerical import average
from cavity.sites import Marginals, Moments


@dataclass(frozen=True)
class Probit(Likelihood, name="probit"):
    """p(y|f) = Φ(y f/s) for labels ±1.

    Without noise it is the step: 1 where y f > 0 and 0 where y f < 0. The step jumps at f = 0, so
    it has tilted moments and nothing else.

    Parameters
    ----------
    noise_variance : float, default=1.0
        The variance s² of the noise inside the sign; 0 for the step.
    """

    noise_variance: float = 1.0

    def __post_init__(self) -> None:
        if self.noise_variance != 0.0:
            require_positive("noise_variance", self.noise_variance)

    @property
    def offers(self) -> frozenset[str]:
        """Tilted moments; with noise also derivatives and the expected log density."""
        return super().offers if self.noise_variance else frozenset({"tilted"})

    @property
    def symmetric(self) -> bool:
        """p(−1|−f) = p(+1|f)."""
        return True

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log Φ(y f/s)."""
        if self.noise_variance:
            return log_ndtr(standardise(y * f, self._sd("log density")))
        xp = namespace(f)
        right = xp.where(y * f > 0.0, 0.0 * f, math.log(0.5))
        return xp.where(y * f < 0.0, -math.inf, right)

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return the first three derivatives of log Φ(y f/s) in f."""
        s = self._sd("derivatives")
        d1, d2, d3, _ = log_ndtr_derivatives(standardise(y * f, s))
        return y * d1 / s, d2 / s**2, y * d3 / s**3

    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Draw labels ±1."""
        return draw_labels(self.log_prob(1.0, f), rng)

    def tilted(self, y: Array, c: Marginals) -> Moments:
        """Return log Φ(z), z = y m/√(v + s²), and its derivatives in m."""
        sd = self._spread(c)
        log_z, h, excess = hazard(standardise(y * c.mean, sd))
        return Moments(log_z, y * h / sd, -(h / sd) * (excess / sd))

    def expected(self, y: Array, q: Marginals) -> Moments:
        """Return the moments by quadrature, with what log Φ and its derivatives have in common."""
        s = self._sd("expected log density")

        def values(f: Array) -> tuple[Array, Array, Array]:
            log_p, h, excess = hazard(standardise(y * f, s))
            return log_p, y * h / s, -(h / s) * (excess / s)

        return average(values, q)

    def cumulants(self, y: Array, c: Marginals) -> tuple[Array, Array]:
        """Return v^l ∂^l log Z for l = 3 and 4."""
        sd = self._spread(c)
        _, _, d3, d4 = log_ndtr_derivatives(standardise(y * c.mean, sd))
        # v/√(v + s²), by a quotient that is one without noise.
        v = proper(c).variance
        scale = sd * (v / (v + self.noise_variance))
        return y * d3 * scale**3, d4 * scale**4

    def with_noise(self, variance: float) -> Likelihood:
        """Return the probit with more noise."""
        return Probit(self.noise_variance + variance)

    def power(self, eta: Array | float) -> Likelihood:
        """Return p^eta; the step itself has only zeros and ones."""
        return super().power(eta) if self.noise_variance else self

    def _spread(self, c: Marginals) -> Array:
        """Return √(v + s²)."""
        return namespace(c.mean).sqrt(
            proper(c._replace(variance=c.variance + self.noise_variance)).variance
        )

    def _sd(self, what: str) -> float:
        if not self.noise_variance:
            raise ValueError(
                f"The step likelihood has no {what}: it jumps at f = 0. "
                "Use a probit likelihood, or a method that needs tilted moments only."
            )
        return math.sqrt(self.noise_variance)


def Step() -> Probit:
    """Return the step likelihood: the label is the sign of the latent value."""
    return Probit(0.0)


REGISTRY["step"] = Step
