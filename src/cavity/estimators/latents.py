"""What a process's latent values are of: one function and signs, or one function for each class."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import log_softmax

from cavity.arrays import Array
from cavity.estimators.coding import SIGN_LABELS, label_log_proba
from cavity.evidence import HyperPosterior, Response, respond, respond_classes
from cavity.inference import Fit
from cavity.likelihoods import Likelihood
from cavity.likelihoods.multinomial import class_log_proba, independent_log_proba
from cavity.likelihoods.softmax import softmax_log_proba
from cavity.priors import (
    AsDifferences,
    ClassInducingPosterior,
    ClassInducingPrior,
    ClassLabels,
    ClassPrior,
    DensePrior,
    InducingPosterior,
    InducingPrior,
    ScorePrior,
)
from cavity.priors.coupled import Coupled
from cavity.priors.draws import covariance_factor
from cavity.priors.inducing import Whitened
from cavity.rows import Coded, RowBlocks
from cavity.sites import ClassMarginals, Marginals, Rows


class Latents(ABC):
    """How Gaussians over latent values are mixed, moved and turned into probabilities."""

    @property
    @abstractmethod
    def n_functions(self) -> int:
        """Number of functions that are one problem."""

    @abstractmethod
    def mixed(self, members: Sequence[Any]) -> Any:
        """Return mean and variance of a mixture with equal weights."""

    @abstractmethod
    def moved(self, q: Any, there: Any, here: Any) -> Any:
        """Return q, moved as from here to there."""

    @abstractmethod
    def log_proba(self, likelihood: Likelihood, q: Any) -> Any:
        """Return log probabilities of the targets, in the form that the coding takes."""

    @abstractmethod
    def drawn(self, fits: Sequence[Any], cross: Array, prior: Array, count: int, rng: Any) -> Array:
        """Draw all functions jointly at inputs with these covariances: (functions, count, inputs).

        ``cross`` is what a posterior needs of the inputs, ``prior`` their own covariance.
        """

    @abstractmethod
    def drawn_log_proba(self, likelihood: Likelihood, f: Array, noise: Array) -> Any:
        """Return log probabilities of the targets for drawn functions (functions, places)."""

    @abstractmethod
    def respond(self, posterior: HyperPosterior) -> Response:
        """Return leave-one-out latent values at hyperparameters tuned without the row."""

    @abstractmethod
    def in_memory(self, X: Any, targets: Sequence[Array], weight: Array) -> tuple[list[Rows], Any]:
        """Return rows with these targets, and what makes their dense prior from a rule."""

    @abstractmethod
    def in_blocks(self, blocks: RowBlocks, code: Callable[[Array], Array]) -> RowBlocks:
        """Return the rows of a table whose targets are coded."""

    @abstractmethod
    def on_points(self, Z: Array, *, whole: bool) -> Callable[[Any], Any]:
        """Return what makes a prior with these inducing points from a rule."""

    @abstractmethod
    def again_on_points(self, one: InducingPrior) -> Any:
        """Return that prior, given that of one function."""

    @abstractmethod
    def posterior(self, prior: Any, array: Callable[..., Array]) -> Any:
        """Return the posterior on inducing points from the arrays of a file."""

    @abstractmethod
    def arrays(self, prior: Any) -> dict[str, Array]:
        """Return what a file needs of a dense prior besides its inputs."""

    @abstractmethod
    def prior(self, rule: Any, X: Array, array: Callable[[str], Array]) -> tuple[Any, int]:
        """Return the dense prior with these arrays, and its number of sites."""


@dataclass(frozen=True)
class SignLatents(Latents):
    """One function for each target; of two classes its sign decides, of ordered ones its value.

    Parameters
    ----------
    labels : sequence of float, default (-1.0, 1.0)
        What the likelihood calls the classes.
    """

    labels: Sequence[float] = SIGN_LABELS

    @property
    def n_functions(self) -> int:
        """One: targets do not depend on each other's functions."""
        return 1

    def mixed(self, members: Sequence[Marginals]) -> Marginals:
        """Return mean and variance of a mixture with equal weights."""
        mean = np.mean([q.mean for q in members], axis=0)
        square = np.mean([q.variance + (q.mean - mean) ** 2 for q in members], axis=0)
        return Marginals(mean, square)

    def moved(self, q: Marginals, there: Marginals, here: Marginals) -> Marginals:
        """Return q, moved as from here to there."""
        scale = there.variance / here.variance
        return Marginals(q.mean + there.mean - here.mean, scale * q.variance)

    def log_proba(self, likelihood: Likelihood, q: Marginals) -> tuple[Array, ...]:
        """Return the log probability of each label: of signs, log P(−1) and log P(+1)."""
        return label_log_proba(likelihood, q, self.labels)

    def drawn(self, fits: Sequence[Any], cross: Array, prior: Array, count: int, rng: Any) -> Array:
        """Draw each target's function."""
        F = covariance_factor(fits[0].posterior.predict_covariance(cross, prior), prior)
        drawn = rng.standard_normal((len(fits), count, F.shape[1])) @ F.T
        mean = np.array([fit.posterior.predicted_mean(cross) for fit in fits])
        return np.asarray(mean[:, None] + drawn)

    def drawn_log_proba(self, likelihood: Likelihood, f: Array, noise: Array) -> tuple[Array, ...]:
        """Return the log probability of each label, given the first function."""
        if np.any(noise):
            return self.log_proba(likelihood, Marginals(f[0], noise))
        one = np.ones_like(f[0])
        return tuple(likelihood.log_prob(label * one, f[0]) for label in self.labels)

    def respond(self, posterior: HyperPosterior) -> Response:
        """Return leave-one-out latent values at hyperparameters tuned without the row."""
        return respond(posterior)

    def in_memory(self, X: Any, targets: Sequence[Array], weight: Array) -> tuple[list[Rows], Any]:
        """Return the rows of each target, and what makes the prior of a covariance matrix."""
        return [Rows(y, weight, X) for y in targets], partial(DensePrior.of, X=X)

    def in_blocks(self, blocks: RowBlocks, code: Callable[[Array], Array]) -> RowBlocks:
        """Return the rows themselves."""
        return Coded(blocks, code)

    def on_points(self, Z: Array, *, whole: bool) -> Callable[[Any], Any]:
        """Return what makes the prior of one function."""
        return partial(InducingPrior.of, Z=Z, whole=whole)

    def again_on_points(self, one: InducingPrior) -> InducingPrior:
        """Return the prior itself."""
        return one

    def posterior(self, prior: Any, array: Callable[..., Array]) -> Any:
        """Return the posterior of one function."""
        m = len(prior.points)
        values = Whitened(array("V", m, m), array("w", m), float(array("half_log_det")))
        return InducingPosterior(prior, values)

    def arrays(self, prior: DensePrior) -> dict[str, Array]:
        """Return nothing."""
        return {}

    def prior(self, rule: Any, X: Array, array: Callable[[str], Array]) -> tuple[DensePrior, int]:
        """Return the prior of a covariance matrix, and its number of rows."""
        return DensePrior.of(rule, X), len(X)


@dataclass(frozen=True)
class ClassLatents(Latents):
    """A function for each class; the class with the largest value is the most probable.

    Parameters
    ----------
    n_classes : int
    softmax : bool, default False
        Whether class probabilities are those of the softmax and not of the multinomial probit.
    """

    n_classes: int
    softmax: bool = False

    @property
    def n_functions(self) -> int:
        """One for each class."""
        return self.n_classes

    def mixed(self, members: Sequence[ClassMarginals]) -> ClassMarginals:
        """Return mean and covariance of a mixture with equal weights."""
        mean = np.mean([q.mean for q in members], axis=0)
        off = [q.mean - mean for q in members]
        squares = [
            q.covariance + d[:, :, None] * d[:, None, :] for q, d in zip(members, off, strict=True)
        ]
        return ClassMarginals(mean, np.mean(squares, axis=0))

    def moved(
        self, q: ClassMarginals, there: ClassMarginals, here: ClassMarginals
    ) -> ClassMarginals:
        """Return q, moved as from here to there; of the covariance, the size changes."""
        size, before = (np.einsum("icc->i", c.covariance) for c in (there, here))
        scale = (size / before)[:, None, None]
        return ClassMarginals(q.mean + there.mean - here.mean, scale * q.covariance)

    def log_proba(self, likelihood: Likelihood, q: ClassMarginals) -> Array:
        """Return log class probabilities."""
        return softmax_log_proba(q) if self.softmax else class_log_proba(q)

    def drawn(self, fits: Sequence[Any], cross: Array, prior: Array, count: int, rng: Any) -> Array:
        """Draw each class's function."""
        [fit] = fits
        return np.asarray(fit.posterior.draw(cross, prior, count, rng))

    def drawn_log_proba(self, likelihood: Likelihood, f: Array, noise: Array) -> Array:
        """Return log class probabilities."""
        if not self.softmax:
            return independent_log_proba(f.T, noise)
        own = noise[:, None, None] * np.eye(self.n_classes)
        return softmax_log_proba(ClassMarginals(f.T, own)) if np.any(noise) else log_softmax(f.T, 1)

    def respond(self, posterior: HyperPosterior) -> Response:
        """Return leave-one-out latent values at hyperparameters tuned without the row."""
        [fit] = posterior.evaluation.fits
        return respond_classes(posterior, partial(self.log_proba, fit.problem.likelihood))

    def in_memory(self, X: Any, targets: Sequence[Array], weight: Array) -> tuple[list[Rows], Any]:
        """Return the differences of examples with class codes, and what makes their prior."""
        [codes] = targets
        labels = ClassLabels.of(np.asarray(codes, dtype=int), self.n_classes, weight)
        if self.softmax:
            return [Rows(labels.codes, weight)], partial(ScorePrior.of, X=X, labels=labels)
        return [labels.rows(weight)], partial(ClassPrior.of, X=X, labels=labels)

    def in_blocks(self, blocks: RowBlocks, code: Callable[[Array], Array]) -> RowBlocks:
        """Return the differences of rows with class codes."""
        return Coded(blocks, code, AsDifferences(self.n_classes))

    def on_points(self, Z: Array, *, whole: bool) -> Callable[[Any], Any]:
        """Return what makes the prior of all classes."""
        return partial(ClassInducingPrior.of, Z=Z, n_classes=self.n_classes, whole=whole)

    def again_on_points(self, one: InducingPrior) -> ClassInducingPrior:
        """Return the prior of all classes."""
        return ClassInducingPrior(one, self.n_classes)

    def posterior(self, prior: Any, array: Callable[..., Array]) -> Any:
        """Return the posterior of all classes."""
        m = len(prior.points)
        size = m * (self.n_classes - 1)
        values = Coupled(array("V", size, size), array("w", size), float(array("half_log_det")), m)
        return ClassInducingPosterior(prior, values)

    def arrays(self, prior: Any) -> dict[str, Array]:
        """Return the labels and how often each counts."""
        codes, _, copies = prior.labels
        return {"codes": codes.astype(float), "copies": copies}

    def prior(self, rule: Any, X: Array, array: Callable[[str], Array]) -> tuple[Any, int]:
        """Return the prior of all classes, and the number of differences."""
        codes, copies = array("codes"), array("copies")
        if not np.isin(codes, np.arange(self.n_classes)).all() or np.any(copies < 1.0):
            raise ValueError("its labels are not those of its classes")
        labels = ClassLabels(codes.astype(int), self.n_classes, copies)
        if self.softmax:
            return ScorePrior.of(rule, X, labels), len(X) * self.n_classes
        return ClassPrior.of(rule, X, labels), len(X) * (self.n_classes - 1)


SIGNS = SignLatents()


def class_codes(fit: Fit) -> Array:
    """Return the class codes of the rows of a fit with a function for each class."""
    prior = fit.problem.prior
    if prior.dense:
        return np.asarray(prior.labels.codes)
    return np.concatenate(list(fit.problem.blocks.collect(_codes_of, None, "")))


def _codes_of(rows: Rows, kept: Any, shared: None) -> Array:
    return np.asarray(rows.X.labels.codes)
