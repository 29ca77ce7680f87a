"""A learning curve by theory, and what more the theory says about its pool."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.model_selection.curve import LearningCurve, Measure, solved
from cavity.model_selection.forecast import (
    ErrorTrend,
    calibrated,
    forecast_sizes,
    reconcile,
    sampling_error,
)
from cavity.model_selection.pools import PoolInputs
from cavity.resampling import LAWS, Averages, Scores, SizeSolution, solve_sizes
from cavity.resampling.scores import PointScores, field_grid

_BLOCK = 64


@dataclass(frozen=True)
class TheorySource:
    """What a curve by theory was made of.

    ``solutions`` are, for each size, the averages of every latent function.
    """

    inputs: PoolInputs
    scores: Scores
    solutions: Sequence[Sequence[SizeSolution]]
    theory: str
    tol: float
    max_iter: int

    def held_out(self, k: int) -> list[Averages]:
        """Return the held-out averages of all latent functions at one size."""
        return [solution.held_out for solution in self.solutions[k]]

    def predict(self, X: Any) -> tuple[Array, Array]:
        """Return mean and variance over training sets of the prediction at new inputs."""
        places = list(zip(self.inputs.pools, self.inputs.covariances(X), strict=True))

        def at(solutions: Sequence[SizeSolution]) -> list[Averages]:
            each = zip(solutions, places, strict=True)
            return [solution.at(pool.prior, *given) for solution, (pool, given) in each]

        return self.scores.predicted([at(of_size) for of_size in self.solutions])

    def measure(self, g: Measure) -> Array:
        """Return averages of g(prediction, y) over training sets, at each size and example."""
        return np.stack([self._measure(g, k) for k in range(len(self.solutions))])

    def _measure(self, g: Measure, k: int) -> Array:
        x, weight = field_grid()
        total = np.zeros(len(self.inputs.share))
        for i in range(0, len(x), _BLOCK):
            p = self.scores.predictions(self.held_out(k), x[i : i + _BLOCK])
            values = np.broadcast_to(g(p, np.broadcast_to(self.scores.truth, p.shape)), p.shape)
            total += weight[i : i + _BLOCK] @ values
        return total

    def trend(self, measure: str) -> ErrorTrend:
        """Return the held-out curve up to most of the pool, drawn without replacement.

        It is meant for the population, not for the pool: the error is a mean of what the labels say
        and of what the model expects of itself, and so may differ from the curve's by less than the
        sampling error. That the mean is less uncertain than the labels is not counted.
        """
        sizes, held_out, expected = self._trends
        points, share = np.stack([getattr(found, measure) for found in held_out]), self.inputs.share
        is_class = self.scores.task == "classification"
        spread = sampling_error(points[-1], share, rate=is_class and measure == "error")
        means = points @ share
        if measure == "error":
            means = reconcile(means, expected, spread)
        return ErrorTrend(sizes, means, spread, is_class or measure == "error")

    @cached_property
    def _trends(self) -> tuple[Array, list[PointScores], Array]:
        """Sizes, scores of each example, and the average error expected, at each size."""
        law = "bootstrap" if self.theory == "variational" else "subsample"
        # Without replacement no example can be drawn more than once.
        sizes = forecast_sizes(int(1.0 / np.max(self.inputs.share) + 1e-9))
        solutions = [
            solve_sizes(pool, sizes, law, self.theory, tol=self.tol, max_iter=self.max_iter)
            for pool in self.inputs.pools
        ]
        averages = [[s.held_out for s in of_size] for of_size in zip(*solutions, strict=True)]
        held_out = [self.scores.held_out(c) for c in averages]
        return sizes, held_out, self._expected(averages, held_out)

    def _expected(
        self, averages: Sequence[Sequence[Averages]], held_out: Sequence[PointScores]
    ) -> Array:
        """Return the error that the model expects of itself at each size, averaged."""
        share = self.inputs.share
        found = [self.scores.expected(c) for c in averages]
        error = np.array([own.error @ share for own in found])
        if self.scores.task == "regression":
            return error
        log_loss = np.array([scores.log_loss @ share for scores in held_out])
        return calibrated(error, np.array([own.log_loss @ share for own in found]), log_loss)


def theory_curve(source: TheorySource, sizes: Array, resampling: str) -> LearningCurve:
    """Return the curve that a theory predicts."""
    scores, share = source.scores, source.inputs.share
    held_out = [source.held_out(k) for k in range(len(sizes))]
    found = [scores.held_out(averages) for averages in held_out]
    error, log_loss, brier, support, doubt = (
        None if part[0] is None else np.stack(part) for part in zip(*found, strict=True)
    )
    mean, variance = scores.predicted(held_out)
    G = np.array([np.mean([s.pool.G @ share for s in of_size]) for of_size in source.solutions])
    return LearningCurve(
        **source.inputs.about_curve(),
        **solved(source.solutions),
        resampling=resampling,
        theory=source.theory,
        train_sizes=sizes,
        test_error=error @ share,
        test_log_loss=log_loss @ share,
        test_brier=None if brier is None else brier @ share,
        pool_error=_pool_errors(source, sizes, resampling) @ share,
        posterior_variance=G * scores.scale**2,
        point_error=error,
        point_log_loss=log_loss,
        point_mean=mean,
        point_variance=variance,
        point_support=support,
        point_doubt=doubt,
        source=source,
    )


def _pool_errors(source: TheorySource, sizes: Array, resampling: str) -> Array:
    """Return each example's expected error, drawn or not, at each size."""
    found = []
    for k, size in enumerate(sizes):
        pool = [solution.pool for solution in source.solutions[k]]
        occupancy = LAWS[resampling](size * source.inputs.share)
        found.append(source.scores.pool_error(pool, source.held_out(k), occupancy))
    return np.stack(found)
