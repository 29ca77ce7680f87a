"""From an estimator with inducing points to the rows from which training sets are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
from sklearn.pipeline import Pipeline

from cavity.arrays import Array
from cavity.estimators.coding import Coding
from cavity.estimators.fitted import FittedModel
from cavity.estimators.process import FittedProcess
from cavity.likelihoods import Likelihood, Shifted
from cavity.resampling import (
    BinaryScores,
    BlockPool,
    ClassTuning,
    MulticlassScores,
    OrderedScores,
    RegressionScores,
    Scores,
    TuningEffect,
    apparent_tally,
)
from cavity.resampling.pool import Examples
from cavity.rows import Coded, MemoryBlocks, RowBlocks
from cavity.sites import Rows

_BLOCK = 4096
"""Rows of a block of a table in memory."""
WIDER = 4.0
"""Where the spread of the length scales and the kernel are chosen anew with every training set,
tuning scatters more than the first order says. Settled on six tables against refits."""


@dataclass(frozen=True)
class BlockInputs:
    """Rows in blocks, the fitted estimator that predicts them, and how they are drawn.

    It has what a curve asks of a `PoolInputs`, without a number for every row.
    """

    model: Any
    fitted: FittedModel
    before: Pipeline | None
    pools: list[BlockPool]
    """One for each latent function."""
    given: Array | None
    """The labels, if they were given."""
    resampling: str
    sizes: Array
    dense: ClassVar[bool] = False
    """Whether the covariances of all examples are a matrix."""

    @property
    def rank(self) -> int:
        """The size of the matrices that are factored."""
        return int(max(pool.prior.W.shape[0] for pool in self.pools))

    @property
    def classes(self) -> Array | None:
        """The classes, in the order of their codes; None for a real target."""
        return getattr(self.model, "classes_", None)

    @property
    def task(self) -> str:
        """Either "classification" or "regression"."""
        return "regression" if self.classes is None else "classification"

    @property
    def n(self) -> int:
        """Number of examples."""
        return self.pools[0].size

    @property
    def share(self) -> Array:
        """Each example's share of the population."""
        return np.broadcast_to(np.asarray(self.pools[0].share), (self.n,))

    @cached_property
    def y(self) -> Array:
        """The labels."""
        if self.given is not None:
            return self.given
        table = self.pools[0].blocks.blocks
        return np.concatenate(list(table.collect(_targets, None, "")))

    def labels(self, index: Array) -> Array:
        """Return the labels of some examples."""
        return self.y[index]

    def scores(self, targets: Sequence[Array]) -> Scores:
        """Return the scores of examples with given targets, one array for each function."""
        pairs = zip(targets, self.pools, strict=True)
        found: Scores = self.score([Examples(y, pool.likelihood) for y, pool in pairs])
        return found

    @property
    def score(self) -> Any:
        """Makes the scores of some examples."""
        if self.classes is None:
            scale, origin = float(self.fitted.scale), float(self.fitted.origin)
            return partial(RegressionScores, scale=scale, origin=origin)
        return partial(scores_of, self.fitted.coding)

    def apparent(self) -> tuple[float, float]:
        """Return error and log loss of the estimator on the rows it was fitted to."""
        return apparent_tally(self.score, self.pools)


def scores_of(coding: Coding, examples: Sequence[Any]) -> Scores:
    """Return the scores of classes that are told apart one function at a time."""
    if coding.ordered:
        return OrderedScores(examples)
    return (BinaryScores if coding.n_functions == 1 else MulticlassScores)(examples)


def block_pools(
    fitted: FittedModel,
    table: Any,
    share: Array | None,
    *,
    retune: bool,
    offset: Array | None = None,
) -> list[BlockPool]:
    """Return a pool of rows in blocks for each latent function.

    Parameters
    ----------
    fitted : FittedModel
        One with inducing points.
    table : RowBlocks, (X, y) or None
        The rows with their labels, in blocks or as arrays; None for those that the model was
        fitted to.
    share : array of shape (n,), optional
        Each example's share of the population; equal by default.
    retune : bool
        Whether averages are over kernels tuned on each training set. On a large table that makes
        no difference, and is left out.
    offset : array of shape (n,), optional
        What is added to the latent values of rows that are given as arrays.
    """
    _check_problems(fitted)
    if table is None or _is_that_of(fitted, table, offset):
        n = len(fitted.rows.index)
        pools = [_pool_of(process, n) for process in fitted.processes]
        if retune:
            pairs = zip(pools, fitted.processes, strict=True)
            pools = [pool._replace(tuning=tuning_of(p, pool.noise)) for pool, p in pairs]
    else:
        X = None
        if isinstance(table, tuple):
            X, y = table
            table = MemoryBlocks(Rows(y, np.ones(len(y)), X), _BLOCK)
        n = _count(table)
        pools = [
            _of_table(_pool_of(process, n), table)._replace(
                likelihood=_likelihood_of(fitted, process, X, offset)
            )
            for process in fitted.processes
        ]
    return pools if share is None else [pool._replace(share=share) for pool in pools]


def _check_problems(fitted: FittedModel) -> None:
    if fitted.coding is not None and fitted.coding.several:
        raise ValueError(
            "Learning curves of multi_class='multinomial' need a fit without inducing points: "
            "leave out n_inducing and inducing_points and fit some of the rows, or use "
            "multi_class='one_vs_rest'."
        )


def _pool_of(process: FittedProcess, n: int) -> BlockPool:
    """Return the rows that a process was fitted to."""
    fit, prior, blocks = process.fits[0], process.evaluation.prior, _rows_of(process)
    noises = np.asarray(prior.rule.noise(prior.Z))
    noise = float(noises[0]) if np.allclose(noises, noises[0], rtol=1e-6) else 0.0
    likelihood = fit.problem.likelihood.with_noise(noise) if noise else None
    if likelihood is None:
        likelihood, noise = fit.problem.likelihood, 0.0
    about = prior, blocks, likelihood, n, 1.0 / n, noise
    return BlockPool(*about, fit.posterior, fit.start.sites)


def tuning_of(process: FittedProcess, noise: float) -> TuningEffect | None:
    """Return what tuning again changes at the rows of a fit, if that is worth computing."""
    if not process.responds:
        return None
    found, here = process.response, process.fits[0].cavities
    shift = found.cavities[0].mean - here.mean
    growth = np.log(found.cavities[0].variance / here.variance)
    return TuningEffect(
        shift, growth, found.scatter[0], found.information, noise, _wider_of(process)
    )


def class_tuning_of(process: FittedProcess) -> ClassTuning | None:
    """Return the same for a process with a latent value for each class."""
    if not process.responds:
        return None
    found, here = process.response, process.fits[0].cavities
    about = (found.scatter[0], found.information, _wider_of(process))
    return ClassTuning.between(here, found.cavities[0], *about)


def _wider_of(process: FittedProcess) -> float:
    several = process.given is not None or process.prior is not None
    return WIDER if several else 1.0


def _rows_of(process: FittedProcess) -> Any:
    """Return the rows of a process: a table, and how its targets are coded."""
    return process.fits[0].problem.rows


def _of_table(pool: BlockPool, table: RowBlocks) -> BlockPool:
    """Return another table as the pool; the model has not left its rows out."""
    return pool._replace(blocks=Coded(table, pool.blocks.code), fitted=None)


def _likelihood_of(
    fitted: FittedModel, process: FittedProcess, X: Any, offset: Array | None
) -> Likelihood:
    """Return the likelihood of a table that the model was not fitted to."""
    if X is None and process.trend is not None:
        raise ValueError(
            "With mean='linear' another table must be given as arrays X and y, not in blocks."
        )
    base, noises = process.likelihood.bare, np.asarray(process.rule.noise(process.X_train_))
    same = np.allclose(noises, noises[0], rtol=1e-6)
    noisy = base.with_noise(float(noises[0])) if same and noises[0] else base
    added = fitted.shift_of(offset) + (0.0 if X is None else process.likelihood.drift(X))
    return Shifted.rows(base if noisy is None else noisy, X, added)


def _is_that_of(fitted: FittedModel, table: Any, offset: Array | None) -> bool:
    """Whether these are the rows that a model was fitted to."""
    blocks = _rows_of(fitted.processes[0])
    if not isinstance(table, tuple):
        return blocks.blocks is table
    (X, y), begin, process = table, 0, fitted.processes[0]
    shift = fitted.shift_of(offset) + process.likelihood.drift(X)
    if np.size(process.likelihood.shift) not in (1, len(y)) or not np.allclose(
        process.likelihood.shift, shift
    ):
        return False
    for target, digest in blocks.collect(_digest, None, ""):
        part = slice(begin, begin + len(target))
        same = len(y[part]) == len(target) and np.array_equal(target, blocks.code(y[part]))
        if not same or digest != _digest_of(X[part]):
            return False
        begin = part.stop
    return begin == len(y)


def _digest(rows: Rows, kept: Any, shared: None) -> tuple[Array, bytes]:
    return rows.y, _digest_of(rows.X)


def _digest_of(X: Any) -> bytes:
    return blake2b(np.asarray(X, dtype=np.float64).tobytes()).digest()


def _count(blocks: RowBlocks) -> int:
    return sum(blocks.collect(_length, None, ""))


def _length(rows: Rows, kept: Any, shared: None) -> int:
    return int(rows.weight.shape[0])


def _targets(rows: Rows, kept: Any, shared: None) -> Array:
    return rows.y


def weights_of(blocks: RowBlocks) -> Array | None:
    """Return how often each row of a table counts; None if all count the same."""
    weight = np.concatenate(list(blocks.collect(_weight, None, "")))
    return None if np.all(weight == weight[0]) else weight


def _weight(rows: Rows, kept: Any, shared: None) -> Array:
    return rows.weight
