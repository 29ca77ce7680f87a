"""What likelihoods with the mean e^f have in common."""

import numpy as np

from cavity.arrays import Array, namespace, to_numpy
from cavity.likelihoods.base import Likelihood
from cavity.likelihoods.numerical import quiet
from cavity.sites import Marginals

_NORMAL = 1e15
"""Beyond it a Poisson's skewness is below 1e-7, and NumPy soon has no draws."""


class LogLink(Likelihood):
    """A likelihood whose y have the mean e^f."""

    def mean(self, f: Array) -> Array:
        """Return e^f."""
        return rate(f)

    def response(self, q: Marginals) -> Marginals:
        """Return the mean e^{m + v/2} of y, and its variance."""
        log_mean, log_deviation = self.log_response(q)
        return Marginals(rate(log_mean), rate(2.0 * log_deviation))

    def level(self, y: Array, weight: Array, offset: Array | float = 0.0) -> float:
        """Return the log of Σ w y/Σ w e^offset; of no events at all, as of half a one."""
        total = float(np.sum(weight * y)) or 0.5
        return float(np.log(total) - np.log(np.sum(weight * np.exp(offset))))


def rate(f: Array) -> Array:
    """Return e^f, infinite where it is too large for a float."""
    with quiet():
        return namespace(f).exp(f)


def log_moments(q: Marginals, spread: float = 0.0, *, counted: bool = False) -> tuple[Array, Array]:
    """Return the logs of mean and standard deviation of something of mean e^f.

    Its variance is spread e^2f, and e^f more if it is counted. The mean is r = E e^f = exp(m + v/2)
    and the variance r² (e^v − 1 + spread e^v), and r more: logs hold them where floats do not.
    """
    xp, log_r = namespace(q.mean), q.mean + 0.5 * q.variance
    with quiet():
        own = q.mean + q.variance + 0.5 * xp.log(spread - xp.expm1(-q.variance))
        return log_r, 0.5 * xp.logaddexp(log_r, 2.0 * own) if counted else own


def drawn_rates(f: Array, shape: float, rng: np.random.Generator) -> Array:
    """Draw from gamma distributions of mean e^f and this shape."""
    f = to_numpy(f)
    with quiet():
        return np.exp(f + np.log(rng.gamma(shape, 1.0, f.shape) / shape))


def drawn_counts(rates: Array, rng: np.random.Generator) -> Array:
    """Draw from Poisson distributions, by the normal one where the rate is enormous."""
    few = rates <= _NORMAL
    drawn = np.asarray(rng.poisson(np.where(few, rates, 0.0)), dtype=float)
    many = rates[~few]
    # As a product, so that an infinite rate stays infinite.
    drawn[~few] = np.round(many * (1.0 + rng.standard_normal(len(many)) / np.sqrt(many)))
    return drawn
