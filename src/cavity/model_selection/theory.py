"""A learning curve by theory: from a pool, size by size, each starting where the last one ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from cavity.arrays import Array
from cavity.model_selection.curve import LearningCurve, Measure
from cavity.model_selection.forecast import (
    Trend,
    calibrated,
    forecast_sizes,
    reconcile,
    sampling_error,
)
from cavity.resampling.averages import Averages, Path, solve_averages
from cavity.resampling.eigen import eigenvalue_start
from cavity.resampling.laws import LAWS
from cavity.resampling.orders import Order, Pool
from cavity.resampling.pairs import with_pairs
from cavity.resampling.scores import Measured, Scorer, field_grid
from cavity.resampling.theories import Theory, cavity_theory, variational_theory

__all__ = ["THEORIES", "Door", "Theoretical", "theoretical_curve"]

THEORIES = ("auto", "cavity", "pairs", "variational")
_BLOCK = 64
# Of the tolerance, for what a theory has to solve within itself.
_SHARE = 0.1


class Door(Protocol):
    """What a theory cannot know: the kernel, and the units of the target."""

    def covariances(self, X: Any) -> list[tuple[Array, Array]]:
        """Return covariances of new inputs with the pool's and their own prior variances.

        One pair for each latent function.
        """

    @property
    def scale(self) -> float:
        """Unit of the target."""

    @property
    def offset(self) -> float:
        """Origin of the target."""


@dataclass(frozen=True)
class Theoretical:
    """A pool of examples and the theory of training sets drawn from it.

    Parameters
    ----------
    scorer : Scorer
        Holds the pools, one for each latent function.
    theory : str
    resampling : str
    sizes : array of shape (k,)
    door : Door
    tol, max_iter
        Of the theory's equations.
    """

    scorer: Scorer
    theory: str
    resampling: str
    sizes: Array
    door: Door
    tol: float
    max_iter: int

    def solve(self, sizes: Array, resampling: str) -> list[list[Averages]]:
        """Return averages for each latent function and size."""
        return [self._along(pool, sizes, resampling) for pool in self.scorer.pools]

    def _along(self, pool: Pool, sizes: Array, resampling: str) -> list[Averages]:
        """Solve size by size, each from where the last ones lead."""
        found: dict[int, Averages] = {}
        path = Path(pool)
        for k in path.order(sizes):
            draws = sizes[k] * pool.share
            theory = self._theory(pool, draws, resampling)
            start = path.ahead(sizes[k])
            if self.theory == "variational" and not found:
                start = eigenvalue_start(pool, draws)
            last = solve_averages(pool, theory, start, tol=self.tol, max_iter=self.max_iter)
            path.pass_by(sizes[k], last.held_out)
            found[int(k)] = self._with_pairs(pool, last, draws, resampling)
        return [found[k] for k in range(len(sizes))]

    def _with_pairs(self, pool: Pool, last: Averages, draws: Array, resampling: str) -> Averages:
        if self.theory != "pairs" or self.scorer.task == "classification":
            return last
        return with_pairs(pool, last, LAWS[resampling](draws))

    def _theory(self, pool: Pool, draws: Array, resampling: str) -> Theory:
        if self.theory == "variational":
            return variational_theory(pool, draws)
        return cavity_theory(pool, LAWS[resampling](draws), _SHARE * self.tol)

    @cached_property
    def averages(self) -> list[list[Averages]]:
        """Averages at the curve's own sizes."""
        return self.solve(self.sizes, self.resampling)

    def held_out(self, k: int) -> list[Order]:
        """Return the held-out order parameters of all latent functions at one size."""
        return [along[k].held_out for along in self.averages]

    def pool_error(self, k: int) -> Array:
        """Return each example's expected error, drawn or not, at one size."""
        pool = [along[k].pool for along in self.averages]
        draws = self.sizes[k] * self.scorer.pools[0].share
        return self.scorer.pool_error(pool, self.held_out(k), LAWS[self.resampling](draws))

    def predict(self, X: Any) -> tuple[Array, Array]:
        """Return mean and variance over training sets of the prediction at new inputs."""
        orders = [
            [averages.at(pool.prior, K_star, variance) for averages in along]
            for pool, along, (K_star, variance) in zip(
                self.scorer.pools, self.averages, self.door.covariances(X), strict=True
            )
        ]
        return self._predictions(orders)

    def _predictions(self, orders: Sequence[Sequence[Order]]) -> tuple[Array, Array]:
        """Return means and variances of shape (sizes, n), or (sizes, n, classes)."""
        mean = np.stack([[c.R for c in along] for along in orders], axis=2)
        variance = np.stack([[c.V for c in along] for along in orders], axis=2)
        if len(orders) == 1:
            mean, variance = mean[:, :, 0], variance[:, :, 0]
        return mean * self.door.scale + self.door.offset, variance * self.door.scale**2

    def measure(self, g: Measure) -> Array:
        """Average g(prediction, y) over training sets, at each size and example."""
        return np.stack([self._measure(g, k) for k in range(len(self.sizes))])

    def _measure(self, g: Measure, k: int) -> Array:
        x, weight = field_grid()
        y = self.scorer.pools[0].y
        truth = (y > 0).astype(float)
        if self.scorer.task == "regression":
            truth = y * self.door.scale + self.door.offset
        total = np.zeros(len(y))
        for i in range(0, len(x), _BLOCK):
            p = self.scorer.predictions(self.held_out(k), x[i : i + _BLOCK])
            if self.scorer.task == "regression":
                p = p * self.door.scale + self.door.offset
            values = np.broadcast_to(g(p, np.broadcast_to(truth, p.shape)), p.shape)
            total += weight[i : i + _BLOCK] @ values
        return total

    def trend(self, measure: str) -> Trend:
        """Return the held-out curve up to most of the pool, drawn without replacement.

        It is meant for the population, not for the pool: the error is a mean of what the labels say
        and of what the model expects of itself, and so may differ from the curve's by less than the
        sampling error. That the mean is less uncertain than the labels is not counted.
        """
        sizes, values, expected = self._trends
        points = values[measure]
        share = self.scorer.pools[0].share
        rate = self.scorer.task == "classification" and measure == "error"
        spread = sampling_error(points[-1], share, rate=rate)
        positive = self.scorer.task == "classification" or measure == "error"
        means = points @ share
        if measure == "error":
            means = reconcile(means, expected, spread)
        return Trend(sizes, means, spread, positive)

    @cached_property
    def _trends(self) -> tuple[Array, dict[str, Array], Array]:
        """Sizes, measures of each example, and the average error expected at each size."""
        share = self.scorer.pools[0].share
        resampling = "bootstrap" if self.theory == "variational" else "subsample"
        # Without replacement no example can be drawn more than once.
        sizes = forecast_sizes(int(1.0 / np.max(share) + 1e-9))
        averages = self.solve(sizes, resampling)
        orders = [[along[k].held_out for along in averages] for k in range(len(sizes))]
        measured = [self.in_units(self.scorer.held_out(order)) for order in orders]
        values = {
            "error": np.stack([found.error for found in measured]),
            "log_loss": np.stack([found.log_loss for found in measured]),
        }
        return sizes, values, self._expected(orders, values["log_loss"] @ share)

    def _expected(self, orders: Sequence[Sequence[Order]], log_loss: Array) -> Array:
        """Return the error that the model expects of itself at each size, averaged."""
        share = self.scorer.pools[0].share
        found = [self.scorer.expected(order) for order in orders]
        error = np.array([own.error @ share for own in found])
        if self.scorer.task == "regression":
            return error * self.door.scale**2
        return calibrated(error, np.array([own.log_loss @ share for own in found]), log_loss)

    def in_units(self, found: Measured) -> Measured:
        """Return the measures of a regressor in the units of its target."""
        if self.scorer.task == "classification":
            return found
        log_scale = np.log(self.door.scale)
        return Measured(
            found.error * self.door.scale**2,
            found.log_loss + log_scale,
            None,
            found.support - log_scale,
            found.evidence,
        )


def theoretical_curve(
    source: Theoretical, y: Array, classes: Array | None, apparent: tuple[float, float]
) -> LearningCurve:
    """Return the curve that a theory predicts.

    Parameters
    ----------
    source : Theoretical
    y : array of shape (n,)
        Labels as the user gave them.
    classes : array or None
    apparent : (float, float)
        Error and log loss of the fit to the whole pool, on the pool itself.
    """
    scorer, share, scale = source.scorer, source.scorer.pools[0].share, source.door.scale
    count = range(len(source.sizes))
    measured = [source.in_units(scorer.held_out(source.held_out(k))) for k in count]
    pool = [[along[k].pool for along in source.averages] for k in count]
    mean, variance = source._predictions([[a.held_out for a in s] for s in source.averages])
    error, log_loss, support, evidence = (
        np.stack([getattr(found, name) for found in measured])
        for name in ("error", "log_loss", "support", "evidence")
    )
    brier = [found.brier @ share for found in measured if found.brier is not None]
    return LearningCurve(
        task=scorer.task,
        resampling=source.resampling,
        theory=source.theory,
        train_sizes=source.sizes,
        test_error=error @ share,
        test_log_loss=log_loss @ share,
        test_brier=np.array(brier) if brier else None,
        pool_error=np.array([source.pool_error(k) @ share for k in count]) * scale**2,
        posterior_variance=np.array([np.mean([c.G @ share for c in o]) for o in pool]) * scale**2,
        point_error=error,
        point_log_loss=log_loss,
        point_mean=mean,
        point_variance=variance,
        point_support=support,
        point_evidence=evidence,
        apparent_error=apparent[0],
        apparent_log_loss=apparent[1],
        y=y,
        classes=classes,
        share=share,
        converged=np.array([all(s[k].converged for s in source.averages) for k in count]),
        n_iter=np.array([max(s[k].n_iter for s in source.averages) for k in count]),
        residual=np.array([max(s[k].residual for s in source.averages) for k in count]),
        source=source,
    )
