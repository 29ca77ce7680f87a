"""What a fitted estimator keeps: latent functions, and how they belong to the user's table."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from cavity.arrays import Array, NotPositiveDefiniteError
from cavity.estimators.coding import Coding
from cavity.estimators.validation import RowMap
from cavity.evidence import Evaluation, Evidence, Optimum, named_failure, threads_of
from cavity.inference import Fit
from cavity.kernels import Rule
from cavity.sites import Marginals

__all__ = ["FittedModel", "FittedProcess", "infer", "warn_about"]

_BLOCK_BYTES = 16 * 2**20
"""Memory for the covariances of one block of new inputs with the training inputs."""
_BLOCK_ROWS = 2**14
"""The most rows of a block: averages over a latent value take some nodes for each."""


@dataclass(frozen=True)
class FittedProcess:
    """One kernel on one set of inputs, with one latent function for each target.

    Parameters
    ----------
    evaluation : Evaluation
        The evidence at the tuned hyperparameters.
    columns : array of shape (n,), optional
        With a precomputed kernel: which columns of new covariances belong to these inputs.
    at_bounds : sequence of str
        In words, which hyperparameters the tuning left at a bound.
    """

    evaluation: Evaluation
    columns: Array | None = None
    at_bounds: Sequence[str] = ()

    @property
    def rule(self) -> Rule:
        """The kernel's rule at the tuned hyperparameters."""
        return self.evaluation.prior.rule  # type: ignore[no-any-return]

    @property
    def X_train_(self) -> Any:
        """Training inputs."""
        return self.evaluation.prior.X

    @property
    def kernel_(self) -> Any:
        """The kernel at the tuned hyperparameters."""
        return self.rule.kernel

    @property
    def fits(self) -> Sequence[Fit]:
        """The inference of each target."""
        return self.evaluation.fits

    def log_marginal_likelihood(
        self, theta: Array | None = None, eval_gradient: bool = False
    ) -> Any:
        """Return the log evidence, at the tuned hyperparameters or at others."""
        if theta is None:
            if eval_gradient:
                raise ValueError("Gradient can only be evaluated for theta!=None")
            return self.evaluation.value
        theta = np.asarray(theta, dtype=float)
        try:
            found = self.evaluation.evidence.at(theta)
            return (found.value, found.gradient) if eval_gradient else found.value
        except NotPositiveDefiniteError:
            return (-np.inf, np.zeros_like(theta)) if eval_gradient else -np.inf

    def predict(self, X: Any, prior_variance: Array | None = None) -> list[Marginals]:
        """Return mean and variance of each latent function at new inputs."""
        found = self.in_blocks(lambda b: self.at(X[b], _part(prior_variance, b)), X)
        return [Marginals(*(np.concatenate(p) for p in zip(*q, strict=True))) for q in found]

    def at(self, X: Any, prior_variance: Array | None = None) -> list[Marginals]:
        """Return the same for a block of new inputs."""
        K_star = self._cross(X)
        own = self.rule.diag(X) if prior_variance is None else prior_variance
        return [fit.posterior.predict(K_star, own) for fit in self.fits]

    def mean(self, X: Any) -> list[Array]:
        """Return the mean of each latent function at new inputs."""

        def of_block(block: slice) -> list[Array]:
            K_star = self._cross(X[block])
            return [K_star @ fit.posterior.alpha for fit in self.fits]

        return [np.concatenate(parts) for parts in self.in_blocks(of_block, X)]

    def in_blocks(self, answer: Callable[[slice], Sequence[Any]], X: Any) -> Iterator[Any]:
        """Collect what ``answer`` has to say of each block of new inputs."""
        blocks = block_slices(len(X), len(self.X_train_))
        return zip(*(answer(block) for block in blocks), strict=True)

    def log_proba(self, X: Any, prior_variance: Array | None = None) -> tuple[Array, Array]:
        """Return log P(−1) and log P(+1) of a binary target at a block of new inputs."""
        return self._log_proba(self.at(X, prior_variance)[0])

    def loo_log_proba(self) -> tuple[Array, Array]:
        """Return log P(−1) and log P(+1) of each training example given all the others."""
        return self._log_proba(self.fits[0].cavities)

    def _log_proba(self, q: Marginals) -> tuple[Array, Array]:
        tilted = self.evaluation.evidence.likelihood.tilted
        one = np.ones_like(q.mean)
        return tilted(-one, q).log_z, tilted(one, q).log_z

    def covariance(self, X: Any) -> Array:
        """Return the posterior covariance of the first latent function among new inputs."""
        return self.fits[0].posterior.predict_covariance(self._cross(X), self.rule.matrix(X))

    def _cross(self, X: Any) -> Array:
        """Return the covariances of new inputs with the training inputs."""
        return self.rule.matrix(X if self.columns is None else X[:, self.columns], self.X_train_)


@dataclass(frozen=True)
class FittedModel:
    """Latent functions and all that leads from them back to the user's table.

    Parameters
    ----------
    processes : list of FittedProcess
        One for each binary problem of a classifier; one with all targets for a regressor.
    rows : RowMap
        Which rows of the table were trained on.
    unweighted : tuple
        Inputs of the rows without weight and, of a precomputed kernel, their prior variances.
    coding : Coding, optional
        How a classifier's labels became binary problems.
    origin, scale : array
        What was taken off a regressor's targets, and what they were divided by.
    noise : array of shape (n,)
        Noise variance of each row of the table, of a regressor.
    """

    processes: list[FittedProcess]
    rows: RowMap
    unweighted: tuple[Any, Array | None]
    coding: Coding | None = None
    origin: Any = 0.0
    scale: Any = 1.0
    noise: Any = 0.0

    @property
    def n_iter(self) -> int:
        """Iterations of the slowest inference."""
        return max(fit.report.n_iter for fit in self._fits)

    @property
    def converged(self) -> bool:
        """Whether every inference converged."""
        return all(fit.report.converged for fit in self._fits)

    @property
    def has_proba(self) -> bool:
        """Whether a classifier's scores are log probabilities."""
        return self._coding.has_proba

    @property
    def _fits(self) -> list[Fit]:
        return [fit for process in self.processes for fit in process.fits]

    def scores(self, X: Any, prior_variance: Array | None = None) -> Array:
        """Return a classifier's score of each class at new inputs, block by block."""
        scores = np.empty((len(X), self._coding.n_classes))
        n_train = max(len(process.X_train_) for process in self.processes)
        for block in block_slices(len(X), n_train):
            part = _part(prior_variance, block)
            scores[block] = self._coding.scores(
                [p.log_proba(X[block], part) for p in self.processes]
            )
        return scores

    def loo_scores(self) -> Array:
        """Return the same for each row of the table given all the others."""
        trained = self._coding.scores([process.loo_log_proba() for process in self.processes])
        scores, absent = trained[self.rows.position], self.rows.position < 0
        if np.any(absent):
            scores[absent] = self.scores(*self.unweighted)
        return scores

    def loo_marginals(self) -> list[Marginals]:
        """Return each latent function of the first process at each row given all the others.

        Rows without weight are predicted.
        """
        [process], position = self.processes, self.rows.position
        found = [Marginals(*(part[position] for part in fit.cavities)) for fit in process.fits]
        absent = position < 0
        if np.any(absent):
            for q, new in zip(found, process.predict(*self.unweighted), strict=True):
                q.mean[absent], q.variance[absent] = new
        return found

    @property
    def _coding(self) -> Coding:
        assert self.coding is not None
        return self.coding


def infer(
    evidences: Sequence[Evidence],
    optima: Sequence[Optimum],
    columns: Sequence[Array | None],
    n_jobs: int | None,
) -> list[FittedProcess]:
    """Infer at the hyperparameters found, side by side."""
    threads = threads_of(evidences)
    run = Parallel(n_jobs=n_jobs if len(evidences) > 1 else 1)
    with threads():
        found = run(
            delayed(_evaluate)(evidence, optimum.theta, threads)
            for evidence, optimum in zip(evidences, optima, strict=True)
        )
    each = zip(found, columns, optima, strict=True)
    return [FittedProcess(evaluation, own, best.at_bounds) for evaluation, own, best in each]


def _evaluate(evidence: Evidence, theta: Array, threads: Callable[[], Any]) -> Evaluation:
    with threads(), named_failure(evidence.rule.with_theta(theta)):
        return evidence.at(theta)


def block_slices(n: int, n_train: int) -> Iterator[slice]:
    """Cut new inputs into blocks whose answers need a bounded amount of memory."""
    rows = min(_BLOCK_ROWS, max(1, _BLOCK_BYTES // (8 * n_train)))
    return (slice(i, i + rows) for i in range(0, n, rows))


def _part(values: Array | None, block: slice) -> Array | None:
    return None if values is None else values[block]


def warn_about(model: FittedModel) -> None:
    """Warn, once for all latent functions of an estimator's fit, of what went wrong."""
    failed = [fit for p in model.processes for fit in p.fits if not fit.report.converged]
    if failed:
        worst = max(failed, key=lambda fit: fit.report.residual)
        _warn(
            f"Inference by {worst.method.name!r} {worst.report.message} (tolerance "
            f"{worst.method.tol:.1e}). Raise max_iter_predict, or check the scale of the inputs "
            "and of the kernel."
        )
    # Binary problems that share a bound name it once.
    at_bounds = dict.fromkeys(name for process in model.processes for name in process.at_bounds)
    if at_bounds:
        _warn(
            f"Tuning stopped with {', '.join(at_bounds)}. The evidence may still increase outside "
            "the bounds: widen them, or fix the hyperparameter at this value."
        )


def _warn(message: str) -> None:
    # Up through warn_about and the estimator's fit to the caller's line.
    warnings.warn(message, ConvergenceWarning, stacklevel=4)
