"""How labels of some rows are expected to change what a latent function says about others.

One row after the other is labelled in thought. Its site gets the precision that it has on average
over the label, which says how much variance of all other rows turns into spread (see `outcomes`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.estimators.process import FittedProcess
from cavity.model_selection.outcomes import Outcomes, Prospect
from cavity.sites import Marginals

_GRID = 1.0 - np.linspace(1.0, 0.0, 25) ** 2
"""Shares of the variance that labels can take away, closer where little is left."""
_REFINED = 200
"""Rows whose gain is worked out, after all were ranked by its first order."""


class Function:
    """A latent function at some inputs: marginals, and covariances of all with a few.

    Parameters
    ----------
    process : FittedProcess
    X : array of shape (n, d)
    outcomes : Outcomes
        What the labels that it is behind may be.
    shift : float
        What is added to the latent values.
    """

    def __init__(self, process: FittedProcess, X: Any, outcomes: Outcomes, shift: float) -> None:
        self.outcomes, self._X, self._rule = outcomes, X, process.rule
        self._posterior = process.fits[0].posterior
        self._cross = process.evaluation.prior.cross(X)
        own = self._rule.diag(X)
        q: Marginals = self._posterior.predict(self._cross, own)
        drift = process.likelihood.drift(X)
        self.marginals = Marginals(q.mean + drift + shift, q.variance)
        self.noise = np.minimum(np.broadcast_to(self._rule.noise(X), own.shape), q.variance)

    def covariances(self, rows: Array) -> Array:
        """Return the covariances of all inputs with some of them, without noise of their own."""
        pulled = self._posterior.explaining(self._cross[rows])
        return self._rule.matrix(self._X, self._X[rows]) - self._cross @ pulled


@dataclass(frozen=True)
class LossTable:
    """The expected loss at each target as a function of its spread: cubics between tabulated ones.

    Mean, and sum of spread and variance, stay what they are, so it is a function of one number.
    """

    most: Array
    """The largest spread, of shape (targets,)."""
    values: Array
    """Of shape (grid, targets)."""
    slopes: Array
    """By how much they fall with the spread."""

    @classmethod
    def of(cls, outcomes: Outcomes, q: Marginals, noise: Array) -> "LossTable":
        """Return the table of these targets."""
        most = np.maximum(q.variance - noise, 0.0)
        spread = _GRID[:, None] * most
        at = Prospect(np.broadcast_to(q.mean, spread.shape), spread, q.variance - spread)
        return cls(most, outcomes.loss(at), outcomes.slope(at))

    def __call__(self, spread: Array) -> Array:
        """Return the losses at spreads of shape (..., targets)."""
        left, of, t, step = self._places(spread)
        a, b = self.values[left, of], self.values[left + 1, of]
        rest, step = 1.0 - t, step * self.most
        c, d = step * self.slopes[left, of], step * self.slopes[left + 1, of]
        found = a * rest**2 * (1.0 + 2.0 * t) + b * t**2 * (3.0 - 2.0 * t)
        return np.asarray(found - t * rest * (c * rest - d * t))

    def slope(self, spread: Array) -> Array:
        """Return by how much they fall with the spread."""
        left, of, t, _ = self._places(spread)
        return np.asarray((1.0 - t) * self.slopes[left, of] + t * self.slopes[left + 1, of])

    def _places(self, spread: Array) -> tuple[Array, Array, Array, Array]:
        """Return the grid points to the left, the targets, the ways to the next, and the steps."""
        share = np.divide(spread, self.most, out=np.zeros_like(spread), where=self.most > 0.0)
        share, last = np.clip(share, 0.0, 1.0), len(_GRID) - 1
        # The grid is quadratic in the number of its point.
        left = np.minimum((last * (1.0 - np.sqrt(1.0 - share))).astype(int), last - 1)
        step = _GRID[left + 1] - _GRID[left]
        return left, np.arange(spread.shape[-1]), (share - _GRID[left]) / step, step


class Outlook:
    """What one function is expected to say once rows are labelled in thought.

    Parameters
    ----------
    function : Function
    candidates, targets : arrays of int
        Numbers of the inputs that may be labelled, and of those whose loss counts.
    covariance : array of shape (candidates, targets)
    column : callable
        Returns the covariances of all candidates with one of them, before any is labelled.
    """

    def __init__(
        self,
        function: Function,
        candidates: Array,
        targets: Array,
        covariance: Array,
        column: Callable[[int], Array],
    ) -> None:
        self._outcomes, self._column = function.outcomes, column
        mean, variance = function.marginals
        zero = np.zeros(len(candidates))
        self._here = Prospect(mean[candidates], zero, variance[candidates])
        self._noise = function.noise[candidates]
        self._most = self._here.variance - self._noise
        q, noise = Marginals(mean[targets], variance[targets]), function.noise[targets]
        self._table = LossTable.of(function.outcomes, q, noise)
        self._spread = np.zeros(len(targets))
        self._covariance = np.array(covariance)
        # A row's own loss is not that of new rows: what its label says of itself does not count.
        _, *self._same = np.intersect1d(candidates, targets, return_indices=True)
        self._steps: list[Array] = []

    @property
    def loss(self) -> float:
        """The expected loss, averaged over the targets."""
        return float(np.mean(self._table(self._spread)))

    def information(self, rows: Array) -> Array:
        """Return what the labels of some candidates are expected to say about their own values."""
        at = Prospect(*(part[rows] for part in self._here))
        return self._outcomes.entropy(at) - self._least_entropy[rows]

    @cached_property
    def _least_entropy(self) -> Array:
        """The entropy of each candidate's label once its latent value is known."""
        return self._outcomes.entropy(self._here.known(self._noise))

    def ranks(self) -> Array:
        """Return the gain in expected loss by each candidate, to first order."""
        slopes = self._table.slope(self._spread)
        own = self._covariance[*self._same] ** 2 * slopes[self._same[1]]
        found = np.einsum("ct,ct,t->c", self._covariance, self._covariance, slopes)
        found[self._same[0]] -= own
        return np.asarray(found * self.precision / len(slopes))

    @property
    def precision(self) -> Array:
        """The expected precision of each candidate's site."""
        return self._outcomes.precision(self._here)

    def gains(self, rows: Array) -> Array:
        """Return the gain in expected loss by some of the candidates."""
        at = Prospect(*(part[rows] for part in self._here))
        more = self._outcomes.precision(at)[:, None] * self._covariance[rows] ** 2
        places = dict(np.transpose(self._same).tolist())
        own = [(i, places[c]) for i, c in enumerate(rows.tolist()) if c in places]
        if own:
            more[*np.array(own).T] = 0.0
        now = self._table(self._spread)
        return np.mean(now - self._table(self._spread + more), axis=1)

    def label(self, row: int) -> None:
        """Let a candidate be labelled."""
        column = self._column(row)
        for step in self._steps:
            column = column - step[row] * step
        at = Prospect(*(part[row : row + 1] for part in self._here))
        root = np.sqrt(self._outcomes.precision(at)[0])
        self._steps.append(root * column)
        ahead = root * self._covariance[row]
        self._spread = np.minimum(self._spread + ahead**2, self._table.most)
        self._covariance -= self._steps[-1][:, None] * ahead
        spread = np.minimum(self._here.spread + self._steps[-1] ** 2, self._most)
        total = self._here.spread + self._here.variance
        self._here = Prospect(self._here.mean, spread, total - spread)


def gains_of(outlooks: Sequence[Outlook], rows: Array, criterion: str) -> Array:
    """Return the gain by each of some candidates, summed over the functions."""
    of = Outlook.information if criterion == "information" else Outlook.gains
    return np.asarray(np.sum([of(outlook, rows) for outlook in outlooks], axis=0))


def best_next(outlooks: Sequence[Outlook], free: Array, criterion: str) -> int:
    """Return the free candidate of largest gain."""
    if criterion != "information":
        ranks = np.sum([outlook.ranks() for outlook in outlooks], axis=0)[free]
        free = free[np.argsort(-ranks, kind="stable")[:_REFINED]]
    return int(free[np.argmax(gains_of(outlooks, free, criterion))])
