"""A likelihood outside the package: counts."""

from dataclasses import dataclass

from scipy.special import gammaln

from cavity.arrays import namespace, same_kind, to_numpy
from cavity.likelihoods import Likelihood


@dataclass(frozen=True)
class ToyCounts(Likelihood, name="toy_counts"):
    """Poisson with rate r = e^(f/4), p(y|f) = r^y e^−r/y!.

    The quarter keeps E r within what can be factored, under the widest prior of the tests.
    """

    support = "counts"

    def log_prob(self, y, f):
        return y * f / 4.0 - self._rate(f) - same_kind(gammaln(to_numpy(y) + 1.0), f)

    def derivatives(self, y, f):
        r = self._rate(f)
        return (y - r) / 4.0, -r / 16.0, -r / 64.0

    def sample(self, f, rng):
        return same_kind(rng.poisson(to_numpy(self._rate(f))).astype(float), f)

    def _rate(self, f):
        return namespace(f).exp(f / 4.0)
