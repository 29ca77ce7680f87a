"""The price of tuning on fewer rows: kernels of smaller tables, in the theory of all rows.

With few rows, tuning often chooses another kernel altogether, which no expansion around the kernel
of all rows can foresee. So the kernel is tuned again on a few random parts of the table. At each of
these kernels the theory gives averages over all training sets of that size. An example is only
scored with kernels of parts that it is not in.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from cavity.arrays import Array, NotPositiveDefiniteError
from cavity.estimators.fitted import FittedModel, fitted_model
from cavity.estimators.problems import with_limits
from cavity.estimators.validation import is_precomputed
from cavity.model_selection.pools import PoolInputs
from cavity.resampling import Averages, Scores, SizeSolution
from cavity.resampling.scores import Losses

_PARTS = {4: 0.6, 2: 0.4}
"""Share of the kernels that are tuned on a quarter and on a half of the rows."""
_LEAST = 8
"""Fewest rows of a part."""
_OWN = 1.2
"""A kernel tuned on a training set also fits its accidents, which costs more than the same kernel
does on other training sets: this many times as much. Settled on nine tables against refits."""

Score = Callable[[Scores, Sequence[Averages]], Array]
"""From held-out averages to scores of each example, of shape (..., n)."""
Solve = Callable[..., list[SizeSolution]]


class OtherKernel(NamedTuple):
    """Held-out averages, over training sets of all rows, at the kernel of a part of them."""

    scores: Scores
    held_out: list[Averages]
    absent: Array
    """The rows that are not in the part."""


class Anchor(NamedTuple):
    """What is known at a size whose price is measured."""

    size: int
    fixed: list[Averages]
    """At the kernel of all rows."""
    expanded: list[Averages]
    """With the effect of tuning to first order."""
    kernels: list[OtherKernel]


@dataclass(frozen=True)
class TuningPrice:
    """By how much tuning on fewer rows costs more than its first order says.

    Parameters
    ----------
    inputs : PoolInputs
    solve : callable
        Finds a theory's averages from pool, sizes and law.
    seed : int
        Of the random parts.
    n_kernels : int
        How many kernels are tuned; with none the price is zero.
    """

    inputs: PoolInputs
    solve: Solve
    seed: int
    n_kernels: int

    @classmethod
    def seeded(
        cls, inputs: PoolInputs, solve: Solve, random_state: Any, n_kernels: int
    ) -> "TuningPrice":
        """Return the price with parts drawn by a random state."""
        if not isinstance(n_kernels, Integral) or n_kernels < 0:
            raise ValueError(f"n_kernels must be an integer of at least 0; got {n_kernels!r}.")
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        return cls(inputs, solve, seed, int(n_kernels))

    def applied(self, sizes: Array, found: Sequence[Losses]) -> list[Losses]:
        """Return scores at these sizes, in numbers of different rows, with the price added."""
        if not self._matters(sizes):
            return list(found)
        extra = self.differences(_losses)(sizes)
        return [self._with(losses, *by) for losses, by in zip(found, extra, strict=True)]

    def measured(self, sizes: Array, score: Score) -> Array:
        """Return what is to be added to the mean of another score at these sizes."""
        return self.differences(score)(sizes) if self._matters(sizes) else np.zeros(len(sizes))

    def differences(self, score: Score) -> Callable[[Array], Array]:
        """Return how much mean scores rise, by size: nothing at one row and at all rows."""
        found = [self._at(anchor, score) for anchor in self._anchors]
        none = np.zeros_like(found[0])
        sizes = [1.0, *(anchor.size for anchor in self._anchors), len(self._present)]
        curve = PchipInterpolator(np.log(sizes), np.stack([none, *found, none]))
        return lambda m: curve(np.log(np.clip(m, sizes[0], sizes[-1])))

    @cached_property
    def _present(self) -> Array:
        """The rows that can be drawn."""
        return np.flatnonzero(self.inputs.share)

    def _matters(self, sizes: Array) -> bool:
        # At all rows the curve is the leave-one-out, whatever the tuning costs with fewer.
        return bool(np.min(sizes) < len(self._present) - 0.5) and bool(self._anchors)

    def _at(self, anchor: Anchor, score: Score) -> Array:
        """Return the mean score with the kernels of parts, minus that to first order."""
        scores = self.inputs.scores
        here, expanded = score(scores, anchor.fixed), score(scores, anchor.expanded)
        more = [
            np.mean((score(k.scores, k.held_out) - here)[..., k.absent], axis=-1)
            for k in anchor.kernels
        ]
        fallen = np.mean((here - expanded)[..., self._present], axis=-1)
        return fallen + _OWN * np.mean(more, axis=0)

    def _with(self, losses: Losses, error: float, log_loss: float, brier: float) -> Losses:
        classes = self.inputs.classes
        is_class, of_two = classes is not None, classes is not None and len(classes) == 2
        raised = partial(_raised, some=self._present)
        return losses._replace(
            error=raised(losses.error, error, 1.0 if is_class else np.inf),
            log_loss=raised(losses.log_loss, log_loss, np.inf, positive=is_class),
            brier=None if not is_class else raised(losses.brier, brier, 1.0 if of_two else 2.0),
        )

    @cached_property
    def _anchors(self) -> list[Anchor]:
        """Sizes at which the price is measured, in increasing order."""
        n, found = len(self._present), []
        for share, of_all in sorted(_PARTS.items(), reverse=True):
            size, count = n // share, round(of_all * self.n_kernels)
            if size < _LEAST or not is_priced(self.inputs):
                continue
            parts = _parts(n, size, count, np.random.default_rng([self.seed, size]))
            kernels = [k for part in parts for k in self._kernel(self._present[part])]
            if kernels:
                found.append(Anchor(size, *self._known(size), kernels))
        return found

    def _known(self, size: int) -> tuple[list[Averages], list[Averages]]:
        """Return averages at the kernel of all rows, without and with the first order."""
        pools = self.inputs.pools
        fixed = [self._solved(pool._replace(tuning=None), size) for pool in pools]
        share = size / len(self._present)
        each = zip(pools, fixed, strict=True)
        return fixed, [pool.tuning(c, share) for pool, c in each]

    def _solved(self, pool: Any, size: int) -> Averages:
        [found] = self.solve(pool, np.array([float(size)]), "subsample")
        return found.held_out

    def _kernel(self, rows: Array) -> Iterator[OtherKernel]:
        """Tune on a part of the rows; nothing comes out if that cannot be done."""
        model = _tuned_on(self.inputs, rows)
        if model is None:
            return
        own = replace(self.inputs, fitted=model, retune=False)
        held_out = [self._solved(pool, len(rows)) for pool in own.pools]
        yield OtherKernel(own.scores, held_out, np.setdiff1d(self._present, rows))


def is_priced(inputs: PoolInputs) -> bool:
    """Whether the kernel was tuned under the hierarchical prior, on this very table.

    What the price would be elsewhere has not been compared with refits.
    """
    alpha, place = getattr(inputs.model, "alpha", 0.0), inputs.fitted.rows.position
    share = inputs.share[inputs.share > 0.0]
    if not np.allclose(share, 1.0 / len(share), rtol=1e-9) or np.ndim(alpha):
        return False
    if is_precomputed(inputs.model.kernel) or any(pool.tuning is None for pool in inputs.pools):
        return False
    if any(process.given is None for process in inputs.fitted.processes):
        return False
    weight = inputs.fitted.processes[0].fits[0].problem.rows.weight
    # Several sites of one example have its weight.
    weight = weight[:: len(weight) // len(inputs.fitted.processes[0].X_train_)]
    there = place >= 0
    counted = np.array_equal(weight, np.bincount(place[there], minlength=len(weight)))
    return counted and np.array_equal(there, inputs.share > 0.0)


def _parts(n: int, size: int, count: int, rng: np.random.Generator) -> list[Array]:
    """Return random parts, cut from as few permutations as possible: every row counts alike."""
    found: list[Array] = []
    while len(found) < count:
        order = rng.permutation(n)
        found += [order[i : i + size] for i in range(0, n - size + 1, size)]
    return found[:count]


def _tuned_on(inputs: PoolInputs, rows: Array) -> FittedModel | None:
    """Return a copy of the estimator's model, tuned on some rows; None if that fails."""
    y = inputs.y[rows]
    if inputs.classes is not None and len(np.unique(y)) < len(inputs.classes):
        return None
    copy = clone(inputs.model).set_params(average_hyperparameters=0, verbose=0)
    copy = with_limits(copy, inputs.y[inputs.share > 0.0])
    given = {} if inputs.offset is None else {"offset": inputs.offset[rows]}
    with warnings.catch_warnings():
        # The table's own fit has warned of what matters.
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            return fitted_model(copy.fit(inputs.X[rows], y, **given))  # type: ignore[no-any-return]
        except NotPositiveDefiniteError:
            return None


def _losses(scores: Scores, averages: Sequence[Averages]) -> Array:
    """Return errors, log losses and Brier scores, which are zero for targets."""
    found = scores.held_out(averages)
    brier = np.zeros_like(found.error) if found.brier is None else found.brier
    return np.stack([found.error, found.log_loss, brier])


def _raised(
    points: Array, by: float, ceiling: float, *, positive: bool = True, some: Any = ...
) -> Array:
    """Return scores whose mean over some is higher by a number, and which keep their limits."""
    mean = float(np.mean(points[some]))
    if by > 0.0 and np.isfinite(ceiling) and mean < ceiling:
        return points + min(by / (ceiling - mean), 1.0) * (ceiling - points)
    if positive and mean > 0.0:
        return points * max(1.0 + by / mean, 0.0)
    return points if positive else points + by
