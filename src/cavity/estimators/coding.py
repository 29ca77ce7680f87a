"""How labels become binary problems, and how their answers become class probabilities."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import logsumexp

from cavity.arrays import Array
from cavity.likelihoods import Likelihood
from cavity.sites import Marginals

NO_PROBA = (
    "one_vs_one multi-class mode does not support predicting probability estimates. "
    "Use one_vs_rest mode instead."
)


class BinaryTask(NamedTuple):
    """A binary problem: which training rows take part, and their labels ±1."""

    rows: Array
    labels: Array


Code = Callable[[Array], Array]
"""From targets as they are to those of one problem."""


@dataclass(frozen=True)
class ClassCode:
    """One class against the others."""

    label: Any

    def __call__(self, y: Array) -> Array:
        """Return 1 for this class and −1 for all others."""
        return _signs(np.asarray(y) == self.label)


@dataclass(frozen=True)
class RankCode:
    """The number of each label among the classes in their order."""

    classes: Array

    def __call__(self, y: Array) -> Array:
        """Return 0, 1, ..."""
        return np.searchsorted(self.classes, np.asarray(y)).astype(float)


@dataclass(frozen=True)
class TargetCode:
    """A real target in the model's units; one column, if there are several."""

    column: int | None
    origin: float
    scale: float

    def __call__(self, y: Array) -> Array:
        """Return the target in these units."""
        own = np.asarray(y if self.column is None else y[:, self.column], dtype=float)
        return (own - self.origin) / self.scale


@dataclass(frozen=True)
class Coding(ABC):
    """A set of binary problems, each answered by log P(−1) and log P(+1) for every new row."""

    n_classes: int
    has_proba: ClassVar[bool] = True
    joint: ClassVar[bool] = False
    """Whether all classes are one problem, and its answers are class probabilities."""
    ordered: ClassVar[bool] = False
    """Whether the classes are in an order, and have one latent function."""

    @property
    @abstractmethod
    def n_tasks(self) -> int:
        """Number of binary problems."""

    @property
    def n_functions(self) -> int:
        """Number of latent functions."""
        return self.n_tasks

    @property
    def several(self) -> bool:
        """Whether one problem has several latent functions."""
        return self.n_functions > self.n_tasks

    @property
    def labels(self) -> Sequence[float]:
        """What a problem's likelihood calls its classes."""
        return SIGN_LABELS

    @abstractmethod
    def tasks(self, codes: Array) -> list[BinaryTask]:
        """Split examples with class codes 0, 1, ... into binary problems."""

    def codes(self, targets: Sequence[Array]) -> Array:
        """Return the class codes of rows that are in all problems, given their targets there."""
        return np.argmax(targets, axis=0)

    @abstractmethod
    def scores(self, answers: Sequence[tuple[Array, Array]]) -> Array:
        """Return one score per row and class, the largest for the predicted class.

        They are log probabilities if the coding has them.
        """

    def best(self, likelihood: Likelihood, f: Array) -> Array:
        """Return the number of the most probable class, given latent values.

        They have a column for each class, or are those of one function, whose sign decides.
        """
        return np.argmax(f, axis=1) if f.ndim > 1 else (f > 0.0).astype(int)

    @abstractmethod
    def score_gradients(self, scores: Array, slopes: Sequence[tuple[Array, Array]]) -> Array:
        """Return the gradients of these log probabilities, of shape (rows, classes, inputs).

        ``slopes`` holds those of log P(−1) and of log P(+1) for each problem.
        """


class BinaryCoding(Coding):
    """Nothing to split: the second class is the positive one."""

    @property
    def n_tasks(self) -> int:
        """One."""
        return 1

    def tasks(self, codes: Array) -> list[BinaryTask]:
        """Return the one problem."""
        return [BinaryTask(np.arange(len(codes)), _signs(codes == 1))]

    def codes(self, targets: Sequence[Array]) -> Array:
        """Return 1 for positive targets and 0 for negative ones."""
        return np.asarray(targets[0] > 0.0).astype(int)

    def scores(self, answers: Sequence[tuple[Array, Array]]) -> Array:
        """Return both log probabilities as they are: each is accurate in its own tail."""
        return np.stack(answers[0], axis=1)

    def score_gradients(self, scores: Array, slopes: Sequence[tuple[Array, Array]]) -> Array:
        """Return both gradients as they are."""
        return np.stack(slopes[0], axis=1)


class OneVsRest(Coding):
    """Each class against all the others; probabilities are normalised."""

    @property
    def n_tasks(self) -> int:
        """One for each class."""
        return self.n_classes

    def tasks(self, codes: Array) -> list[BinaryTask]:
        """Return a problem for each class."""
        everything = np.arange(len(codes))
        return [BinaryTask(everything, _signs(codes == k)) for k in range(self.n_classes)]

    def scores(self, answers: Sequence[tuple[Array, Array]]) -> Array:
        """Return normalised log probabilities."""
        log_p = np.stack([positive for _, positive in answers], axis=1)
        return log_p - logsumexp(log_p, axis=1, keepdims=True)

    def score_gradients(self, scores: Array, slopes: Sequence[tuple[Array, Array]]) -> Array:
        """Return the gradients of log p less those of the log of the sum."""
        found = np.stack([positive for _, positive in slopes], axis=1)
        shares = np.exp(scores)[:, :, None]
        return found - np.sum(shares * found, axis=1, keepdims=True)


class Multinomial(Coding):
    """Nothing to split: all classes at once, each with its own latent function."""

    joint = True

    @property
    def n_tasks(self) -> int:
        """One."""
        return 1

    @property
    def n_functions(self) -> int:
        """One for each class."""
        return self.n_classes

    def tasks(self, codes: Array) -> list[BinaryTask]:
        """Return the one problem, with class codes for labels."""
        return [BinaryTask(np.arange(len(codes)), codes)]

    def scores(self, answers: Sequence[Any]) -> Array:
        """Return the log class probabilities as they are."""
        return np.asarray(answers[0])

    def score_gradients(self, scores: Array, slopes: Sequence[Any]) -> Array:
        """Return these gradients as they are."""
        return np.asarray(slopes[0])


class Ordered(Coding):
    """Nothing to split: classes in the order of their labels, with one latent function."""

    joint = ordered = True

    @property
    def n_tasks(self) -> int:
        """One."""
        return 1

    @property
    def labels(self) -> Sequence[float]:
        """0, 1, 2, ..."""
        return tuple(map(float, range(self.n_classes)))

    def tasks(self, codes: Array) -> list[BinaryTask]:
        """Return the one problem, with class codes for labels."""
        return [BinaryTask(np.arange(len(codes)), codes.astype(float))]

    def codes(self, targets: Sequence[Array]) -> Array:
        """Return the targets."""
        return np.asarray(targets[0]).astype(int)

    def scores(self, answers: Sequence[Any]) -> Array:
        """Return the log class probabilities as they are."""
        return np.stack(answers[0], axis=1)

    def best(self, likelihood: Likelihood, f: Array) -> Array:
        """Return the number of the most probable class, given the function's values."""
        return np.argmax([likelihood.log_prob(label, f) for label in self.labels], axis=0)

    def score_gradients(self, scores: Array, slopes: Sequence[Any]) -> Array:
        """Return these gradients, one for each class."""
        return np.stack(slopes[0], axis=1)


class OneVsOne(Coding):
    """Each class against each other one; predictions by vote."""

    has_proba = False

    @property
    def n_tasks(self) -> int:
        """One for each pair of classes."""
        return self.n_classes * (self.n_classes - 1) // 2

    def tasks(self, codes: Array) -> list[BinaryTask]:
        """Return a problem for each pair of classes."""
        found = []
        for a, b in combinations(range(self.n_classes), 2):
            rows = np.flatnonzero((codes == a) | (codes == b))
            found.append(BinaryTask(rows, _signs(codes[rows] == b)))
        return found

    def scores(self, answers: Sequence[tuple[Array, Array]]) -> Array:
        """Return votes; the summed probabilities, scaled below one vote, break ties."""
        n = self.n_classes
        votes = np.zeros((len(answers[0][0]), n))
        for (a, b), (negative, positive) in zip(combinations(range(n), 2), answers, strict=True):
            votes[:, a] += (negative > positive) + np.exp(negative) / (n + 1)
            votes[:, b] += (positive >= negative) + np.exp(positive) / (n + 1)
        return votes

    def score_gradients(self, scores: Array, slopes: Sequence[tuple[Array, Array]]) -> Array:
        """Refuse: votes are not probabilities."""
        raise ValueError(NO_PROBA)


_CODINGS: dict[str, Callable[[int], Coding]] = {
    "one_vs_rest": OneVsRest,
    "one_vs_one": OneVsOne,
    "multinomial": Multinomial,
}


def coding(n_classes: int, multi_class: str = "one_vs_rest") -> Coding:
    """Return the coding with this name; two classes need none."""
    return BinaryCoding(2) if n_classes == 2 else _CODINGS[multi_class](n_classes)


def coding_of(model: Likelihood, n_classes: int, multi_class: str = "one_vs_rest") -> Coding:
    """Return the coding of a likelihood's classes: of those in an order, or with this name."""
    return Ordered(n_classes) if model.support == "codes" else coding(n_classes, multi_class)


SIGN_LABELS = (-1.0, 1.0)


def label_log_proba(
    model: Likelihood, q: Marginals, labels: Sequence[float] = SIGN_LABELS
) -> tuple[Array, ...]:
    """Return the log probability of each label, given means and variances of latent values."""
    one = np.ones_like(q.mean)
    return tuple(model.tilted(label * one, q).log_z for label in labels)


def _signs(positive: Array) -> Array:
    return np.where(positive, 1.0, -1.0)


def log_losses(codes: Array, log_probs: Sequence[Array]) -> Array:
    """Return each row's log loss, given each function's log probability of its own target.

    With one function this is the loss itself; with several, each separates one class from the rest.
    """
    if len(log_probs) == 1:
        return -log_probs[0]
    found = np.stack(log_probs)
    own = codes == np.arange(len(found))[:, None]
    # Another class's function gives the probability of *not* being that class.
    p = np.where(own, np.exp(found), -np.expm1(np.minimum(found, 0.0)))
    return np.log(np.sum(p, axis=0)) - found[codes, np.arange(len(codes))]


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
