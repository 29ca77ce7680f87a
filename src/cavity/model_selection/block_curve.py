"""What a learning curve of rows in blocks was computed from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cavity.arrays import Array, row_blocks
from cavity.model_selection.curve import Measure, PointScores, Source
from cavity.model_selection.forecast import ErrorTrend, sampling_error_of
from cavity.model_selection.instability import instability_of
from cavity.model_selection.pools import inputs_of, shifts_of
from cavity.model_selection.suspects import most_doubtful
from cavity.model_selection.trends import bootstrapped, solved_trend, trend_of
from cavity.resampling import (
    Averages,
    BlockSolution,
    RowScores,
    Scores,
    Tally,
    mixtures,
    row_averages,
    row_scores,
    tally,
)
from cavity.resampling.scores import field_grid

_NEW = 4096
"""New inputs that are predicted together."""
_FIELDS = 64


@dataclass(frozen=True)
class BlockSource(Source):
    """What a curve by theory was computed from, if rows are in blocks.

    The averages of the rows stay with them: ``solutions`` are their names, and m × m matrices, of
    each size and latent function. ``solve`` finds them, from pool, sizes and law.
    """

    solve: Callable[..., list[BlockSolution]]
    solutions: Sequence[Sequence[BlockSolution]]

    @cached_property
    def tallies(self) -> list[Tally]:
        """Sums of the scores of all rows, for each size."""
        return [tally(self.inputs.score, self.inputs.pools, s) for s in self.solutions]

    def means(self) -> dict[str, Array]:
        """Return averages over training sets and rows, by name."""
        names = ["error", "log_loss", "brier", "pool_error", "variance"]
        columns = {name: [getattr(found, name) for found in self.tallies] for name in names}
        ours = ["test_error", "test_log_loss", "test_brier", "pool_error", "posterior_variance"]
        each = zip(ours, columns.values(), strict=True)
        return {name: np.array(values) for name, values in each if values[0] is not None}

    @cached_property
    def point_scores(self) -> PointScores:
        """Scores of every example at every size: six numbers, more with several classes."""
        each = [row_scores(self.inputs.score, self.inputs.pools, s) for s in self.solutions]
        parts = zip(*map(_points, each), strict=True)
        return PointScores(*(np.stack(part) for part in parts))

    def most_doubtful(self, k: int) -> tuple[Array, PointScores]:
        """Return the numbers of the most doubtful examples at the last size, and their scores."""
        inputs = self.inputs
        found = row_scores(inputs.score, inputs.pools, self.solutions[-1], k)
        order = most_doubtful(found.doubt, k)
        return found.place[order], PointScores(*(part[order] for part in _points(found)))

    def predict(self, X: Any, offset: Any = None) -> tuple[Array, Array]:
        """Return mean and variance over training sets of the prediction at new inputs."""
        seen = inputs_of(self.inputs.model, self.inputs.before, X)
        added = np.broadcast_to(0.0 if offset is None else offset, len(seen))
        parts = [self._predict(seen[i:j], added[i:j]) for i, j in row_blocks(len(seen), _NEW)]
        mean, variance = zip(*parts, strict=True)
        return np.concatenate(mean, axis=1), np.concatenate(variance, axis=1)

    def _predict(self, X: Any, offset: Array) -> tuple[Array, Array]:
        pools = self.inputs.pools
        about = [(p.prior.cross(X), p.prior.rule.diag(X) - p.noise) for p in pools]
        averages: list[list[Averages]] = [
            [s.averages.at(*new) for s, new in zip(of_size, about, strict=True)]
            for of_size in self.solutions
        ]
        scores: Scores = self.inputs.scores([np.ones(1)] * len(pools))
        return scores.predicted(averages, shifts_of(self.inputs.fitted, X, offset))

    def measure(self, g: Measure) -> Array:
        """Return averages of g(prediction, y) over training sets and examples, at each size."""
        about = self.inputs.score, self.inputs.pools
        each = (row_averages(*about, of_size) for of_size in self.solutions)
        return np.array([sum(measured(g, c.scores, c.held_out) @ c.share for c in e) for e in each])

    def trend(self, measure: str) -> ErrorTrend:
        """Return the held-out curve of the pool, drawn without replacement.

        It ends at the leave-one-out, from which forecasts start.
        """
        sizes, tallies, begin = self._trends
        means = np.array([getattr(found, measure) for found in tallies])
        square = tallies[-1].squares[measure == "log_loss"]
        is_class = self.inputs.classes is not None
        effective = 1.0 / float(np.sum(self.inputs.share**2))
        rate = is_class and measure == "error"
        spread = sampling_error_of(means[-1], square - means[-1] ** 2, effective, rate=rate)
        return trend_of(sizes, means, spread, begin, measure, is_class=is_class)

    def instability(self, sizes: Array) -> Array:
        """Return how much each example's prediction varies over bootstrap samples, (sizes, n)."""
        return np.stack([self._instability(of_size) for of_size in bootstrapped(self, sizes)])

    def _instability(self, solutions: Sequence[BlockSolution]) -> Array:
        chunks = row_averages(self.inputs.score, self.inputs.pools, solutions)
        return np.concatenate([instability_of(c.scores, c.held_out) for c in chunks])

    @cached_property
    def _trends(self) -> tuple[Array, list[Tally], int]:
        """Sizes, sums of the scores at each size, and where the fit of the shape begins."""
        sizes, solutions, begin = solved_trend(self)
        return sizes, [tally(self.inputs.score, self.inputs.pools, s) for s in solutions], begin


def _points(found: RowScores) -> PointScores:
    error, log_loss, _, support = found.losses
    return PointScores(error, log_loss, support, found.doubt, found.mean, found.variance)


def measured(g: Measure, scores: Scores, averages: Sequence[Averages]) -> Array:
    """Return the average of g(prediction, y) over training sets, at each example."""
    x, weight = field_grid()
    total = np.zeros(len(scores.truth))
    for i, j in row_blocks(len(x), _FIELDS):
        for share, parts in mixtures(averages):
            latent = [c.fields(x[i:j]) for c in parts]
            total += share * (weight[i:j] @ scores.measure(g, latent))
    return total
