"""How many targets are outliers, and which, from how far they are off.

Left-out errors in units of their standard deviations are a mixture. Most are s times a Student t
with five degrees of freedom: s is less than one if outliers have made the model expect larger
errors, and predictions near an outlier are off more often than a normal distribution allows for.
With probability ε a target is an outlier, whose error is at least four times as large: normal, but
for one in twenty with heavy tails, so that nothing is too far off. The errors tell of ε, s and the
size together; everything here is an average over them.
"""

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from cavity.arrays import Array
from cavity.model_selection.label_noise import LabelNoise

_RATES = 0.5 * (np.arange(40) + 0.5) / 40
_SCALES = np.geomspace(0.3, 2.0, 30)
"""Of s, in units of what the median error says."""
_SIZES = np.geomspace(4.0, 100.0, 12)
"""Of the errors of outliers, in units of s."""
_USUAL, _HEAVY = 5.0, 2.0
"""Degrees of freedom of usual errors, and of some outliers."""
_SOME = 0.05
_FARTHEST, _STEP = 1000.0, 0.01
"""Errors are cut off there, and rounded: a large table has few different ones."""
_NORMAL = 0.6745
"""The median size of a standard normal error."""
_NOTHING = 1e-5


def outliers(errors: Array) -> LabelNoise:
    """Return which targets are outliers, given left-out errors in standard deviations.

    Parameters
    ----------
    errors : array of shape (n,)
        Of any sign.
    """
    size = np.abs(errors)
    unit = np.median(size) / _NORMAL
    if unit == 0.0:
        # Most targets are as predicted, without any error: every other one is an outlier.
        wrong = (size > 0.0).astype(float)
        return LabelNoise(wrong, np.ones(1), np.array([wrong.sum()]), np.zeros(1))
    rounded = np.round(np.minimum(size / unit, _FARTHEST) / _STEP) * _STEP
    z, place, copies = np.unique(rounded, return_inverse=True, return_counts=True)
    weight = _weights(z, copies)
    found, moments = np.zeros(len(z)), []
    for i, j, k in np.argwhere(weight > _NOTHING * weight.max()):
        usual, other = _parts(z, _SCALES[j], _SIZES[k])
        chance = _RATES[i] * other / (_RATES[i] * other + (1.0 - _RATES[i]) * usual)
        found += weight[i, j, k] * chance
        moments.append((weight[i, j, k], copies @ chance, copies @ (chance * (1.0 - chance))))
    shares, mean, variance = np.array(moments).T
    return LabelNoise((found / shares.sum())[place], shares / shares.sum(), mean, variance)


def _weights(z: Array, copies: Array) -> Array:
    """Return the posterior of ε, s and the size of outliers on a grid."""
    found = np.empty((len(_RATES), len(_SCALES), len(_SIZES)))
    for j, s in enumerate(_SCALES):
        for k, size in enumerate(_SIZES):
            usual, other = _parts(z, s, size)
            both = _RATES[:, None] * other + (1.0 - _RATES[:, None]) * usual
            found[:, j, k] = np.log(both) @ copies
    weight = np.exp(found - found.max())
    return np.asarray(weight / weight.sum())


def _parts(z: Array, s: float, size: float) -> tuple[Array, Array]:
    """Return the densities of usual errors and of outliers."""
    wide = s * size
    other = (1.0 - _SOME) * norm.pdf(z, scale=wide) + _SOME * student.pdf(z, _HEAVY, scale=wide)
    return student.pdf(z, _USUAL, scale=s), other
