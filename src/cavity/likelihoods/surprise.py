"""How surprising a target is, on one scale for all likelihoods."""

import numpy as np
from scipy.special import ndtri_exp

from cavity.arrays import Array, to_numpy
from cavity.likelihoods.base import Likelihood
from cavity.likelihoods.numerical import averages
from cavity.sites import Marginals

# Below this an upper tail is lost in the rounding of one minus it.
_LOST = 1e-9
_SMALLEST = -1e8


def surprise(lik: Likelihood, y: Array, q: Marginals) -> Array:
    """Return by how many standard deviations a Gaussian target as unlikely would be off.

    That is |Φ⁻¹(p)| with p = P(Y < y) + ½ P(Y = y) under a Gaussian over f; the second part is
    zero unless single values have a probability, as counts and the limits of what is cut off have.

    Parameters
    ----------
    lik : Likelihood
        One with a ``cdf``.
    y : array
        Targets.
    q : Marginals
        Gaussians over f, such as what all other rows say.

    Returns
    -------
    array

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.likelihoods import Gaussian, Poisson, surprise
    >>> from cavity.sites import Marginals
    >>> q = Marginals(np.array([1.0, 1.0]), np.array([3.0, 3.0]))
    >>> surprise(Gaussian(1.0), np.array([1.0, 7.0]), q)
    array([0., 3.])
    >>> surprise(Poisson(), np.array([3.0, 900.0]), q).round(1)
    array([0.1, 3.3])
    """
    log_z, d1, d2 = (to_numpy(part) for part in lik.tilted(y, q))
    if lik.quadratic:
        return np.asarray(np.abs(d1) / np.sqrt(-d2))
    base = lik.bare
    atom = np.broadcast_to(base.has_mass(y), log_z.shape)
    p = cumulative(lik, y, q) - np.where(atom, 0.5 * np.exp(log_z), 0.0)
    with np.errstate(divide="ignore"):
        lower, upper = np.log(np.maximum(p, 0.0)), np.log1p(-np.minimum(p, 1.0))
        far = np.minimum(_log_tail(base, to_numpy(y), log_z, d1, atom), np.log(_LOST))
    log_tail = np.where(p < 0.5, lower, np.where(1.0 - p > _LOST, upper, far))
    # What is less likely than the smallest number that a float can hold is all alike.
    return np.asarray(-ndtri_exp(np.clip(log_tail, _SMALLEST, np.log(0.5))))


def cumulative(lik: Likelihood, y: Array, q: Marginals) -> Array:
    """Return P(Y ≤ y) under a Gaussian over f.

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.likelihoods import Gaussian, cumulative
    >>> from cavity.sites import Marginals
    >>> cumulative(Gaussian(1.0), np.array([1.0]), Marginals(np.array([1.0]), np.array([3.0])))
    array([0.5])
    """
    base, at = lik.bare, Marginals(q.mean + lik.shift, q.variance)
    [found] = averages(lambda f: [base.cdf(y, f)], at)
    return np.asarray(to_numpy(found))


def _log_tail(base: Likelihood, y: Array, log_z: Array, d1: Array, atom: Array) -> Array:
    """Return the log of a small tail above y, from the density there.

    A density that falls at the rate d has about p/d beyond it. Its rate in y is that in the mean
    of f, or in log y where the mean is e^f; of counts it is the fall from one to the next.
    """
    rate = np.abs(d1)
    if base.support == "counts":
        fall = -np.expm1(-rate / np.maximum(y, 1.0))
        return np.asarray(log_z + np.log(1.0 / fall - 0.5))
    unit = np.log(y) if base.support == "positive" else 0.0
    return np.where(atom, log_z - np.log(2.0), log_z + unit - np.log(rate))
