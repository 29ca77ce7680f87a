"""Which inputs matter: how much of the predictions is lost when one of them is not known."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from cavity.arrays import Array
from cavity.estimators.columns import RowTable
from cavity.model_selection.surface import (
    Surface,
    checked_table,
    column_of,
    names_of,
    replaced,
    surface_of,
)

_MOST_ROWS = 200
"""More rows would make the cost of an input that of a fit, for one more digit."""
_REPLACED = 3200
"""Replacements for each input: chance changes a large share by about a fiftieth."""


@dataclass(frozen=True)
class FeatureShare:
    """How much one input matters.

    Attributes
    ----------
    feature : str
    importance : float
        Share of the predictions' variance that is lost without the input.
    low, high : float
        Ends of the interval; ``low`` is zero if the input may do nothing.
    """

    feature: str
    importance: float
    low: float
    high: float


class FeatureImportance(RowTable[FeatureShare]):
    """One row per input, the most important first; prints as a table."""

    header = tuple(field.name for field in fields(FeatureShare))

    def cells(self, row: FeatureShare) -> list[Any]:
        """Return a row as it is printed."""
        return [row.feature, *(f"{x:.4f}" for x in (row.importance, row.low, row.high))]


def feature_importance(
    estimator: Any, X: Any, *, n_draws: int = 200, level: float = 0.9, random_state: Any = None
) -> FeatureImportance:
    """Return how much each input matters for the predictions, with an interval.

    An input's importance is the share of the predictions' variance that is lost when its value is
    replaced by that of another row: its total Sobol' index over the rows of the table. Predictions
    are the expected target (at an offset of zero), or the probabilities of all classes. The
    interval comes from functions drawn from the posterior at the fitted kernel. Its lower end
    allows for chance: it is zero if an input without any effect could look like this.

    Inputs that carry the same information share their importance: each can be replaced by the
    others. The shares of all inputs sum to more than one if they act together.

    Parameters
    ----------
    estimator : GaussianProcessClassifier, GaussianProcessRegressor, or a Pipeline ending in one
        Fitted. The inputs of a pipeline are the columns before its first step.
    X : array or pandas DataFrame of shape (n_samples, n_features)
        Rows like those to predict, such as the training rows. If there are more than 200 rows, that
        many are drawn.
    n_draws : int, default 200
        Number of functions drawn.
    level : float, default 0.9
        Coverage of the interval.
    random_state : int, RandomState instance or None, default None

    Returns
    -------
    FeatureImportance

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity import GaussianProcessRegressor, feature_importance
    >>> X = np.random.default_rng(0).uniform(-1, 1, (80, 2))
    >>> model = GaussianProcessRegressor(RBF([1.0, 1.0]), alpha=1e-4, optimizer=None)
    >>> model.fit(X, 3 * X[:, 0] + 0.3 * np.sin(4 * X[:, 1]))
    GaussianProcessRegressor(alpha=0.0001, kernel=RBF(length_scale=[1, 1]),
                             optimizer=None)
    >>> [row.feature for row in feature_importance(model, X, random_state=0)]
    ['x0', 'x1']
    """
    surface, table, rng = surface_of(estimator), checked_table(X), check_random_state(random_state)
    check_level(level)
    if n_draws < 2:
        raise ValueError(f"n_draws must be at least 2; got {n_draws!r}.")
    names = feature_names(estimator, table)
    found = shares(surface, table, [[j] for j in range(len(names))], n_draws, level, rng)
    rows = [FeatureShare(name, *share) for name, share in zip(names, found, strict=True)]
    return FeatureImportance(tuple(sorted(rows, key=lambda row: -row.importance)))


def check_level(level: float) -> None:
    """Reject a coverage that is not between zero and one."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1; got {level!r}.")


def feature_names(estimator: Any, table: Any) -> list[str]:
    """Return the names of a table's columns: its own, or those the estimator was fitted to."""
    known = getattr(estimator, "feature_names_in_", None)
    if hasattr(table, "iloc") or known is None or len(known) != table.shape[1]:
        return names_of(table)
    return [str(name) for name in known]


class Share(NamedTuple):
    """An importance with its interval."""

    importance: float
    low: float
    high: float


def shares(
    surface: Surface,
    table: Any,
    groups: Sequence[Sequence[int]],
    n_draws: int,
    level: float,
    rng: Any,
) -> list[Share]:
    """Return how much each group of columns matters if its values are replaced together."""
    rows = rng.permutation(len(table))[:_MOST_ROWS]
    before = surface.predictions(replaced(table, rows, [], []))
    return [_share(surface, table, group, rows, before, n_draws, level, rng) for group in groups]


def _share(
    surface: Surface,
    table: Any,
    group: Sequence[int],
    rows: Array,
    before: Array,
    n_draws: int,
    level: float,
    rng: Any,
) -> Share:
    columns = [column_of(table, place) for place in group]
    # The rows are in random order: each shift gives every row the values of a random other one.
    count = min(_REPLACED // len(rows), len(rows) - 1)
    others = [np.roll(rows, s) for s in range(1, count + 1)]
    changed = (replaced(table, rows, group, [c[o] for c in columns]) for o in others)
    after = [surface.predictions(part) for part in changed]
    mean = float(_lost(np.tile(before, (len(after), 1)), np.concatenate(after)))
    both, values = np.concatenate([rows, rows]), np.concatenate([rows, others[0]])
    joint = replaced(table, both, group, [column[values] for column in columns])
    first, second = np.split(surface.draws(joint, n_draws, rng), 2, axis=1)
    chance = np.mean(np.sum((first - second - (before - after[0])) ** 2, axis=-1)) / 2.0
    tails = (1.0 - level) / 2.0
    # Chance adds its variance to the mean's square, and once more to the draws around the mean.
    lower = float(np.quantile(_lost(first, second, 2.0 * chance), tails))
    upper = float(np.quantile(_lost(first, second), 1.0 - tails))
    # The draws are made at one shift only; what all shifts change is added.
    further, value = mean - float(_lost(before, after[0])), min(mean, 1.0)
    low = min(max(lower + further, 0.0), value) if lower > 0.0 else 0.0
    return Share(value, low, min(max(upper + further, value), 1.0))


def _lost(before: Array, after: Array, chance: float = 0.0) -> Array:
    """Return half the mean square of the change, less that by chance, relative to the variance.

    This is Jansen's estimate of a total Sobol' index. The variance is that of both sets of
    predictions: if inputs depend on each other, predictions for new combinations vary more.
    """
    change = np.mean(np.sum((before - after) ** 2, axis=-1), axis=-1) / 2.0 - chance
    both = np.concatenate([before, after], axis=-2)
    variance = np.sum(np.var(both, axis=-2), axis=-1)
    return np.divide(change, variance, out=np.zeros_like(variance), where=variance > 0.0)
