"""A likelihood raised to a power, as power EP and fractional weights need it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cavity.arrays import Array
from cavity.likelihoods import numerical
from cavity.likelihoods.base import Likelihood, forwarded, require_positive, take
from cavity.sites import Marginals, Moments


@dataclass(frozen=True)
class Powered(Likelihood):
    """A likelihood raised to a power.

    Parameters
    ----------
    base : Likelihood
        The likelihood p(y|f).
    eta : float or array
        The power, positive; one for all examples or one for each.
    """

    base: Likelihood
    eta: Array | float

    support = forwarded("support")
    quadratic = forwarded("quadratic")
    concave = forwarded("concave")
    names = forwarded("names")
    theta = forwarded("theta")
    bounds = forwarded("bounds")

    def __post_init__(self) -> None:
        require_positive("eta", self.eta)

    @property
    def offers(self) -> frozenset[str]:
        """As for the likelihood itself; tilted moments only if it is log-concave."""
        return self.base.offers if self.base.concave else self.base.offers - {"tilted"}

    def with_theta(self, theta: Array) -> Likelihood:
        """Return the power of the likelihood with other parameters."""
        return Powered(self.base.with_theta(theta), self.eta)

    def check_targets(self, y: Array, first: int = 0) -> None:
        """Check the targets as the likelihood itself does."""
        self.base.check_targets(y, first)

    def fitted_to(self, y: Array, weight: Array | None = None) -> Likelihood:
        """Return the power of the likelihood fitted to the targets."""
        return Powered(self.base.fitted_to(y, weight), self.eta)

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return eta log p(y|f)."""
        return self.eta * self.base.log_prob(y, f)

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return the first three derivatives of eta log p(y|f) in f."""
        d1, d2, d3 = self.base.derivatives(y, f)
        return self.eta * d1, self.eta * d2, self.eta * d3

    def tilted(self, y: Array, c: Marginals) -> Moments:
        """Return the moments by quadrature, which needs a log-concave likelihood."""
        if not self.base.concave:
            raise ValueError(
                f"{self.base!r} is not log-concave, and tilted moments of its powers are not "
                "known: learning curves need a log-concave likelihood."
            )
        return numerical.tilted(self, y, c)

    def mixture(self, y: Array, q: Marginals) -> Moments:
        """Return the bound of eta log p(y|f)."""
        return Moments(*(self.eta * moment for moment in self.base.mixture(y, q)))

    def expected(self, y: Array, q: Marginals) -> Moments:
        """Return the moments of eta log p(y|f)."""
        return Moments(*(self.eta * moment for moment in self.base.expected(y, q)))

    def power(self, eta: Array | float) -> Likelihood:
        """Return the likelihood itself to the product of the powers."""
        return self.base.power(self.eta * eta)

    def subset(self, rows: slice) -> Likelihood:
        """Return the powered likelihood of some of the examples."""
        return Powered(self.base.subset(rows), take(self.eta, rows))

    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Raise an error: a power of a density is not normalised."""
        raise self._refusal("be sampled; sample")

    def mean(self, f: Array) -> Array:
        """Raise an error: a power of a density is not normalised."""
        raise self._refusal("be averaged over; use")

    def variance(self, f: Array) -> Array:
        """Raise an error: a power of a density is not normalised."""
        raise self._refusal("be averaged over; use")

    def _refusal(self, what: str) -> ValueError:
        return ValueError(f"{self!r} is not normalised in y and cannot {what} {self.base!r}.")
