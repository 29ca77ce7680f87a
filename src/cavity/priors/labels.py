"""Which class each example is of, and the differences of latent values that this is about."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.sites import Rows, contrasts, other_classes


class ClassLabels(NamedTuple):
    """Which class each example is of."""

    codes: Array
    n_classes: int
    copies: Array
    """How many copies of it there are, at least one."""

    @classmethod
    def of(cls, codes: Array, n_classes: int, weight: Array | None = None) -> ClassLabels:
        """Return the labels of examples that count this often, by default once."""
        copies = np.ones(len(codes)) if weight is None else np.maximum(weight, 1.0)
        return cls(np.asarray(codes), n_classes, copies)

    def rows(self, weight: Array | None = None) -> Rows:
        """Return the differences as rows of a binary problem: C − 1 for each example."""
        w = np.ones(len(self.codes)) if weight is None else np.asarray(weight, dtype=float)
        w = np.repeat(w, self.n_classes - 1)
        return Rows(np.ones_like(w), w)

    @property
    def others(self) -> Array:
        """The classes other than each example's own."""
        return other_classes(self.codes, self.n_classes)

    @property
    def contrasts(self) -> Array:
        """The matrices A_i, from class values to differences."""
        return contrasts(self.codes, self.n_classes)

    @property
    def from_differences(self) -> Array:
        """Their pseudoinverses A⁺, from differences to class values of mean zero."""
        q = self.n_classes - 1
        return self.contrasts.swapaxes(1, 2) @ (np.eye(q) - 1.0 / self.n_classes)

    def by_example(self, a: Array) -> Array:
        """Return one row for each example, one column for each difference."""
        return np.reshape(a, (len(self.codes), self.n_classes - 1))

    def to_classes(self, a: Array) -> Array:
        """Return A_i' a_i of each example, of shape (n, C)."""
        a, index = self.by_example(a), np.arange(len(self.codes))
        found = np.zeros((len(a), self.n_classes))
        found[index[:, None], self.others] = -a
        found[index, self.codes] = np.sum(a, axis=1)
        return found

    def of_classes(self, F: Array) -> Array:
        """Return A_i f_i of each example, of shape (n, C − 1)."""
        index = np.arange(len(self.codes))
        return F[index, self.codes][:, None] - F[index[:, None], self.others]


def site_precisions(labels: ClassLabels, tau: Array) -> tuple[Array, Array]:
    """Return one copy's τ of each difference, (n, C − 1), and 1 + Σ τ, the precision of u."""
    one = labels.by_example(tau) / labels.copies[:, None]
    return one, 1.0 + np.sum(one, axis=1)
