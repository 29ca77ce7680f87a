"""The effect of one input on the predictions, with a band for what the data leave open."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from sklearn.utils import check_random_state

from cavity.arrays import Array
from cavity.model_selection.display import new_axes
from cavity.model_selection.importance import check_level, feature_names
from cavity.model_selection.surface import (
    Surface,
    checked_table,
    column_of,
    replaced,
    surface_of,
)

_MOST_ROWS, _DRAWN_ROWS, _MOST_POINTS, _DRAWS = 200, 100, 2400, 200
"""Rows to average over, those of the draws, and the most points of functions drawn together."""


class Band(NamedTuple):
    """Averaged predictions with an interval, of shape (values, classes or targets)."""

    mean: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class FeatureEffect:
    """The average prediction when one input has the same value in every row.

    Attributes
    ----------
    feature : str
    values : ndarray of shape (n_values,)
        Values of the input.
    mean, low, high : ndarray of shape (n_values,) or (n_values, n_outputs)
        Average prediction and the ends of its interval. For two classes it is the probability of
        the second one; with more, or with several targets, there is a column for each.
    outputs : tuple
        The class or the number of the target that each column belongs to.
    level : float
        Coverage of the interval.
    has_classes : bool
        Whether predictions are class probabilities.
    """

    feature: str
    values: Array
    mean: Array
    low: Array
    high: Array
    outputs: tuple[Any, ...]
    level: float
    has_classes: bool

    def plot(self, ax: Any = None) -> Any:
        """Draw the effect on the given matplotlib axes, or on new ones, and return them."""
        ax = new_axes() if ax is None else ax
        is_number = self.values.dtype.kind in "iuf"
        x = self.values if is_number else self.values.astype(str)
        curves = zip(
            *(np.atleast_2d(part.T) for part in (self.mean, self.low, self.high)), strict=True
        )
        for name, (mean, low, high) in zip(self.outputs, curves, strict=True):
            if is_number:
                (line,) = ax.plot(x, mean, label=str(name))
                ax.fill_between(x, low, high, color=line.get_color(), alpha=0.2, linewidth=0.0)
            else:
                ax.errorbar(x, mean, [mean - low, high - mean], fmt="o", capsize=3, label=str(name))
        ax.set_xlabel(self.feature)
        single = len(self.outputs) == 1
        what = f"probability of {self.outputs[0]}" if single else "probability"
        ax.set_ylabel(what if self.has_classes else "average prediction")
        if not single:
            ax.legend(frameon=False)
        return ax


def feature_effect(
    estimator: Any,
    X: Any,
    feature: Any,
    *,
    grid: Any = 50,
    level: float = 0.9,
    random_state: Any = None,
) -> FeatureEffect:
    """Return how the average prediction depends on one input, with its posterior interval.

    At each value the input is set to it in all rows, and the predictions are averaged (partial
    dependence). The interval is that of the average itself, not of single predictions: exact for a
    regressor of Gaussian targets, by functions drawn from the posterior for others and for classes.
    Offsets are taken to be zero.

    Parameters
    ----------
    estimator : GaussianProcessClassifier, GaussianProcessRegressor, or a Pipeline ending in one
        Fitted.
    X : array or pandas DataFrame of shape (n_samples, n_features)
        Rows to average over, such as the training rows; at most 200 of them are drawn.
    feature : str or int
        Name of a column, or its position.
    grid : int or array-like, default 50
        Values of the input, or how many, evenly spaced over its range. An input that is no number
        or has fewer different values takes each of these.
    level : float, default 0.9
        Coverage of the interval.
    random_state : int, RandomState instance or None, default None

    Returns
    -------
    FeatureEffect

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity import GaussianProcessRegressor, feature_effect
    >>> X = np.random.default_rng(0).uniform(-1, 1, (80, 2))
    >>> model = GaussianProcessRegressor(RBF(1.0), alpha=1e-4, optimizer=None)
    >>> effect = feature_effect(model.fit(X, 3 * X[:, 0]), X, "x0", grid=[-0.5, 0.5])
    >>> effect.mean.round(1).tolist()
    [-1.5, 1.5]
    """
    surface, table, rng = surface_of(estimator), checked_table(X), check_random_state(random_state)
    check_level(level)
    names = feature_names(estimator, table)
    place = _place(feature, names)
    values = _grid(column_of(table, place), grid)
    band = effect_of(surface, table, [place], [[value] for value in values], level, rng)
    model = estimator[-1] if hasattr(estimator, "steps") else estimator
    outputs = tuple(getattr(model, "classes_", range(band.mean.shape[1])))
    if surface.has_classes and len(outputs) == 2:
        outputs, band = outputs[1:], Band(*(part[:, 1:] for part in band))
    mean, low, high = (part[:, 0] if len(outputs) == 1 else part for part in band)
    about = (outputs, level, surface.has_classes)
    return FeatureEffect(names[place], values, mean, low, high, *about)


def _place(feature: Any, names: list[str]) -> int:
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if not isinstance(feature, str) and 0 <= feature < len(names):
        return int(feature)
    known = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    raise ValueError(f"feature must be a column, one of {known}, or its number; got {feature!r}.")


def _grid(column: Any, grid: Any) -> Array:
    """Return the values to try: those given, the different ones, or an even range."""
    if np.ndim(grid):
        values = np.asarray(grid)
        if values.ndim > 1 or not len(values):
            raise ValueError(
                f"grid must be a number of values, or a list of them; got shape {values.shape}."
            )
        return values
    if grid < 2:
        raise ValueError(f"grid must be at least 2, or the values themselves; got {grid!r}.")
    present = np.asarray(column)
    if present.dtype.kind not in "iuf":
        return np.array(sorted(set(present), key=str), dtype=object)
    distinct = np.unique(present[np.isfinite(present)])
    return distinct if len(distinct) <= grid else np.linspace(distinct[0], distinct[-1], grid)


def effect_of(
    surface: Surface,
    table: Any,
    columns: Sequence[int],
    values: Sequence[Sequence[Any]],
    level: float,
    rng: Any,
) -> Band:
    """Return the average prediction with these columns set to each of several values."""
    rows = rng.permutation(len(table))[:_MOST_ROWS]
    if surface.is_linear:
        tables = [replaced(table, rows, columns, value) for value in values]
        mean, variance = surface.averages(tables)
        reach = ndtri(0.5 + level / 2.0) * np.sqrt(variance)
        return Band(mean, mean - reach, mean + reach)
    few = min(max(_MOST_POINTS // len(values), 20), _DRAWN_ROWS)
    every, joint = (_set(table, part, columns, values) for part in (rows, rows[:few]))
    predicted = surface.predictions(every).reshape(len(values), len(rows), -1)
    # Functions drawn at all values together give a band without jumps between them.
    drawn = surface.draws(joint, _DRAWS, rng).reshape(_DRAWS, len(values), -1, predicted.shape[-1])
    # Fewer rows tell how wide the band is, all of them where it is.
    off = drawn.mean(axis=2) - predicted[:, :few].mean(axis=1)
    mean = predicted.mean(axis=1)
    low, high = mean + np.quantile(off, [0.5 - level / 2.0, 0.5 + level / 2.0], axis=0)
    if surface.has_classes:
        low, high = np.clip([low, high], 0.0, 1.0)
    return Band(mean, np.minimum(low, mean), np.maximum(high, mean))


def _set(table: Any, rows: Array, columns: Sequence[int], values: Sequence[Sequence[Any]]) -> Any:
    """Return rows of a table once for each value of these columns."""
    settings = [np.repeat(column, len(rows)) for column in zip(*values, strict=True)]
    return replaced(table, np.tile(rows, len(values)), columns, settings)
