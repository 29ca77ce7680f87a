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

__all__ = ["TheorySource", "theory_curve"]

_BLOCK = 64


@dataclass(frozen=True)
class TheorySource:
    """What a curve by theory was made of.

    Parameters
    ----------
    inputs : PoolInputs
    scores : Scores
    solutions : sequence of lists of SizeSolution
        For each latent function, the averages at each size.
    theory : str
    tol, max_iter
        Of the theory's equations.
    """

    inputs: PoolInputs
    scores: Scores
    solutions: Sequence[Sequence[SizeSolution]]
    theory: str
    tol: float
    max_iter: int

    def held_out(self, k: int) -> list[Averages]:
        """Return the held-out averages of all latent functions at one size."""
        return [along[k].held_out for along in self.solutions]

    def predict(self, X: Any) -> tuple[Array, Array]:
        """Return mean and variance over training sets of the prediction at new inputs."""
        each = zip(self.inputs.pools, self.solutions, self.inputs.covariances(X), strict=True)
        averages = [
            [solution.at(pool.prior, *covariances) for solution in along]
            for pool, along, covariances in each
        ]
        return self.in_units(averages)

    def in_units(self, averages: Sequence[Sequence[Averages]]) -> tuple[Array, Array]:
        """Return predictions' means and variances of shape (sizes, n), or (sizes, n, classes)."""
        mean = np.stack([[c.R for c in along] for along in averages], axis=2)
        variance = np.stack([[c.V for c in along] for along in averages], axis=2)
        if len(averages) == 1:
            mean, variance = mean[:, :, 0], variance[:, :, 0]
        return mean * self.scores.scale + self.scores.origin, variance * self.scores.scale**2

    def measure(self, g: Measure) -> Array:
        """Return averages of g(prediction, y) over training sets, at each size and example."""
        return np.stack([self._measure(g, k) for k in range(len(self.solutions[0]))])

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
    """Return the curve that a theory predicts.

    Parameters
    ----------
    source : TheorySource
    sizes : array of shape (k,)
    resampling : str
    """
    scores, share = source.scores, source.inputs.share
    by_size = list(zip(*source.solutions, strict=True))
    found = [scores.held_out(source.held_out(k)) for k in range(len(sizes))]
    error, log_loss, brier, support, doubt = (
        None if part[0] is None else np.stack(part) for part in zip(*found, strict=True)
    )
    mean, variance = source.in_units([[s.held_out for s in along] for along in source.solutions])
    G = np.array([np.mean([s.pool.G @ share for s in of_size]) for of_size in by_size])
    return LearningCurve(
        **source.inputs.about_curve(),
        **solved(by_size),
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
    share, scores = source.inputs.share, source.scores
    return np.stack(
        [
            scores.pool_error(
                [along[k].pool for along in source.solutions],
                source.held_out(k),
                LAWS[resampling](size * share),
            )
            for k, size in enumerate(sizes)
        ]
    )
