"""What refits to random training sets say about the examples that they were not fitted to."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.inference import Report
from cavity.model_selection.curve import Measure
from cavity.model_selection.forecast import ErrorTrend, sampling_error
from cavity.model_selection.pools import PoolInputs
from cavity.model_selection.refits import Draws, Refit
from cavity.resampling import Averages, Scores
from cavity.resampling.scores import Losses, class_scores, target_scores
from cavity.sites import Marginals


@dataclass(frozen=True)
class RefitSource:
    """What a simulated curve was made of; ``refits`` are those of each size."""

    inputs: PoolInputs
    scores: Scores
    law: Draws
    sizes: Array
    refits: Sequence[Sequence[Refit]]

    def predict(self, X: Any) -> tuple[Array, Array]:
        """Refuse: no fits are kept."""
        raise ValueError(
            "A simulation keeps no fits for predictions at new inputs: learning_curve() does that."
        )

    def measure(self, g: Measure) -> Array:
        """Return averages of g(prediction, y) over training sets, at each size and example."""
        if len(self.inputs.pools) > 1:
            raise ValueError(
                "measure() needs a prediction of one number: two classes or a real target, not "
                f"{len(self.inputs.pools)} classes."
            )
        return np.stack([self._measure(g, k) for k in range(len(self.sizes))])

    def _measure(self, g: Measure, k: int) -> Array:
        p, share = self._prediction(k), self.law.share
        values = np.broadcast_to(g(p, np.broadcast_to(self.scores.truth, p.shape)), p.shape)
        points = _by_example(values, self._absent(k))
        known = np.isfinite(points)
        # Examples that were never absent shall not change the average.
        return np.where(known, points, points[known] @ share[known] / np.sum(share[known]))

    def _prediction(self, k: int) -> Array:
        """Return probabilities of the second class, or targets, from each training set."""
        if self.inputs.classes is not None:
            return np.exp(self.inputs.log_proba(self._latent(k)))[:, :, 1]
        return self._latent(k)[0].mean * self.scores.scale + self.scores.origin

    def trend(self, measure: str) -> ErrorTrend:
        """Return the curve through the simulated sizes."""
        known = np.flatnonzero(np.isfinite(self.means["test_" + measure][0]))
        if len(known) < 3:
            raise ValueError(
                f"A forecast needs a curve of at least three sizes; this one has {len(known)}."
            )
        means, errors = (part[known] for part in self.means["test_" + measure])
        points, share = self.points(measure)[known[-1]], self.law.share
        seen = np.isfinite(points)
        weight = share[seen] / np.sum(share[seen])
        is_class = self.inputs.classes is not None
        of_pool = sampling_error(points[seen], weight, rate=is_class and measure == "error")
        spread = float(np.hypot(of_pool, errors[-1]))
        return ErrorTrend(self.sizes[known], means, spread, is_class or measure == "error")

    @property
    def reports(self) -> list[list[Report]]:
        """How each inference ended, for each size."""
        return [[r for refit in of_size for r in refit.reports] for of_size in self.refits]

    def _absent(self, k: int) -> Array:
        """Return for each training set of a size which examples are not in it."""
        return np.stack([refit.absent for refit in self.refits[k]])

    def _latent(self, k: int) -> list[Marginals]:
        """Return each latent function's marginals, of shape (training sets, n)."""
        means = np.stack([refit.mean for refit in self.refits[k]], axis=1)
        variances = np.stack([refit.variance for refit in self.refits[k]], axis=1)
        return [Marginals(*q) for q in zip(means, variances, strict=True)]

    @cached_property
    def _losses(self) -> list[Losses]:
        """Scores of each training set's predictions at each example, for each size."""
        return [self._score(k) for k in range(len(self.sizes))]

    def _score(self, k: int) -> Losses:
        inputs = self.inputs
        if inputs.classes is not None:
            return class_scores(inputs.log_proba(self._latent(k)), inputs.codes)
        [q], [pool] = self._latent(k), inputs.pools
        variance = (q.variance + pool.likelihood.noise_variance) * self.scores.scale**2
        return target_scores(self._prediction(k), variance, inputs.y)

    @cached_property
    def means(self) -> dict[str, tuple[Array, Array]]:
        """Averages over training sets and their standard errors, by name."""
        rows = [self._means(k) for k in range(len(self.sizes))]
        stacked = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        return {name: (pairs[:, 0], pairs[:, 1]) for name, pairs in stacked.items()}

    def _means(self, k: int) -> dict[str, tuple[float, float]]:
        losses, share = self._losses[k], self.law.share
        weight = self._absent(k) * self.law.weight(int(self.sizes[k]))
        repeats = {
            "test_" + name: _weighted_means(values, weight)
            for name, values in losses._asdict().items()
            if values is not None
        }
        G = np.mean([q.variance for q in self._latent(k)], axis=0)
        repeats["pool_error"] = losses.error @ share
        repeats["posterior_variance"] = G @ share * self.scores.scale**2
        return {name: self._mean(k, values) for name, values in repeats.items()}

    def _mean(self, k: int, repeats: Array) -> tuple[float, float]:
        """Return the average over training sets, with the standard error."""
        if len(repeats) < 2:
            return (float(repeats[0]) if len(repeats) else np.nan), np.nan
        error = np.std(repeats, ddof=1) / np.sqrt(len(repeats))
        if self.law.leaves_one_out(int(self.sizes[k])):
            # Drawn without replacement from the few that there are.
            error *= np.sqrt(1.0 - len(repeats) / len(self.law.members))
        return float(np.mean(repeats)), float(error)

    def points(self, measure: str) -> Array:
        """Return a held-out score of each example, of shape (sizes, n)."""
        parts = [getattr(losses, measure) for losses in self._losses]
        return np.stack([_by_example(values, self._absent(k)) for k, values in enumerate(parts)])

    @cached_property
    def averages(self) -> list[list[Averages]]:
        """Held-out averages of every latent function, for each size."""
        sizes = range(len(self.sizes))
        return [[_averages(q, self._absent(k)) for q in self._latent(k)] for k in sizes]

    @cached_property
    def support(self) -> Array:
        """Log of each label's held-out probability, averaged over training sets."""
        return np.stack([self._support(k) for k in range(len(self.sizes))])

    def _support(self, k: int) -> Array:
        absent, log_p = self._absent(k), -self._losses[k].log_loss
        # Relative to the largest, so that not all underflow.
        top = np.max(log_p, axis=0, where=absent, initial=-np.finfo(float).max)
        return top + np.log(_by_example(np.exp(np.minimum(log_p - top, 0.0)), absent))

    @property
    def doubt(self) -> Array:
        """Doubt about each label."""
        each = zip(self.averages, self.support, strict=True)
        return np.stack([self.scores.doubt(averages, support) for averages, support in each])


def _averages(q: Marginals, absent: Array) -> Averages:
    """Return averages over the training sets that each example is not in."""
    R, n = _by_example(q.mean, absent), np.maximum(absent.sum(axis=0), 1)
    V = _by_example((q.mean - R) ** 2, absent) * n / np.maximum(n - 1, 1)
    return Averages(_by_example(q.variance, absent), R, V)


def _by_example(values: Array, absent: Array) -> Array:
    """Average over the training sets that an example is not in; NaN if it is in all of them."""
    count = absent.sum(axis=0)
    total = np.sum(np.where(absent, values, 0.0), axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _weighted_means(values: Array, weight: Array) -> Array:
    """Return the mean of each row that has any weight."""
    total = weight.sum(axis=1)
    some = total > 0.0
    return np.sum(values[some] * weight[some], axis=1) / total[some]
