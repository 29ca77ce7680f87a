"""What a label is expected to say about a latent value, before it is known.

A latent value is N(mean, variance) now. Labels of other rows will move its mean, by chance, with a
variance called its spread, and leave it the rest of its variance: on average, that is all that
labels do. So what can be expected of them follows from one number for each row.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.likelihoods import Likelihood
from cavity.sites import Marginals

_NODES = np.linspace(-4.8, 4.8, 33)
_WEIGHTS = np.exp(-0.5 * _NODES**2) / np.sum(np.exp(-0.5 * _NODES**2))
"""The trapezoidal rule: five digits for spreads up to 25 times the noise of a probit."""


class Prospect(NamedTuple):
    """Latent values whose means are still to move."""

    mean: Array
    """As it is now."""
    spread: Array
    """Variance of the mean that they will have."""
    variance: Array
    """What will be left of their variance."""

    def known(self, noise: Array) -> "Prospect":
        """Return the values once all but this noise is known."""
        total = self.spread + self.variance
        return Prospect(self.mean, total - noise, noise)


class Outcomes(ABC):
    """Labels of one kind, and what errors in predicting them cost."""

    @abstractmethod
    def precision(self, of: Prospect) -> Array:
        """Return the expected precision of the site that a label will have.

        A label moves the mean at any row by the covariance times the slope of its log probability;
        this is the expected square of that slope.
        """

    @abstractmethod
    def loss(self, of: Prospect) -> Array:
        """Return the expected loss of predicting the label."""

    @abstractmethod
    def slope(self, of: Prospect) -> Array:
        """Return by how much that loss falls if a unit of variance turns into spread."""

    @abstractmethod
    def entropy(self, of: Prospect) -> Array:
        """Return the expected entropy of the label, up to a constant."""


@dataclass(frozen=True)
class ClassOutcomes(Outcomes):
    """Labels of classes; the loss is the log loss.

    Parameters
    ----------
    likelihood : Likelihood
    labels : sequence of float
        All labels.
    share : float, default 1.0
        What this function's log loss counts: a half if each class has its own function.
    """

    likelihood: Likelihood
    labels: Sequence[float]
    share: float = 1.0

    def precision(self, of: Prospect) -> Array:
        """Return E Σ_y p_y (∂ log p_y)²."""
        return self._averages(of)[1]

    def loss(self, of: Prospect) -> Array:
        """Return the expected entropy of the label."""
        return self.share * self._averages(of)[0]

    def slope(self, of: Prospect) -> Array:
        """Return half the precision: what a label says about the value, the value says about it."""
        return 0.5 * self.share * self.precision(of)

    def entropy(self, of: Prospect) -> Array:
        """Return the same: it is the log loss of what a model expects."""
        return self.loss(of)

    def _averages(self, of: Prospect) -> tuple[Array, Array]:
        """Return averages over the means of the entropy and of the squared slope."""
        if not np.any(of.spread):
            return self._at(Marginals(of.mean, of.variance))
        means = of.mean + np.sqrt(of.spread) * _NODES.reshape(-1, *np.ones(of.mean.ndim, int))
        variance = np.broadcast_to(of.variance, means.shape)
        found = self._at(Marginals(means.ravel(), variance.ravel()))
        entropy, squares = (part.reshape(means.shape) for part in found)
        return np.tensordot(_WEIGHTS, entropy, 1), np.tensordot(_WEIGHTS, squares, 1)

    def _at(self, q: Marginals) -> tuple[Array, Array]:
        entropy, squares = np.zeros_like(q.mean), np.zeros_like(q.mean)
        for label in self.labels:
            found = self.likelihood.tilted(label * np.ones_like(q.mean), q)
            p = np.exp(found.log_z)
            # An impossible label says nothing: 0 log 0 is 0.
            entropy -= p * np.where(p > 0.0, found.log_z, 0.0)
            squares += p * np.where(p > 0.0, found.d1, 0.0) ** 2
        return entropy, squares


@dataclass(frozen=True)
class NumberOutcomes(Outcomes):
    """Numbers with Gaussian noise; the loss is the squared error.

    Parameters
    ----------
    noise : float
        Variance of the noise.
    unit : float
        Square of the user's unit.
    """

    noise: float
    unit: float

    def precision(self, of: Prospect) -> Array:
        """Return the precision of a number's prediction: a site's share is always the same."""
        return np.asarray(1.0 / (of.variance + self.noise))

    def loss(self, of: Prospect) -> Array:
        """Return the variance of a number."""
        return np.asarray(self.unit * (of.variance + self.noise))

    def slope(self, of: Prospect) -> Array:
        """Return one, in the user's unit."""
        return np.full_like(of.variance, self.unit)

    def entropy(self, of: Prospect) -> Array:
        """Return half the logarithm of a number's variance."""
        return np.asarray(0.5 * np.log(of.variance + self.noise))
