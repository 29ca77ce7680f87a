"""Latent functions behind an estimator: a kernel on data, tuned, inferred, asked at new inputs."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cavity.arrays import Array, NotPositiveDefiniteError
from cavity.evidence import Evidence
from cavity.evidence.tuning import Optimum, best_of, starting_points
from cavity.inference import Fit, Method
from cavity.kernels import Rule
from cavity.likelihoods import Likelihood
from cavity.sites import Marginals

__all__ = ["LatentProcess", "warn_about"]

_BLOCK_BYTES = 16 * 2**20
"""Memory for the covariances of one block of new inputs with the training inputs."""
_BLOCK_ROWS = 2**14
"""The most rows of a block: averages over a latent value take some nodes for each."""


class LatentProcess:
    """One kernel on one set of inputs, with one latent function for each target.

    Parameters
    ----------
    rule : Rule
    X : array of shape (n, d), or a list of objects that the kernel takes
    targets : sequence of arrays of shape (n,)
    likelihood : Likelihood
    method : Method
    copies : array of shape (n,)
        How often each example counts.
    columns : array of shape (n,), optional
        With a precomputed kernel: which columns of new covariances belong to these inputs.
    """

    def __init__(
        self,
        rule: Rule,
        X: Any,
        targets: Sequence[Array],
        likelihood: Likelihood,
        method: Method,
        copies: Array,
        columns: Array | None = None,
    ) -> None:
        self.rule = rule
        self.columns = columns
        self.evidence = Evidence(rule, X, targets, likelihood, method, copies)
        self.fits: list[Fit] = []
        self.stopped: list[str] = []

    @property
    def X_train_(self) -> Any:
        """Training inputs."""
        return self.evidence.X

    @property
    def kernel_(self) -> Any:
        """The kernel at its current hyperparameters."""
        return self.rule.kernel

    @property
    def converged(self) -> bool:
        """Whether the inference of every target converged."""
        return all(fit.report.converged for fit in self.fits)

    @property
    def n_iter(self) -> int:
        """Iterations of the slowest inference."""
        return max(fit.report.n_iter for fit in self.fits)

    def starts(self, n_restarts: int, rng: np.random.RandomState) -> list[Array]:
        """Return the hyperparameters from which to tune; none if none is free."""
        if not len(self.rule.theta):
            return []
        return starting_points(self.rule.theta, self.rule.bounds, n_restarts, rng)

    def settle(self, optima: Sequence[Optimum]) -> None:
        """Take the best hyperparameters found."""
        with _named_failure(self.rule):
            self.rule = self.rule.with_theta(best_of(optima).theta)
        self.stopped = _at_bounds(self.rule)

    def infer(self) -> "LatentProcess":
        """Infer every target at the present hyperparameters."""
        with _named_failure(self.rule):
            self.fits = self.evidence.fits(self.rule.theta)
            # Only tuning goes on from here to there: a fitted model keeps no memory in reserve.
            self.fits[0].problem.prior.scratch.take()
        return self

    def log_marginal_likelihood(
        self, theta: Array | None = None, eval_gradient: bool = False
    ) -> Any:
        """Return the log evidence, at the tuned hyperparameters or at others."""
        if theta is None:
            if eval_gradient:
                raise ValueError("Gradient can only be evaluated for theta!=None")
            return sum(fit.log_evidence for fit in self.fits)
        theta = np.asarray(theta, dtype=float)
        try:
            if eval_gradient:
                return self.evidence.value_and_gradient(theta)
            return self.evidence.value(theta)
        except NotPositiveDefiniteError:
            return (-np.inf, np.zeros_like(theta)) if eval_gradient else -np.inf

    def predict(self, X: Any, prior_variance: Array | None = None) -> list[Marginals]:
        """Mean and variance of each latent function at new inputs, block by block."""
        mean, variance = np.empty((2, len(self.fits), len(X)))
        for block in self.blocks(X):
            for i, q in enumerate(self._predict_block(X, block, prior_variance)):
                mean[i, block], variance[i, block] = q
        return [Marginals(*q) for q in zip(mean, variance, strict=True)]

    def _predict_block(self, X: Any, block: slice, prior_variance: Array | None) -> list[Marginals]:
        K_star = self._cross(X, block)
        given = self.rule.diag(X[block]) if prior_variance is None else prior_variance[block]
        return [fit.posterior.predict(K_star, given) for fit in self.fits]

    def log_proba(self, X: Any, prior_variance: Array | None = None) -> tuple[Array, Array]:
        """Return log P(−1) and log P(+1) of a binary target at new inputs."""
        return self._log_proba(self.predict(X, prior_variance)[0])

    def loo_log_proba(self) -> tuple[Array, Array]:
        """Return log P(−1) and log P(+1) of each training example given all the others."""
        return self._log_proba(self.fits[0].cavities)

    def _log_proba(self, q: Marginals) -> tuple[Array, Array]:
        tilted = self.evidence.likelihood.tilted
        one = np.ones_like(q.mean)
        return tilted(-one, q).log_z, tilted(one, q).log_z

    def mean(self, X: Any) -> list[Array]:
        """Mean of each latent function at new inputs, block by block."""
        mean = np.empty((len(self.fits), len(X)))
        for block in self.blocks(X):
            K_star = self._cross(X, block)
            for i, fit in enumerate(self.fits):
                mean[i, block] = K_star @ fit.posterior.alpha
        return list(mean)

    def covariance(self, X: Any) -> Array:
        """Posterior covariance of the first latent function among new inputs."""
        K_star, K_star_star = self._cross(X, slice(None)), self.rule.matrix(X)
        return self.fits[0].posterior.predict_covariance(K_star, K_star_star)

    def _cross(self, X: Any, block: slice) -> Array:
        """Return the covariances of some new inputs with the training inputs."""
        X_block = X[block] if self.columns is None else X[block][:, self.columns]
        return self.rule.matrix(X_block, self.X_train_)

    def blocks(self, X: Any) -> Iterator[slice]:
        """Cut new inputs into blocks whose answers need a bounded amount of memory."""
        rows = min(_BLOCK_ROWS, max(1, _BLOCK_BYTES // (8 * len(self.X_train_))))
        return (slice(i, i + rows) for i in range(0, len(X), rows))


class _named_failure:  # noqa: N801  (a context manager reads as a verb)
    """Turn a failed factorisation into an error that names the kernel and the remedy."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, NotPositiveDefiniteError):
            raise NotPositiveDefiniteError(
                f"The kernel {self.rule.kernel} does not give a positive definite covariance "
                f"matrix for these inputs ({error}). Check the scale of the inputs; for a nearly "
                'singular kernel add a WhiteKernel, use likelihood="probit", or raise alpha.'
            ) from error


def warn_about(latents: Sequence[LatentProcess]) -> None:
    """Say, once for all latent processes of an estimator's fit, what did not go as it should."""
    failed = [fit for latent in latents for fit in latent.fits if not fit.report.converged]
    if failed:
        worst = max(failed, key=lambda fit: fit.report.residual)
        _warn(
            f"Inference by {worst.method.name!r} {worst.report.message} (tolerance "
            f"{worst.method.tol:.1e}). Raise max_iter_predict, or check the scale of the inputs "
            "and of the kernel."
        )
    # Binary problems that share a bound name it once.
    stopped = dict.fromkeys(name for latent in latents for name in latent.stopped)
    if stopped:
        _warn(
            f"Tuning stopped with {', '.join(stopped)}. The evidence may grow beyond: widen the "
            "bounds, or fix the hyperparameter if the value is meant."
        )


def _warn(message: str) -> None:
    # Up through warn_about and the estimator's fit to the caller's line.
    warnings.warn(message, ConvergenceWarning, stacklevel=4)


def _at_bounds(rule: Rule) -> list[str]:
    """Say in plain words which hyperparameters the bounds have stopped."""
    theta, bounds = rule.theta, rule.bounds
    at_lower = np.isclose(theta, bounds[:, 0], atol=1e-3)
    at_upper = np.isclose(theta, bounds[:, 1], atol=1e-3)
    return [
        f"{name} = {np.exp(value):.3g} at its {'lower' if low else 'upper'} bound"
        for name, value, low, high in zip(rule.names, theta, at_lower, at_upper, strict=True)
        if low or high
    ]
