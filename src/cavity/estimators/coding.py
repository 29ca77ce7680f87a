"""How a problem of several classes is split into binary ones, and their answers put together."""

from abc import ABC, abstractmethod
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from cavity.arrays import Array

__all__ = ["BinaryTask", "Split", "choose_split"]


class BinaryTask(NamedTuple):
    """A binary problem: which training rows take part, and their labels ±1."""

    rows: Array
    labels: Array


class Split(ABC):
    """A set of binary problems, each answered by log P(−1) and log P(+1) for every new row."""

    has_proba = True

    @abstractmethod
    def tasks(self, codes: Array, n_classes: int) -> list[BinaryTask]:
        """Split examples with class codes 0, 1, ... into binary problems."""

    @abstractmethod
    def scores(self, answers: list[tuple[Array, Array]], n_classes: int) -> Array:
        """Return one score per row and class, the largest for the predicted class.

        They are log probabilities where the split has them.
        """


class TwoClasses(Split):
    """Nothing to split: the second class is the positive one."""

    def tasks(self, codes: Array, n_classes: int) -> list[BinaryTask]:
        """Return the one problem."""
        return [BinaryTask(np.arange(len(codes)), _signs(codes == 1))]

    def scores(self, answers: list[tuple[Array, Array]], n_classes: int) -> Array:
        """Return both log probabilities as they are: each is accurate in its own tail."""
        return np.stack(answers[0], axis=1)


class OneVsRest(Split):
    """Each class against all the others; probabilities are normalised."""

    def tasks(self, codes: Array, n_classes: int) -> list[BinaryTask]:
        """Return a problem for each class."""
        everything = np.arange(len(codes))
        return [BinaryTask(everything, _signs(codes == k)) for k in range(n_classes)]

    def scores(self, answers: list[tuple[Array, Array]], n_classes: int) -> Array:
        """Return normalised log probabilities."""
        log_p = np.stack([positive for _, positive in answers], axis=1)
        return log_p - logsumexp(log_p, axis=1, keepdims=True)


class OneVsOne(Split):
    """Each class against each other one; predictions by vote."""

    has_proba = False

    def tasks(self, codes: Array, n_classes: int) -> list[BinaryTask]:
        """Return a problem for each pair of classes."""
        return [self._task(codes, a, b) for a, b in combinations(range(n_classes), 2)]

    def _task(self, codes: Array, a: int, b: int) -> BinaryTask:
        rows = np.flatnonzero((codes == a) | (codes == b))
        return BinaryTask(rows, _signs(codes[rows] == b))

    def scores(self, answers: list[tuple[Array, Array]], n_classes: int) -> Array:
        """Return votes; the summed probabilities, scaled below one vote, decide between equals."""
        votes = np.zeros((len(answers[0][0]), n_classes))
        for (a, b), (negative, positive) in zip(
            combinations(range(n_classes), 2), answers, strict=True
        ):
            votes[:, a] += (negative > positive) + np.exp(negative) / (n_classes + 1)
            votes[:, b] += (positive >= negative) + np.exp(positive) / (n_classes + 1)
        return votes


def choose_split(n_classes: int, multi_class: str) -> Split:
    """Return the split that the estimator's parameter asks for."""
    if n_classes == 2:
        return TwoClasses()
    return OneVsRest() if multi_class == "one_vs_rest" else OneVsOne()


def _signs(positive: Array) -> Array:
    return np.where(positive, 1.0, -1.0)
