"""Which inputs to use as inducing points: a Cholesky factorisation with random pivots."""

from typing import NamedTuple

import numpy as np

from cavity.arrays import Array, invert_lower, matmul, pivots
from cavity.priors.base import KernelRule

_BLOCK = 64
"""Pivots that are drawn at a time: one draw each would take a pass over the table for every one."""
_NOTHING = 1e-12
"""Share of the largest variance below which nothing is left to explain."""
_STALLED = 1e-3
"""Of a block of pivots, those to whose variance the others leave less than this share can wait."""


class Points(NamedTuple):
    """Inducing points, the most important first.

    Any first part of them is what a smaller number of points would have been.
    """

    Z: Array
    left: Array
    """Share of the table's prior variance that is left over by the first 1, 2, ... points."""


def choose_points(rule: KernelRule, X: Array, m: int, rng: np.random.Generator) -> Points:
    """Draw inducing points from the rows of a table, each where the others leave variance over.

    A pivot is drawn with probability proportional to the variance that the pivots before it leave
    (Chen, Epperly, Tropp and Webber, "Randomly pivoted Cholesky", 2025), in blocks. There may be
    fewer than m points, if the kernel has no more to explain.

    Parameters
    ----------
    rule : KernelRule
    X : array of shape (n, d)
        The table, or a random part of it.
    m : int
    rng : numpy.random.Generator

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity.kernels import rule
    >>> from cavity.priors import choose_points
    >>> X = np.linspace(0.0, 10.0, 500)[:, None]
    >>> points = choose_points(rule(RBF(1.0)), X, 20, np.random.default_rng(0))
    >>> points.Z.shape, bool(points.left[-1] < 0.01 < points.left[2])
    ((20, 1), True)
    """
    prior = np.asarray(rule.diag(X) - rule.noise(X), dtype=float)
    whole, rest = float(np.sum(prior)), prior.copy()
    F, chosen, left = np.zeros((len(X), m)), np.empty(0, dtype=int), []
    while len(chosen) < m and np.max(rest) > _NOTHING * np.max(prior):
        new = _draw(rest, min(_BLOCK, m - len(chosen)), rng)
        T, kept = _columns(rule, X, F[:, : len(chosen)], new)
        place = slice(len(chosen), len(chosen) + len(kept))
        F[:, place] = T
        explained = np.cumsum(np.sum(T * T, axis=0))
        left += ((np.sum(rest) - explained) / whole).tolist()
        rest = np.maximum(rest - np.sum(T * T, axis=1), 0.0)
        # A chosen row has nothing left, whatever rounding says.
        rest[kept] = 0.0
        chosen = np.concatenate([chosen, kept])
    return Points(X[chosen], np.maximum(left, 0.0))


def _draw(rest: Array, count: int, rng: np.random.Generator) -> Array:
    """Draw different rows, with probabilities proportional to what is left over at each."""
    some = int(np.count_nonzero(rest))
    return rng.choice(len(rest), min(count, some), replace=False, p=rest / np.sum(rest))


def _columns(rule: KernelRule, X: Array, F: Array, new: Array) -> tuple[Array, Array]:
    """Return the columns of the factor that belong to new pivots, and those that were kept."""
    G = rule.matrix(X, X[new]) - matmul(F, F[new].T)
    H = G[new]
    L, order = pivots(0.5 * (H + H.T), _STALLED * float(np.max(np.diagonal(H))))
    return matmul(G[:, order], invert_lower(L).T), new[order]
