"""What each latent function of an online estimator learns, and what its answers are worth."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from cavity.arrays import Array
from cavity.estimators.coding import choose_split

__all__ = ["Classes", "Targets", "Tasks", "class_codes"]


class Tasks(ABC):
    """What each latent function is to learn of a stream's targets."""

    @abstractmethod
    def targets(self, y: Array) -> list[Array]:
        """Return each latent function's targets."""

    @abstractmethod
    def losses(self, y: Array, log_probs: Sequence[Array]) -> Array:
        """Return each row's loss, given each latent function's log probability of its target."""


class Classes(Tasks):
    """Each class against the others, or one of two against the other."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes

    def targets(self, y: Array) -> list[Array]:
        """Return labels ±1."""
        tasks = choose_split(self.n_classes, "one_vs_rest").tasks(y, self.n_classes)
        return [task.labels for task in tasks]

    def scores(self, answers: list[tuple[Array, Array]]) -> Array:
        """Return log probabilities from each function's log P(−1) and log P(+1)."""
        return choose_split(self.n_classes, "one_vs_rest").scores(answers, self.n_classes)

    def losses(self, y: Array, log_probs: Sequence[Array]) -> Array:
        """Return minus the log of the normalised probability of each row's class."""
        if len(log_probs) == 1:
            return -log_probs[0]
        found = np.stack(log_probs)
        own = y == np.arange(self.n_classes)[:, None]
        # Another class's function has said how probable it is *not* that class.
        p = np.where(own, np.exp(found), -np.expm1(np.minimum(found, 0.0)))
        return np.log(np.sum(p, axis=0)) - found[y, np.arange(len(y))]


class Targets(Tasks):
    """One function, and its targets as they are."""

    def targets(self, y: Array) -> list[Array]:
        """Return the targets."""
        return [y]

    def losses(self, y: Array, log_probs: Sequence[Array]) -> Array:
        """Return minus the log density."""
        return -log_probs[0]


def class_codes(y: Array, classes: Array) -> Array:
    """Return the number of each label's class; refuse labels that were not declared."""
    codes = np.clip(np.searchsorted(classes, y), 0, len(classes) - 1)
    new = np.unique(y[classes[codes] != y])
    if len(new):
        raise ValueError(
            f"y has labels {new.tolist()} that are not among the classes {classes.tolist()} of "
            "the first call to partial_fit: declare all classes there"
        )
    return codes
