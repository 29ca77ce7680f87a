"""Functions of several classes, drawn from their joint posterior.

A draw from the prior becomes one from the posterior if what the sites would have said about it is
replaced by what they say (Matheron): f + K α(ν − T f + noise of the sites), with α linear in its
sources.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cavity.arrays import Array, semidefinite_factor


def draw_classes(
    K: Array,
    K_star: Array,
    prior: Array,
    n_classes: int,
    weights: Callable[[Array], Array],
    count: int,
    rng: Any,
) -> Array:
    """Draw each class's function at new inputs; of shape (C, count, m).

    Parameters
    ----------
    K, K_star, prior : arrays of shape (n, n), (m, n) and (m, m)
        Prior covariances of the rows, of new inputs with them, and of new inputs.
    n_classes : int
    weights : callable
        From class values of the rows (n, C), as drawn from the prior, to the α of the sources that
        turn this draw into one from the posterior.
    count : int
    rng : numpy.random.Generator or RandomState
    """
    n, joint = len(K), np.block([[K, K_star.T], [K_star, prior]])
    F = covariance_factor(joint, joint)
    found = np.empty((n_classes, count, len(prior)))
    for k in range(count):
        f = F @ rng.standard_normal((F.shape[1], n_classes))
        found[:, k] = (f[n:] + K_star @ weights(f[:n])).T
    return found


def covariance_factor(C: Array, prior: Array) -> Array:
    """Return F with F F' = C, a covariance that is what is left of that of a prior."""
    # What is smaller is rounding error of the factorisation, or of a difference of matrices.
    tol = len(C) * np.finfo(float).eps * float(np.max(np.diagonal(prior)))
    return semidefinite_factor(C, tol)
