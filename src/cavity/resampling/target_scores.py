"""Scores of targets that are numbers, averaged over training sets."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp

from cavity.arrays import Array
from cavity.likelihoods import surprise
from cavity.resampling.pool import Averages, Targets
from cavity.resampling.scores import LARGEST_TARGET, NODES, Losses, Scores, drawn, target_scores
from cavity.resampling.theories import average_over_fields
from cavity.sites import Marginals


class RegressionScores(Scores):
    """Scores of a target in its units: it is origin + scale × the pool's y.

    The prediction is E[y]. Under a Gaussian likelihood that is the latent value, of which two
    moments are enough; else it is a function of the field, which is averaged over.
    """

    task = "regression"

    def __init__(self, pools: Sequence[Targets], scale: float = 1.0, origin: float = 0.0) -> None:
        super().__init__(pools, origin + scale * pools[0].y)
        self.scale, self.origin = scale, origin

    def held_out(self, averages: Sequence[Averages]) -> Losses:
        """Return squared errors and negative log predictive densities."""
        [c], unit = averages, np.log(self.scale)
        shares, parts = zip(*c.mixture, strict=True)
        log_losses, densities = zip(*map(self._log_scores, parts), strict=True)
        log_loss = sum(p * loss for p, loss in zip(shares, log_losses, strict=True))
        density = logsumexp(densities, axis=0, b=shares)
        return Losses(self._squares(c), log_loss + unit, None, density - unit)

    def _log_scores(self, c: Averages) -> tuple[Array, Array]:
        """Return average negative log density and log average density, in the pool's units."""
        [pool] = self.pools

        def loss(h: Array) -> tuple[Array]:
            return (-pool.likelihood.tilted(pool.y, Marginals(h, c.G)).log_z,)

        density = pool.likelihood.tilted(pool.y, Marginals(c.R, c.G + c.V)).log_z
        return average_over_fields(loss, c.R, c.V, NODES)[0], density

    def _squares(self, c: Averages) -> Array:
        """Return average squared errors."""
        [pool] = self.pools
        if pool.likelihood.quadratic:
            return self.scale**2 * ((c.R + pool.likelihood.shift - pool.y) ** 2 + c.V)
        return np.asarray(sum(p * self._average(part, self._square)[0] for p, part in c.mixture))

    def _square(self, q: Marginals) -> tuple[Array]:
        return ((self.prediction([q]) - self.truth) ** 2,)

    def _average(self, c: Averages, what: Any) -> list[Array]:
        """Return averages of what is given of marginals, over their means."""
        return average_over_fields(lambda h: what(Marginals(h, c.G)), c.R, c.V, NODES)

    def doubt(self, averages: Sequence[Averages], support: Array) -> Array:
        """Return how surprising each target is: in standard deviations, if it were Gaussian."""
        [c], [pool] = averages, self.pools
        return surprise(pool.likelihood, pool.y, Marginals(c.R, c.G + c.V))

    def pool_error(self, pool: Sequence[Averages], /, *drawn_from: Any) -> Array:
        """Return squared errors; of other than Gaussian targets for each number of draws."""
        if self.pools[0].likelihood.quadratic:
            return self._squares(pool[0])
        held_out, occupancy = drawn_from
        p = occupancy.probability
        each = zip([1.0 - p.sum(axis=0), *p], self._drawn(held_out[0], occupancy.s), strict=True)
        return np.asarray(sum(p_s * error for p_s, error in each))

    def _drawn(self, c: Averages, occupations: Array) -> Iterator[Array]:
        """Yield the squared error where an example is drawn 0, 1, 2, ... times."""
        yield self._squares(c)

        def errors(h: Array) -> tuple[Array, ...]:
            each = drawn(self.pools[0], c, Marginals(h, c.G), occupations)
            return tuple(self._square(q)[0] for q in each)

        yield from average_over_fields(errors, c.R, c.V, NODES)

    def losses(self, latent: Sequence[Marginals]) -> Losses:
        """Return squared errors and negative log predictive densities."""
        [q], [pool], mean = latent, self.pools, self.prediction(latent)
        if pool.likelihood.quadratic:
            variance = (q.variance + pool.likelihood.noise_variance) * self.scale**2
            return target_scores(mean, variance, self.truth)
        log_p = pool.likelihood.tilted(pool.y, q).log_z - np.log(self.scale)
        return Losses((mean - self.truth) ** 2, -log_p)

    def prediction(self, latent: Sequence[Marginals]) -> Array:
        """Return predicted targets."""
        [q] = latent
        return self._expected(q, self.shifts[0])

    def _expected(self, q: Marginals, shift: Any) -> Array:
        """Return E[y], in the user's units."""
        base, at = self.pools[0].likelihood.bare, Marginals(q.mean + shift, q.variance)
        # Of few rows it may be beyond all numbers; what asks for its spread squares the squares.
        mean = at.mean if base.quadratic else np.minimum(base.response(at).mean, LARGEST_TARGET)
        return np.asarray(self.origin + self.scale * mean)

    def predicted(
        self, by_size: Sequence[Sequence[Averages]], shifts: Sequence[Any] | None = None
    ) -> tuple[Array, Array]:
        """Return the means and variances of E[y] over training sets, of shape (sizes, n)."""
        if self.pools[0].likelihood.quadratic:
            return super().predicted(by_size, shifts)
        shift = (self.shifts if shifts is None else shifts)[0]

        def both(q: Marginals) -> tuple[Array, Array]:
            mean = self._expected(q, shift)
            return mean, mean**2

        found = np.array([self._average(c, both) for [c] in by_size])
        return found[:, 0], np.maximum(found[:, 1] - found[:, 0] ** 2, 0.0)
