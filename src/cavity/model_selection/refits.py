"""Many fits to random training sets from one pool, side by side."""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from cavity.arrays import Array, one_thread
from cavity.inference import Method, Problem, Report
from cavity.likelihoods import Likelihood
from cavity.model_selection.pools import PoolDoor
from cavity.priors import DensePrior
from cavity.resampling import Pool
from cavity.sites import Marginals

__all__ = ["Draws", "Refit", "Trainer", "refit_all"]

# Handing a small fit to a worker takes as long as the fit.
_BATCH = 10


@dataclass(frozen=True)
class Draws:
    """How training sets are drawn.

    Parameters
    ----------
    resampling : str
    share : array of shape (n,)
        Each example's share of the population.
    seed : int
    """

    resampling: str
    share: Array
    seed: int

    @cached_property
    def members(self) -> Array:
        """Examples that can be drawn."""
        return np.flatnonzero(self.share)

    @property
    def is_uniform(self) -> bool:
        """Whether all that can be drawn are drawn equally often."""
        return bool(np.allclose(self.share[self.members], 1.0 / len(self.members), rtol=1e-9))

    def leaves_one_out(self, size: int) -> bool:
        """Whether a training set is all but one example."""
        return self.resampling == "subsample" and self.is_uniform and size >= len(self.members)

    def draw(self, size: int, repeats: int) -> list[Array]:
        """Return the rows of several training sets, in random order."""
        rng = np.random.default_rng([self.seed, size])
        if self.leaves_one_out(size):
            left_out = rng.permutation(self.members)[:repeats]
            return [rng.permutation(np.setdiff1d(self.members, [i])) for i in left_out]
        return [self._one(size, rng) for _ in range(repeats)]

    def _one(self, size: int, rng: np.random.Generator) -> Array:
        if self.resampling == "bootstrap":
            return rng.choice(len(self.share), size, p=self.share)
        if self.is_uniform:
            return rng.permutation(self.members)[:size]
        drawn = rng.random(len(self.share)) < size * self.share
        return rng.permutation(np.flatnonzero(drawn))

    def weight(self, size: int) -> Array:
        """Return the weights of left-out examples that make up for how often each is left out."""
        if self.is_uniform:
            return self.share
        absent = 1.0 - np.minimum(size * self.share, 1.0)
        if self.resampling == "bootstrap":
            absent = (1.0 - self.share) ** size
        return np.where(absent > 0.0, self.share / np.where(absent > 0.0, absent, 1.0), 0.0)


class Refit(NamedTuple):
    """One training set's predictions for the pool, a row for each latent function."""

    mean: Array
    variance: Array
    left_out: Array
    reports: Sequence[Report]


@dataclass(frozen=True)
class Trainer:
    """Fits to rows of the pool.

    Parameters
    ----------
    pools : sequence of Pool
        One for each latent function.
    likelihood : Likelihood
        As the estimator has it.
    noises : sequence of float
        Noise of each kernel's own, which its pool does not hold. Each drawn copy has its own.
    method : Method
    """

    pools: Sequence[Pool]
    likelihood: Likelihood
    noises: Sequence[float]
    method: Method

    @classmethod
    def behind(cls, door: PoolDoor, pools: Sequence[Pool]) -> "Trainer":
        """Return what fits as the estimator does."""
        latent = door.model._latents[0] if door.is_classifier else door.model._latent
        return cls(pools, door.likelihood, door.noises, latent.evidence.method)

    def refit_each(self, draws: Sequence[Array]) -> list[Refit]:
        """Refit to several training sets, on one thread of BLAS: two may round differently."""
        with one_thread():
            return [self.refit(rows) for rows in draws]

    def refit(self, rows: Array) -> Refit:
        """Infer from these rows and predict the whole pool."""
        left_out = np.ones(len(self.pools[0].y), dtype=bool)
        left_out[rows] = False
        found = [self._infer(*each, rows) for each in zip(self.pools, self.noises, strict=True)]
        mean, variance = (np.stack(part) for part in zip(*(q for q, _ in found), strict=True))
        return Refit(mean, variance, left_out, [report for _, report in found])

    def _infer(self, pool: Pool, noise: float, rows: Array) -> tuple[Marginals, Report]:
        prior = pool.prior
        if not len(rows):
            return Marginals(np.zeros(prior.size), prior.diag), Report(True, 0, 0.0, "")
        index, copies = self._copies(rows, noise)
        K = prior.K[np.ix_(index, index)]
        K[np.diag_indices_from(K)] += noise
        likelihood = self.likelihood.subset(index)
        fit = self.method.fit(Problem(likelihood, DensePrior(K), pool.y[index], copies))
        return fit.posterior.predict(prior.K[:, index], prior.diag), fit.report

    def _copies(self, rows: Array, noise: float) -> tuple[Array, Array]:
        """Return distinct rows and how often each counts, unless copies differ or come in turn."""
        if noise or self.method.name == "sequential":
            return rows, np.ones(len(rows))
        index, counts = np.unique(rows, return_counts=True)
        return index, counts.astype(float)


def refit_all(
    trainer: Trainer,
    sizes: Array,
    draws: Sequence[Sequence[Array]],
    n_jobs: int | None,
    verbose: int,
) -> Iterator[list[Refit]]:
    """Refit to all training sets, and give back those of one size after those of another."""
    begin = time.perf_counter()
    found = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(trainer.refit_each)(few) for of_size in draws for few in _batches(of_size)
    )
    for k, (size, of_size) in enumerate(zip(sizes, draws, strict=True)):
        refits = [refit for _ in _batches(of_size) for refit in next(found)]
        if verbose > 0:
            passed = time.perf_counter() - begin
            sys.stdout.write(
                f"size {size:.0f} ({k + 1} of {len(sizes)}): {len(refits)} refits, "
                f"{passed:.1f} s so far\n"
            )
            sys.stdout.flush()
        yield refits


def _batches(draws: Sequence[Array]) -> list[Sequence[Array]]:
    return [draws[i : i + _BATCH] for i in range(0, len(draws), _BATCH)]
