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
from cavity.model_selection.pools import PoolInputs
from cavity.priors import DensePrior
from cavity.resampling import Pool
from cavity.sites import Marginals

# Handing a small fit to a worker takes as long as the fit.
_BATCH = 10


@dataclass(frozen=True)
class Draws:
    """How training sets are drawn; ``share`` is each example's share of the population."""

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
            absent = rng.permutation(self.members)[:repeats]
            return [rng.permutation(np.setdiff1d(self.members, [i])) for i in absent]
        return [self._one(size, rng) for _ in range(repeats)]

    def _one(self, size: int, rng: np.random.Generator) -> Array:
        if self.resampling == "bootstrap":
            return rng.choice(len(self.share), size, p=self.share)
        if self.is_uniform:
            return rng.permutation(self.members)[:size]
        drawn = rng.random(len(self.share)) < size * self.share
        return rng.permutation(np.flatnonzero(drawn))

    def weight(self, size: int) -> Array:
        """Return the weights of absent examples that make up for how often each is absent."""
        if self.is_uniform:
            return self.share
        absence = 1.0 - np.minimum(size * self.share, 1.0)
        if self.resampling == "bootstrap":
            absence = (1.0 - self.share) ** size
        return np.where(absence > 0.0, self.share / np.where(absence > 0.0, absence, 1.0), 0.0)


class Refit(NamedTuple):
    """One training set's predictions for the pool, a row for each latent function.

    ``absent`` marks the examples that are not in the training set.
    """

    mean: Array
    variance: Array
    absent: Array
    reports: Sequence[Report]


@dataclass(frozen=True)
class Refitter:
    """Fits an estimator's model to rows of the pools, one for each latent function.

    ``noises`` are the variances that each kernel adds and its pool does not hold: every draw of an
    example has noise of its own.
    """

    pools: Sequence[Pool]
    likelihood: Likelihood
    noises: Sequence[float]
    method: Method

    @classmethod
    def of(cls, inputs: PoolInputs) -> "Refitter":
        """Return what fits as the estimator does."""
        parts = inputs.parts
        return cls(inputs.pools, parts.likelihood, inputs.noises, parts.processes[0].fits[0].method)

    def refit_each(self, draws: Sequence[Array]) -> list[Refit]:
        """Refit to several training sets, on one thread of BLAS: two may round differently."""
        with one_thread():
            return [self.refit(rows) for rows in draws]

    def refit(self, rows: Array) -> Refit:
        """Fit to these rows and predict the whole pool."""
        absent = np.ones(len(self.pools[0].y), dtype=bool)
        absent[rows] = False
        found = [self._fit(*each, rows) for each in zip(self.pools, self.noises, strict=True)]
        mean, variance = (np.stack(part) for part in zip(*(q for q, _ in found), strict=True))
        return Refit(mean, variance, absent, [report for _, report in found])

    def _fit(self, pool: Pool, noise: float, rows: Array) -> tuple[Marginals, Report]:
        prior = pool.prior
        if not len(rows):
            return Marginals(np.zeros(prior.size), prior.diag), Report(True, 0, 0.0, "")
        index, weight = self._weights(rows, noise)
        K = prior.K[np.ix_(index, index)]
        K[np.diag_indices_from(K)] += noise
        likelihood = self.likelihood.subset(index)
        fit = self.method.fit(Problem.of(likelihood, DensePrior(K), pool.y[index], weight))
        return fit.posterior.predict(prior.K[:, index], prior.diag), fit.report

    def _weights(self, rows: Array, noise: float) -> tuple[Array, Array]:
        """Return distinct rows and how often each counts, unless draws differ or come in turn."""
        if noise or self.method.ordered:
            return rows, np.ones(len(rows))
        index, counts = np.unique(rows, return_counts=True)
        return index, counts.astype(float)


def refit_all(
    refitter: Refitter,
    sizes: Array,
    draws: Sequence[Sequence[Array]],
    n_jobs: int | None,
    verbose: int,
) -> Iterator[list[Refit]]:
    """Yield the refits to all training sets of a size, one size after the other."""
    begin = time.perf_counter()
    found = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(refitter.refit_each)(few) for of_size in draws for few in _batches(of_size)
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
