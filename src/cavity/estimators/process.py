"""One kernel on one set of inputs: latent functions that predict at new inputs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import Array, NotPositiveDefiniteError
from cavity.estimators.latents import SIGNS, Latents
from cavity.estimators.validation import check_variances, require_numbers
from cavity.evidence import (
    MOST_DIRECTIONS,
    Evaluation,
    HyperPosterior,
    Hyperprior,
    NormalPrior,
    Response,
    posterior_at,
)
from cavity.inference import Fit
from cavity.kernels import Rule
from cavity.likelihoods import Likelihood
from cavity.sites import Marginals

_BLOCK_BYTES = 16 * 2**20
"""Memory for the covariances of one block of new inputs with the training inputs."""
_VAGUE = 10.0
"""Standard deviation of log hyperparameters without a prior."""
_NEGLIGIBLE = 1e-3
"""Hyperparameters per row: with fewer, tuning without a row changes less than can be seen."""
_BLOCK_ROWS = 2**14
"""Maximum rows of a block: averages over a latent value take several nodes per row."""


class Coverage(NamedTuple):
    """How well inducing points stand for a table."""

    left_over: float
    """Share of the prior variance that they leave over."""
    gain: float | None
    """Log evidence gained by the last doubling of their number."""


@dataclass(frozen=True)
class FittedProcess:
    """One kernel on one set of inputs, with one latent function for each target."""

    evaluation: Evaluation
    """The evidence at the tuned hyperparameters."""
    columns: Array | None = None
    """With a precomputed kernel: which columns of new covariances belong to these inputs."""
    at_bounds: Sequence[str] = ()
    """In words, which hyperparameters the tuning left at a bound."""
    tuned: bool = False
    """Whether the hyperparameters come from these rows."""
    given: HyperPosterior | None = None
    """The posterior of the hyperparameters, if the tuning has found it."""
    others: Sequence[Evaluation] = ()
    """At other hyperparameters, over which predictions are averaged."""
    prior: Hyperprior | None = None
    """The density of the hyperparameters that the tuning has used, if not the evidence's own."""
    coverage: Coverage | None = None
    """Of inducing points."""
    latents: Latents = SIGNS

    @classmethod
    def around(
        cls, posterior: HyperPosterior, columns: Array | None, latents: Latents = SIGNS
    ) -> "FittedProcess":
        """Return the process at the maximum of a posterior of the hyperparameters."""
        return cls(posterior.evaluation, columns, tuned=True, given=posterior, latents=latents)

    @cached_property
    def posterior(self) -> HyperPosterior:
        """The posterior of the hyperparameters; of those at a bound, none is free.

        Unless the tuning has found it, this takes one evaluation for each hyperparameter.
        """
        if self.given is not None:
            return self.given
        evidence, theta = self.evaluation.evidence, self.evaluation.theta
        prior = self.prior or evidence.hyperprior
        if prior is not None:
            return posterior_at(self.evaluation, prior)
        free = ~np.any(np.isclose(evidence.bounds, theta[:, None], atol=1e-3), axis=1)
        return posterior_at(
            self.evaluation, NormalPrior(theta, _VAGUE * np.eye(len(theta))[:, free])
        )

    @property
    def has_too_many(self) -> bool:
        """Whether so many hyperparameters were tuned that their posterior is not worked out."""
        free = self.given.directions.shape[1] if self.given else len(self.evaluation.theta)
        return self.tuned and free > MOST_DIRECTIONS

    @property
    def responds(self) -> bool:
        """Whether leaving a row out of the tuning changes anything worth computing.

        With inducing points it takes visits to all rows, and on large tables nothing changes.
        """
        if not self.tuned or self.has_too_many or self.coverage is None:
            return self.tuned and not self.has_too_many
        return len(self.evaluation.theta) > _NEGLIGIBLE * len(self.fits[0].cavities.mean)

    @cached_property
    def response(self) -> Response:
        """Leave-one-out cavities at hyperparameters tuned without the row."""
        return self.latents.respond(self.posterior)

    @property
    def row_numbers(self) -> int:
        """How many numbers a new input takes: with each training input, or each pair of classes."""
        return max(len(self.X_train_), self.latents.n_functions**2)

    def averaged(self, count: int, rng: np.random.RandomState) -> "FittedProcess":
        """Return the process with predictions averaged over hyperparameters."""
        if not self.tuned:
            return self
        evidence, starts = self.evaluation.evidence, self.evaluation.starts
        limits = evidence.bounds.T
        draws = [np.clip(theta, *limits) for theta in self.posterior.draws(count, rng)]
        return replace(self, others=[evidence.at(theta, starts) for theta in draws])

    def cavities(self, tuned_without: bool = True) -> list[Any]:
        """Return each latent function at each training row, given all the others.

        With ``tuned_without``, the kernel is tuned without the row as well.
        """
        here = [fit.cavities for fit in self.fits]
        moved = self.response.cavities if tuned_without and self.responds else here
        if not self.others:
            return moved
        mixed = self.mixed([here, *([f.cavities for f in e.fits] for e in self.others)])
        # What leaving the row out of the tuning changes is the same as without averaging.
        return list(map(self.latents.moved, mixed, moved, here))

    def mixed(self, parts: Sequence[Sequence[Any]]) -> list[Any]:
        """Return mean and variance of mixtures with equal weights, for each target."""
        return [self.latents.mixed(members) for members in zip(*parts, strict=True)]

    @property
    def rule(self) -> Rule:
        """The kernel's rule at the tuned hyperparameters."""
        return self.evaluation.prior.rule  # type: ignore[no-any-return]

    @property
    def X_train_(self) -> Any:
        """What new inputs are compared with: training inputs, or inducing points."""
        return self.evaluation.prior.points

    @property
    def kernel_(self) -> Any:
        """The kernel at the tuned hyperparameters."""
        return self.rule.kernel

    @property
    def fits(self) -> Sequence[Fit]:
        """The inference of each target."""
        return self.evaluation.fits

    def log_evidence(self, theta: Array, eval_gradient: bool = False) -> tuple[float, Array]:
        """Return the log evidence at other hyperparameters, and its gradient or zeros.

        If these are the kernel's alone, those of the likelihood stay as they are.
        """
        zero = np.zeros_like(theta)
        try:
            found = self._evaluated(theta)
            return found.value, found.gradient[: len(theta)] if eval_gradient else zero
        except NotPositiveDefiniteError:
            return -np.inf, zero

    def moved(self, theta: Array) -> "FittedProcess":
        """Return the process at other hyperparameters, which count as given and not as tuned."""
        return FittedProcess(self._evaluated(theta), self.columns, latents=self.latents)

    def _evaluated(self, theta: Array) -> Evaluation:
        here, rest = self.evaluation, self.evaluation.theta[len(theta) :]
        theta = np.concatenate([theta, rest])
        return here if np.array_equal(theta, here.theta) else here.evidence.at(theta)

    def predict(self, X: Any, prior_variance: Array | None = None) -> list[Any]:
        """Return mean and variance of each latent function at new inputs."""
        blocks = block_slices(len(X), self.row_numbers)
        found = zip(*(self.at(X[b], part_of(prior_variance, b)) for b in blocks), strict=True)
        return [type(parts[0])(*map(np.concatenate, zip(*parts, strict=True))) for parts in found]

    def at(self, X: Any, prior_variance: Array | None = None) -> list[Any]:
        """Return the same for a block of new inputs."""
        found = [self._at(e, X, prior_variance) for e in (self.evaluation, *self.others)]
        return self.mixed(found) if self.others else found[0]

    def _at(self, evaluation: Evaluation, X: Any, prior_variance: Array | None) -> list[Any]:
        cross = self._cross(X, evaluation)
        own = evaluation.prior.rule.diag(X) if prior_variance is None else prior_variance
        found, drift = [], evaluation.likelihood.drift(X)
        for fit in evaluation.fits:
            q = fit.posterior.predict(cross, own)
            found.append(q._replace(mean=q.mean + drift))
            require_numbers(*q)
        return found

    def without_each(self, X: Any, prior_variance: Array | None = None) -> list[Marginals]:
        """Return each latent function at a block of new inputs without each row: (rows, inputs).

        Hyperparameters and the sites of other rows stay as they are.
        """
        cross, found = self._cross(X, self.evaluation), []
        for q, fit in zip(self.at(X, prior_variance), self.fits, strict=True):
            change = fit.posterior.without(cross, fit.targets.weight)
            found.append(Marginals(q.mean + change.mean, q.variance + change.variance))
        return found

    def mean(self, X: Any) -> list[Array]:
        """Return the mean of each latent function at new inputs."""
        blocks = [X[b] for b in block_slices(len(X), self.row_numbers)]
        found = [
            np.mean([self._means(e, block) for e in (self.evaluation, *self.others)], axis=0)
            for block in blocks
        ]
        return [np.concatenate(parts) for parts in zip(*found, strict=True)]

    def _means(self, evaluation: Evaluation, X: Any) -> list[Array]:
        cross = self._cross(X, evaluation)
        drift = evaluation.likelihood.drift(X)
        found = [fit.posterior.predicted_mean(cross) + drift for fit in evaluation.fits]
        require_numbers(*found)
        return found

    def log_proba(self, X: Any, prior_variance: Array | None = None, shift: Any = 0.0) -> Any:
        """Return log probabilities of a target at a block of new inputs, as the coding takes them.

        Of a binary target these are log P(−1) and log P(+1).
        """
        q = self.at(X, prior_variance)[0]
        found = self.latents.log_proba(self.likelihood.bare, q._replace(mean=q.mean + shift))
        # A log probability may be −∞.
        require_numbers(np.exp(found))
        return found

    def loo_log_proba(self, tuned_without: bool = True) -> Any:
        """Return the same of each training example given all the others."""
        return self.latents.log_proba(self.likelihood, self.cavities(tuned_without)[0])

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood at the tuned hyperparameters, with what belongs to the training rows."""
        return self.evaluation.likelihood

    @property
    def trend(self) -> Any:
        """The linear trend of the latent function, or None."""
        return getattr(self.likelihood, "trend", None)

    def covariance(self, X: Any) -> Array:
        """Return the posterior covariance of the first latent function among new inputs."""
        members = (self.evaluation, *self.others)
        found = [self._covariance(evaluation, X) for evaluation in members]
        between = np.cov([self._means(e, X)[0] for e in members], rowvar=False, bias=True)
        return np.mean(found, axis=0) + between if self.others else found[0]

    def _covariance(self, evaluation: Evaluation, X: Any) -> Array:
        posterior, prior = evaluation.fits[0].posterior, evaluation.prior.rule.matrix(X)
        return posterior.predict_covariance(self._cross(X, evaluation), prior)

    def draws(self, X: Any, count: int, rng: Any) -> Array:
        """Draw functions from their joint posterior, without noise: (functions, count, inputs).

        If predictions are averaged over hyperparameters, so are the draws.
        """
        members = (self.evaluation, *self.others)
        parts = [len(part) for part in np.array_split(np.arange(count), len(members))]
        each = zip(members, parts, strict=True)
        return np.concatenate([self._draws(e, X, part, rng) for e, part in each], axis=1)

    def _draws(self, evaluation: Evaluation, X: Any, count: int, rng: Any) -> Array:
        cross, prior = self._cross(X, evaluation), evaluation.prior.rule.matrix(X, X)
        drawn = self.latents.drawn(evaluation.fits, cross, prior, count, rng)
        return np.asarray(drawn + evaluation.likelihood.drift(X))

    def drawn_log_proba(self, X: Any, count: int, rng: Any) -> Any:
        """Return log probabilities of a target for functions so drawn, all in a row.

        They are in the form that the coding takes: first all inputs of the first draw.
        """
        f = self.draws(X, count, rng)
        noise = np.broadcast_to(self.rule.noise(X), f.shape[1:]).ravel()
        return self.latents.drawn_log_proba(self.likelihood.bare, f.reshape(len(f), -1), noise)

    def averages(self, sets: Iterable[Any]) -> list[Marginals]:
        """Return mean and variance of each latent function's average over each set of inputs."""
        here, rule = self.evaluation, self.rule
        found = [
            (
                self._cross(X, here).mean(axis=0),
                rule.matrix(X, X).mean(),
                np.mean(self.likelihood.drift(X)),
            )
            for X in sets
        ]
        cross, own, drift = (np.array(part) for part in zip(*found, strict=True))
        each = [fit.posterior.predict(cross, own) for fit in self.fits]
        return [q._replace(mean=q.mean + drift) for q in each]

    def _cross(self, X: Any, evaluation: Evaluation) -> Array:
        """Return what the posteriors need of new inputs."""
        own = X if self.columns is None else X[:, self.columns]
        if self.kernel_ is not None:
            check_variances(self.rule, own)
        return evaluation.prior.cross(own)


def block_slices(n: int, row_numbers: int) -> Iterator[slice]:
    """Split new inputs, of so many numbers each, into blocks of a bounded amount of memory."""
    rows = min(_BLOCK_ROWS, max(1, _BLOCK_BYTES // (8 * row_numbers)))
    return (slice(i, i + rows) for i in range(0, n, rows))


def part_of(values: Array | None, block: slice) -> Array | None:
    """Return a block of values that may be missing."""
    return None if values is None else values[block]
