"""The noise-free step likelihood: the label is the sign of the latent value."""

import math
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from cavity.arrays import Array, namespace
from cavity.likelihoods.base import REGISTRY, Likelihood, draw_labels
from cavity.likelihoods.normal import hazard, log_ndtr_derivatives, proper, standardise
from cavity.sites import Marginals, Moments

__all__ = ["Step"]


@dataclass(frozen=True)
class Step(Likelihood, name="step"):
    """p(y|f) = 1 where y f > 0 and 0 where y f < 0, for labels ±1.

    It jumps, so it has tilted moments and nothing else.
    """

    @property
    def offers(self) -> frozenset[str]:
        """Tilted moments only."""
        return frozenset({"tilted"})

    @property
    def symmetric(self) -> bool:
        """Yes."""
        return True

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return 0, or −∞ on the wrong side, or log ½ between them."""
        xp = namespace(f)
        right = xp.where(y * f > 0.0, 0.0 * f, math.log(0.5))
        return xp.where(y * f < 0.0, -math.inf, right)

    def derivatives(self, y: Array, f: Array) -> NoReturn:
        """Refuse: the step has no derivatives."""
        _refuse("derivatives")

    def expected(self, y: Array, q: Marginals) -> NoReturn:
        """Refuse: log p is −∞ on one side."""
        _refuse("expected log density")

    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Return the signs; a latent value of zero gets a random one."""
        return draw_labels(self.log_prob(1.0, f), rng)

    def tilted(self, y: Array, c: Marginals) -> Moments:
        """Return log Φ(z), z = y m/√v, and its derivatives in m."""
        sd = namespace(c.mean).sqrt(proper(c).variance)
        z = standardise(y * c.mean, sd)
        log_z, h, excess = hazard(z)
        return Moments(log_z, y * h / sd, -(h / sd) * (excess / sd))

    def cumulants(self, y: Array, c: Marginals) -> tuple[Array, Array]:
        """Return v^l ∂^l log Φ(z) for l = 3 and 4."""
        sd = namespace(c.mean).sqrt(proper(c).variance)
        _, _, d3, d4 = log_ndtr_derivatives(standardise(y * c.mean, sd))
        return y * d3 * sd**3, d4 * sd**4

    def blurred(self, variance: float) -> Likelihood:
        """Return the probit: a step seen through noise."""
        return REGISTRY["probit"](variance)  # type: ignore[call-arg]

    def power(self, eta: Array | float) -> Likelihood:
        """Return the step itself: zero and one are their own powers."""
        return self


def _refuse(what: str) -> NoReturn:
    raise ValueError(
        f"The step likelihood has no {what}: it jumps at f = 0. "
        "Use a probit likelihood, or a method that needs tilted moments only."
    )
