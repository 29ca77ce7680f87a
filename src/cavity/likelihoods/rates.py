"""What likelihoods with the mean e^f have in common."""

import numpy as np

from cavity.arrays import Array, namespace
from cavity.likelihoods.numerical import quiet
from cavity.sites import Marginals


def log_mean(y: Array, weight: Array, offset: Array | float = 0.0) -> float:
    """Return the log of Σ w y/Σ w e^offset; of no events at all, as of half a one."""
    total = float(np.sum(weight * y)) or 0.5
    return float(np.log(total) - np.log(np.sum(weight * np.exp(offset))))


def rate(f: Array) -> Array:
    """Return e^f, infinite where it is too large for a float."""
    with quiet():
        return namespace(f).exp(f)


def log_normal(q: Marginals, spread: float = 0.0) -> Marginals:
    """Return the mean of e^f and the variance of something of mean e^f and variance spread e^2f.

    That is r = E e^f = exp(m + v/2) and r² (e^v − 1 + spread e^v).
    """
    xp = namespace(q.mean)
    with quiet():
        r = xp.exp(q.mean + 0.5 * q.variance)
        share = xp.expm1(q.variance)
        if spread:
            share = share + spread * xp.exp(q.variance)
        # r² may underflow where the product does not, and e^v may overflow where r is zero.
        variance = xp.where(r > 0.0, r * (r * share), 0.0)
    return Marginals(r, variance)
