"""What changes if the kernel is tuned on each training set instead of once on all rows."""

from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.resampling.labels import ClassAverages, helmert, trace, transposed
from cavity.resampling.pool import Averages, mixed

_MOST = 2.0
"""Largest variance of a prediction through the kernel, in units of its posterior variance."""


class TuningEffect(NamedTuple):
    """How a kernel that is tuned on each training set changes held-out averages.

    A kernel tuned on all rows has seen the held-out ones: without example i its prediction moves by
    ``shift`` and its variance by ``growth``. And a kernel tuned on fewer rows scatters more: along
    direction j, with λ_j the information of all rows in units of the prior, a share r of the rows
    leaves a variance 1/(1 + r λ_j), which ``scatter`` turns into that of each prediction.
    """

    shift: Array
    """Change of each prediction, of shape (n,)."""
    growth: Array
    """Change of the log of each variance, noise included, of shape (n,)."""
    scatter: Array
    """Squared change of each prediction along each direction, of shape (n, k)."""
    information: Array
    """λ, of shape (k,)."""
    noise: float = 0.0
    """Noise in the variances that grow."""
    wider: float = 1.0
    """By how much the kernel's variance exceeds that of the first order."""

    def part(self, rows: Any) -> "TuningEffect":
        """Return the effect on some of the rows."""
        shift, growth, scatter = self.shift[rows], self.growth[rows], self.scatter[rows]
        return self._replace(shift=shift, growth=growth, scatter=scatter)

    def at(self, place: Array) -> "TuningEffect":
        """Return the effect on a table whose rows are at these places; none where that is −1."""
        found, absent = self.part(place), place < 0
        found.shift[absent], found.growth[absent], found.scatter[absent] = 0.0, 0.0, 0.0
        return found

    def __call__(self, c: Averages, share: float) -> Averages:
        """Return held-out averages over training sets with this share of the rows."""
        if c.parts:
            return mixed(tuple((p, self(part, share)) for p, part in c.parts))
        scatter = self.wider * scattered(self.information, share)
        # A first order in θ says nothing about moves far larger than what is uncertain anyway.
        more = np.minimum(self.scatter @ scatter, _MOST * c.G)
        floor = np.finfo(float).eps * c.G
        G = np.maximum((c.G + self.noise) * np.exp(self.growth) - self.noise, floor)
        chi = None if c.chi is None else c.chi * G / c.G
        return Averages(G, c.R + self.shift, c.V + more, chi)


class ClassTuning(NamedTuple):
    """The same for the latent values of several classes; ``shift`` has a column for each."""

    shift: Array
    growth: Array
    """Matrices M that take each covariance G to M G M', of shape (n, C, C)."""
    scatter: Array
    """Products of the changes of the classes' predictions, of shape (n, k, C, C)."""
    information: Array
    wider: float = 1.0

    @classmethod
    def between(
        cls, here: Any, there: Any, scatter: Array, information: Array, wider: float
    ) -> "ClassTuning":
        """Return the effect that takes cavities here to those there, but for what is in common."""
        H = helmert(here.mean.shape[1])
        before, after = (np.linalg.cholesky(H.T @ q.covariance @ H) for q in (here, there))
        growth = H @ after @ np.linalg.solve(before, H.T) + 1.0 / len(H)
        return cls(there.mean - here.mean, growth, scatter, information, wider)

    def part(self, rows: Any) -> "ClassTuning":
        """Return the effect on some of the rows."""
        shift, growth, scatter = self.shift[rows], self.growth[rows], self.scatter[rows]
        return self._replace(shift=shift, growth=growth, scatter=scatter)

    def at(self, place: Array) -> "ClassTuning":
        """Return the effect on a table whose rows are at these places; none where that is −1."""
        found, absent = self.part(place), place < 0
        found.shift[absent], found.scatter[absent] = 0.0, 0.0
        found.growth[absent] = np.eye(self.growth.shape[-1])
        return found

    def __call__(self, c: ClassAverages, share: float) -> ClassAverages:
        """Return held-out averages over training sets with this share of the rows."""
        scatter = self.wider * scattered(self.information, share)
        more = np.einsum("nkab,k->nab", self.scatter, scatter)
        # What all classes have in common is no limit.
        most = _MOST * (trace(c.G) - np.mean(np.sum(c.G, axis=2), axis=1))
        more *= (most / np.maximum(trace(more), most))[:, None, None]
        chi = None if c.chi is None else self._grown(c.chi)
        return ClassAverages(self._grown(c.G), c.R + self.shift, c.V + more, chi)

    def _grown(self, G: Array) -> Array:
        return np.asarray(self.growth @ G @ transposed(self.growth))


def scattered(information: Array, share: float) -> Array:
    """Return how much less a share of the rows tells about each direction than all of them."""
    more = 1.0 / (1.0 + share * information) - 1.0 / (1.0 + information)
    return np.maximum(more, 0.0)
