"""Scores of classes in an order, which one latent function decides, averaged over training sets."""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from scipy.special import ndtri

from cavity.arrays import Array
from cavity.resampling.classes import SeveralClassScores
from cavity.resampling.pool import Averages, Targets
from cavity.resampling.scores import NODES, Losses, class_scores, drawn
from cavity.resampling.theories import average_over_fields
from cavity.sites import Marginals

# The share of fields that lead to a wrong class is known to one in twice as many.
_FIELDS = 500
# The error on the pool is also averaged over examples: these are enough.
_FEWER_FIELDS = 100


class OrderedScores(SeveralClassScores):
    """Scores of the classes of a likelihood with thresholds; targets are codes 0, 1, ...."""

    def __init__(self, pools: Sequence[Targets]) -> None:
        [pool] = pools
        n_classes = pool.likelihood.bare.n_classes
        assert n_classes is not None
        self._labels = np.arange(float(n_classes))
        super().__init__(pools, pool.y.astype(int), n_classes)

    def held_out(self, averages: Sequence[Averages]) -> Losses:
        """Return errors, log losses and Brier scores."""
        [c], [pool] = averages, self.pools

        def losses(h: Array) -> tuple[Array, Array]:
            found = self.losses([Marginals(h, c.G)])
            return found.log_loss, np.asarray(found.brier)

        log_loss, brier = average_over_fields(losses, c.R, c.V, NODES)
        support = pool.likelihood.tilted(pool.y, Marginals(c.R, c.G + c.V)).log_z
        return Losses(self._errors(c.fields(_even(_FIELDS))), log_loss, brier, support)

    def wrong(self, averages: Sequence[Averages], occupations: Array) -> Iterator[Array]:
        """Yield the share of fields that lead to a wrong class."""
        [c], [pool] = averages, self.pools
        fields = c.fields(_even(_FEWER_FIELDS))
        yield from map(self._errors, chain([fields], drawn(pool, c, fields, occupations)))

    def log_proba(self, latent: Sequence[Marginals]) -> Array:
        """Return the log probability of each class."""
        [q], [pool] = latent, self.pools
        each = [pool.likelihood.tilted(code, q).log_z for code in self._labels]
        return np.stack(each, axis=-1)

    def _errors(self, q: Marginals) -> Array:
        return np.mean(class_scores(self.log_proba([q]), self.truth).error, axis=0)


def _even(count: int) -> Array:
    """Return values of a standard normal variable, each as probable as the others."""
    return ndtri((np.arange(count) + 0.5) / count)
