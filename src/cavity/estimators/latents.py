"""What a process's latent values are of: one function and signs, or one function for each class."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.estimators.coding import SIGN_LABELS, label_log_proba
from cavity.evidence import HyperPosterior, Response, respond, respond_classes
from cavity.likelihoods import Likelihood
from cavity.likelihoods.multinomial import class_log_proba
from cavity.likelihoods.softmax import softmax_log_proba
from cavity.priors import ClassLabels, ClassPrior, DensePrior, ScorePrior
from cavity.sites import ClassMarginals, Marginals


class Latents(ABC):
    """How Gaussians over latent values are mixed, moved and turned into probabilities."""

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
    def log_prob(self, likelihood: Likelihood, f: Array) -> Any:
        """Return the same if the latent values are known."""

    @abstractmethod
    def respond(self, posterior: HyperPosterior) -> Response:
        """Return leave-one-out latent values at hyperparameters tuned without the row."""

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
    labels : sequence of float
        What the likelihood calls the classes.
    """

    labels: Sequence[float] = SIGN_LABELS

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

    def log_prob(self, likelihood: Likelihood, f: Array) -> tuple[Array, ...]:
        """Return the same if the latent values are known."""
        return tuple(likelihood.log_prob(label * np.ones_like(f), f) for label in self.labels)

    def respond(self, posterior: HyperPosterior) -> Response:
        """Return leave-one-out latent values at hyperparameters tuned without the row."""
        return respond(posterior)

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
    softmax : bool
        Whether class probabilities are those of the softmax and not of the multinomial probit.
    """

    n_classes: int
    softmax: bool = False

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

    def log_prob(self, likelihood: Likelihood, f: Array) -> Array:
        """Return the same if the latent values are known, with the noise of the probit alone."""
        return self.log_proba(likelihood, ClassMarginals(f, np.zeros((*f.shape, f.shape[-1]))))

    def respond(self, posterior: HyperPosterior) -> Response:
        """Return leave-one-out latent values at hyperparameters tuned without the row."""
        [fit] = posterior.evaluation.fits
        return respond_classes(posterior, partial(self.log_proba, fit.problem.likelihood))

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
