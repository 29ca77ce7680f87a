"""Scores of several classes whose latent values vary together, averaged over training sets."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.likelihoods.multinomial import class_log_proba
from cavity.resampling.classes import SeveralClassScores, averaged_losses
from cavity.resampling.label_sizes import ClassPool
from cavity.resampling.labels import (
    ClassAverages,
    RepeatedLabels,
    even_draws,
    helmert,
    times,
)
from cavity.resampling.scores import Losses, class_scores
from cavity.sites import ClassMarginals

_DRAWS = 128
# The error on the pool is also averaged over examples: these are enough.
_FEWER_DRAWS = 32
_TOL = 1e-3


class JointScores(SeveralClassScores):
    """Scores of classes whose latent values one model has in common: their fields correlate."""

    def __init__(self, pools: Sequence[ClassPool]) -> None:
        [pool] = pools
        super().__init__(pools, pool.codes, pool.n_classes)

    def held_out(self, averages: Sequence[ClassAverages]) -> Losses:
        """Return errors, log losses and Brier scores."""
        [c] = averages
        return averaged_losses(self.losses([c.fields(even_draws(self.several - 1, _DRAWS))]))

    def wrong(self, averages: Sequence[ClassAverages], occupations: Array) -> Iterator[Array]:
        """Yield the share of fields that lead to a wrong class."""
        [c], H = averages, helmert(self.several)
        q = c.fields(even_draws(self.several - 1, _FEWER_DRAWS))
        yield self._errors(q)
        excess = None if c.chi is None else H.T @ (c.chi - c.G) @ H
        repeats = RepeatedLabels(self.truth, self.several, occupations, _TOL)
        G = H.T @ c.G @ H
        for slope, curvature in repeats(ClassMarginals(q.mean @ H, G), excess):
            mean = q.mean + times(c.response @ H, slope)
            yield self._errors(ClassMarginals(mean, c.G + c.G @ (H @ curvature @ H.T) @ c.G))

    def log_proba(self, latent: Sequence[ClassMarginals]) -> Array:
        """Return normalised log probabilities."""
        [(mean, covariance)] = latent
        k = self.several
        flat = ClassMarginals(mean.reshape(-1, k), covariance.reshape(-1, k, k))
        return class_log_proba(flat, exact=False).reshape(mean.shape)

    @property
    def shifts(self) -> list[float]:
        """Nothing is added to the latent values of classes."""
        return [0.0]

    def predicted(
        self, by_size: Sequence[Sequence[ClassAverages]], shifts: Sequence[Any] | None = None
    ) -> tuple[Array, Array]:
        """Return predictions' means and variances, of shape (sizes, n, classes)."""
        mean = np.stack([c.R for [c] in by_size])
        return mean, np.stack([np.diagonal(c.V, axis1=-2, axis2=-1) for [c] in by_size])

    def _errors(self, q: ClassMarginals) -> Array:
        return np.mean(class_scores(self.log_proba([q]), self.truth).error, axis=0)
