"""Many fits to random training sets from one pool, in parallel."""

import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from cavity.arrays import Array, one_thread
from cavity.estimators.fitted import FittedModel, fitted_model
from cavity.estimators.problems import with_limits
from cavity.estimators.process import FittedProcess
from cavity.estimators.validation import select_rows
from cavity.inference import Method, Problem, Report
from cavity.likelihoods import Likelihood, Probit
from cavity.priors import ClassLabels, ClassPrior, DensePrior
from cavity.resampling import Averages, ClassAverages, ClassPool, Pool
from cavity.resampling.scores import Losses
from cavity.sites import ClassMarginals, Marginals

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


class SizeRefits(NamedTuple):
    """What the refits to all training sets of one size, or to one of them, say about the pool.

    ``latent`` are the marginals of each latent function, of shape (training sets, n), or one
    `ClassMarginals` of all classes; ``absent`` marks the examples that are not in a training set.
    ``noise`` is the variance, for each latent function, that predictions have beyond that of the
    latent function and of the likelihood.
    """

    latent: list[Any]
    absent: Array
    reports: list[Report]
    noise: list[Array]

    @property
    def predictive(self) -> list[Any]:
        """What the likelihood sees: the latent functions with their noise."""
        return list(map(_with_noise, self.latent, self.noise))

    def by_example(self, values: Array) -> Array:
        """Average over the training sets that an example is not in; NaN if it is in all of them."""
        absent = self.absent.reshape(self.absent.shape + (1,) * (values.ndim - 2))
        count = absent.sum(axis=0)
        total = np.sum(np.where(absent, values, 0.0), axis=0)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    @property
    def averages(self) -> list[Any]:
        """Held-out averages of every latent function, or of all classes together."""
        n = np.maximum(self.absent.sum(axis=0), 1)
        unbiased = n / np.maximum(n - 1, 1)
        found: list[Any] = []
        for q in self.latent:
            R = self.by_example(q.mean)
            off = q.mean - R
            if isinstance(q, ClassMarginals):
                V = self.by_example(off[..., :, None] * off[..., None, :])
                G = self.by_example(q.covariance)
                found.append(ClassAverages(G, R, V * unbiased[:, None, None]))
            else:
                found.append(
                    Averages(self.by_example(q.variance), R, self.by_example(off**2) * unbiased)
                )
        return found

    def held_out(self, losses: Losses) -> Losses:
        """Return each example's scores, averaged over the training sets that it is not in."""
        log_p = -losses.log_loss
        # Relative to the largest, so that not all underflow.
        top = np.max(log_p, axis=0, where=self.absent, initial=-np.finfo(float).max)
        support = top + np.log(self.by_example(np.exp(np.minimum(log_p - top, 0.0))))
        error, log_loss = self.by_example(losses.error), self.by_example(losses.log_loss)
        return Losses(error, log_loss, support=support)


def _with_noise(q: Any, noise: Array) -> Any:
    """Return marginals with noise added, the same for all classes."""
    if isinstance(q, ClassMarginals):
        eye = np.eye(q.mean.shape[-1])
        return q._replace(covariance=q.covariance + noise[..., None, None] * eye)
    return Marginals(q.mean, q.variance + noise)


def latent_variance(q: Any) -> Array:
    """Return the variance of a latent function, or the mean of those of all classes."""
    if isinstance(q, ClassMarginals):
        return np.trace(q.covariance, axis1=-2, axis2=-1) / q.mean.shape[-1]
    return q.variance


class Refit(NamedTuple):
    """One latent function (or all classes) at the whole pool, fitted to some rows of it."""

    latent: Any
    noise: Array
    report: Report


class Refits(Protocol):
    """A way to fit training sets that are drawn from a pool."""

    def refit(self, rows: Array) -> list[Refit]:
        """Fit to these rows and predict the whole pool."""


@dataclass(frozen=True)
class Refitter:
    """Fits an estimator's model to rows of the pools, one for each latent function.

    The kernel's noise, which the pools do not hold, is independent for every draw of an example.
    """

    pools: Sequence[Pool]
    likelihoods: Sequence[Likelihood]
    method: Method

    def refit(self, rows: Array) -> list[Refit]:
        """Fit each latent function to these rows and predict the whole pool."""
        each = zip(self.pools, self.likelihoods, strict=True)
        return [self._fit(pool, likelihood, rows) for pool, likelihood in each]

    def _fit(self, pool: Pool, likelihood: Likelihood, rows: Array) -> Refit:
        prior, zero = pool.prior, np.zeros(pool.prior.size)
        if not len(rows):
            return Refit(Marginals(zero, prior.diag), zero, Report(True, 0, 0.0, ""))
        index, weight = rows, np.ones(len(rows))
        if not pool.noise and not self.method.ordered:
            # Identical draws become one row that counts more.
            index, counts = np.unique(rows, return_counts=True)
            weight = counts.astype(float)
        K = prior.K[np.ix_(index, index)]
        K[np.diag_indices_from(K)] += pool.noise
        likelihood = likelihood.subset(index)
        fit = self.method.fit(Problem.of(likelihood, DensePrior(K), pool.y[index], weight))
        return Refit(fit.posterior.predict(prior.K[:, index], prior.diag), zero, fit.report)


@dataclass(frozen=True)
class JointRefitter:
    """Fits one model of all classes to rows of a pool."""

    pool: ClassPool
    method: Method

    def refit(self, rows: Array) -> list[Refit]:
        """Fit to these rows and predict the whole pool."""
        K, k, zero = self.pool.prior.K, self.pool.n_classes, np.zeros(len(self.pool.codes))
        index, counts = np.unique(rows, return_counts=True)
        if not len(rows):
            nothing = np.zeros((len(K), k))
            own = self.pool.prior.diag[:, None, None] * np.eye(k)
            return [Refit(ClassMarginals(nothing, own), zero, Report(True, 0, 0.0, ""))]
        weight = counts.astype(float)
        labels = ClassLabels.of(self.pool.codes[index], k, weight)
        prior = ClassPrior(K[np.ix_(index, index)], labels)
        fit = self.method.fit(Problem(Probit(), prior, labels.rows(weight)))
        return [Refit(fit.posterior.predict(K[:, index], self.pool.prior.diag), zero, fit.report)]


@dataclass(frozen=True)
class Retuner:
    """Fits copies of an estimator, each of which tunes its kernel on its own training set.

    Predictions are in the units of the ``scale`` and ``origin`` of the whole table's fit. A
    training set that lacks a class cannot be tuned on: it is left to ``fixed``, which has the
    kernel of the whole table. ``noise``, the variance of a regressor's likelihood, is in units that
    each fit has for itself.
    """

    estimator: Any
    X: Any
    y: Array
    fixed: Refits
    scale: float
    origin: float
    noise: Any = 0.0
    offset: Array | None = None
    shifts: Sequence[Any] = ()
    """What the pools' likelihoods add to each latent function."""

    def refit(self, rows: Array) -> list[Refit]:
        """Fit and tune on these rows, and predict the whole pool."""
        classes = getattr(self.estimator, "classes_", self.y[:1])
        if len(rows) < 2 or len(np.unique(self.y[rows])) < len(classes):
            return self.fixed.refit(rows)
        copy = with_limits(clone(self.estimator), self.y)
        given = {} if self.offset is None else {"offset": self.offset[rows]}
        with warnings.catch_warnings():
            # How each refit ended is in its report, and a bound that one has met is not the pool's.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = fitted_model(copy.fit(select_rows(self.X, rows), self.y[rows], **given))
        each = zip(model.processes, self.shifts, strict=True)
        return [self._refit(model, process, shift) for process, shift in each]

    def _refit(self, model: FittedModel, process: FittedProcess, added: Any) -> Refit:
        [q], [fit], own = process.predict(self.X), process.fits, process.rule.noise(self.X)
        if isinstance(q, ClassMarginals):
            return Refit(_with_noise(q, -own), own, fit.report)
        unit, shift = model.scale / self.scale, (model.origin - self.origin) / self.scale
        mean = (q.mean + model.shift_of(self.offset)) * unit + shift - added
        latent = Marginals(mean, (q.variance - own) * unit**2)
        return Refit(latent, own * unit**2 + self.noise * (unit**2 - 1.0), fit.report)


def _refit_each(refits: Refits, n: int, draws: Sequence[Array]) -> list[SizeRefits]:
    """Refit to several training sets, on one BLAS thread: two may round differently."""
    found = []
    with one_thread():
        for rows in draws:
            absent = np.ones(n, dtype=bool)
            absent[rows] = False
            latent, noise, reports = zip(*refits.refit(rows), strict=True)
            found.append(SizeRefits(list(latent), absent, list(reports), list(noise)))
    return found


def refit_all(
    refits: Refits,
    n: int,
    sizes: Array,
    draws: Sequence[Sequence[Array]],
    n_jobs: int | None,
    verbose: int,
) -> Iterator[SizeRefits]:
    """Yield the refits to all training sets of a size, one size after the other.

    ``n`` is the number of examples in the pool.
    """
    begin = time.perf_counter()
    found = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_refit_each)(refits, n, few) for of_size in draws for few in _batches(of_size)
    )
    for k, (size, of_size) in enumerate(zip(sizes, draws, strict=True)):
        each = [refit for _ in _batches(of_size) for refit in next(found)]
        if verbose > 0:
            done = f"size {size:.0f} ({k + 1} of {len(sizes)}): {len(each)} refits"
            sys.stdout.write(f"{done}, {time.perf_counter() - begin:.1f} s so far\n")
            sys.stdout.flush()
        latent, absent, reports, noise = zip(*each, strict=True)
        functions = [
            type(q[0])(*map(np.stack, zip(*q, strict=True))) for q in zip(*latent, strict=True)
        ]
        noises = [np.stack(own) for own in zip(*noise, strict=True)]
        all_reports = [report for of_refit in reports for report in of_refit]
        yield SizeRefits(functions, np.stack(absent), all_reports, noises)


def _batches(draws: Sequence[Array]) -> list[Sequence[Array]]:
    return [draws[i : i + _BATCH] for i in range(0, len(draws), _BATCH)]
