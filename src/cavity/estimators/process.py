"""One kernel on one set of inputs: latent functions that predict at new inputs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cavity.arrays import Array, NotPositiveDefiniteError, semidefinite_factor
from cavity.estimators.coding import binary_log_proba
from cavity.evidence import Evaluation
from cavity.inference import Fit
from cavity.kernels import Rule
from cavity.likelihoods import Likelihood
from cavity.sites import Marginals

_BLOCK_BYTES = 16 * 2**20
"""Memory for the covariances of one block of new inputs with the training inputs."""
_BLOCK_ROWS = 2**14
"""Maximum rows of a block: averages over a latent value take several nodes per row."""


@dataclass(frozen=True)
class FittedProcess:
    """One kernel on one set of inputs, with one latent function for each target."""

    evaluation: Evaluation
    """The evidence at the tuned hyperparameters."""
    columns: Array | None = None
    """With a precomputed kernel: which columns of new covariances belong to these inputs."""
    at_bounds: Sequence[str] = ()
    """In words, which hyperparameters the tuning left at a bound."""

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

    def log_evidence(self, theta: Array, eval_gradient: bool = False) -> tuple[float, Array]:
        """Return the log evidence at other hyperparameters, and its gradient or zeros."""
        zero = np.zeros_like(theta)
        try:
            found = self.evaluation.evidence.at(theta)
            return found.value, found.gradient if eval_gradient else zero
        except NotPositiveDefiniteError:
            return -np.inf, zero

    def predict(self, X: Any, prior_variance: Array | None = None) -> list[Marginals]:
        """Return mean and variance of each latent function at new inputs."""
        blocks = block_slices(len(X), len(self.X_train_))
        found = zip(*(self.at(X[b], part_of(prior_variance, b)) for b in blocks), strict=True)
        return [Marginals(*map(np.concatenate, zip(*parts, strict=True))) for parts in found]

    def at(self, X: Any, prior_variance: Array | None = None) -> list[Marginals]:
        """Return the same for a block of new inputs."""
        K_star = self._cross(X)
        own = self.rule.diag(X) if prior_variance is None else prior_variance
        return [fit.posterior.predict(K_star, own) for fit in self.fits]

    def mean(self, X: Any) -> list[Array]:
        """Return the mean of each latent function at new inputs."""
        covariances = (self._cross(X[b]) for b in block_slices(len(X), len(self.X_train_)))
        found = [[K_star @ fit.posterior.alpha for fit in self.fits] for K_star in covariances]
        return [np.concatenate(parts) for parts in zip(*found, strict=True)]

    def log_proba(self, X: Any, prior_variance: Array | None = None) -> tuple[Array, Array]:
        """Return log P(−1) and log P(+1) of a binary target at a block of new inputs."""
        return binary_log_proba(self._likelihood, self.at(X, prior_variance)[0])

    def loo_log_proba(self) -> tuple[Array, Array]:
        """Return log P(−1) and log P(+1) of each training example given all the others."""
        return binary_log_proba(self._likelihood, self.fits[0].cavities)

    @property
    def _likelihood(self) -> Likelihood:
        return self.evaluation.evidence.likelihood

    def covariance(self, X: Any) -> Array:
        """Return the posterior covariance of the first latent function among new inputs."""
        return self.fits[0].posterior.predict_covariance(self._cross(X), self.rule.matrix(X))

    def draws(self, X: Any, count: int, rng: Any) -> Array:
        """Draw functions from their joint posterior, without noise: (targets, count, inputs)."""
        K_star, prior = self._cross(X), self.rule.matrix(X, X)
        C = self.fits[0].posterior.predict_covariance(K_star, prior)
        # Below this, the difference of the two matrices is rounding error.
        tol = len(X) * np.finfo(float).eps * float(np.max(np.diagonal(prior)))
        F = semidefinite_factor(C, tol)
        drawn = rng.standard_normal((len(self.fits), count, F.shape[1])) @ F.T
        mean = np.array([K_star @ fit.posterior.alpha for fit in self.fits])
        return np.asarray(mean[:, None] + drawn)

    def drawn_log_proba(self, X: Any, count: int, rng: Any) -> tuple[Array, Array]:
        """Return log P(−1) and log P(+1) for functions so drawn, each of shape (count, inputs)."""
        f, noise = self.draws(X, count, rng)[0], self.rule.noise(X)
        if np.any(noise):
            return binary_log_proba(self._likelihood, Marginals(f, np.broadcast_to(noise, f.shape)))
        one = np.ones_like(f)
        return self._likelihood.log_prob(-one, f), self._likelihood.log_prob(one, f)

    def averages(self, sets: Iterable[Any]) -> list[Marginals]:
        """Return mean and variance of each latent function's average over each set of inputs."""
        found = [(self._cross(X).mean(axis=0), self.rule.matrix(X, X).mean()) for X in sets]
        K_star, own = (np.array(part) for part in zip(*found, strict=True))
        return [fit.posterior.predict(K_star, own) for fit in self.fits]

    def _cross(self, X: Any) -> Array:
        """Return the covariances of new inputs with the training inputs."""
        return self.rule.matrix(X if self.columns is None else X[:, self.columns], self.X_train_)


def block_slices(n: int, n_train: int) -> Iterator[slice]:
    """Split new inputs into blocks that need a bounded amount of memory."""
    rows = min(_BLOCK_ROWS, max(1, _BLOCK_BYTES // (8 * n_train)))
    return (slice(i, i + rows) for i in range(0, n, rows))


def part_of(values: Array | None, block: slice) -> Array | None:
    """Return a block of values that may be missing."""
    return None if values is None else values[block]
