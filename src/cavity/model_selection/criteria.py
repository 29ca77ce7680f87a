"""How many rows each of several criteria asks for, as in plans of clinical prediction models.

The criteria are those of Riley and others, with the theory of the learning curve in the place of
formulas for generalised linear models.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2, norm

from cavity.arrays import Array
from cavity.model_selection.forecast import FARTHEST
from cavity.model_selection.goals import StatedGoal, variance_of

MARGIN, RATIO, OPTIMISM, STABLE, MOST = 0.05, 1.1, 0.05, 0.05, 0.9
"""Of a class's share, of the residual spread, in R², of predictions, and the share of rows."""
_RANGE = 4.0
"""Standard deviations of a real target that count as its range: that of a probability is one."""
_Z = float(norm.ppf(0.975))


@dataclass(frozen=True)
class Criterion:
    """What is asked of a training set, and how many rows that takes.

    Attributes
    ----------
    name : str
    asks : str
        What has to be reached.
    now : float
        What is reached with the present rows.
    rows : int or None
        The rows that it takes; None if no number of rows up to a thousand times the present is
        enough.
    """

    name: str
    asks: str
    now: float
    rows: int | None

    def met_with(self, n: float) -> bool:
        """Return whether so many rows are enough."""
        return self.rows is not None and self.rows <= n


def criteria_of(
    curve: Any, goal: StatedGoal, probability: float, sizes: Array, spread: Array
) -> tuple[Criterion, ...]:
    """Return all criteria: the goal first.

    ``spread`` is the share of its range by which nine of ten rows' predictions vary at most, for
    each of the sizes.
    """
    n, asked = curve.source.n_present, {goal.measure: goal.value}
    first = Criterion(
        goal.words,
        f"probability of at least {probability:g}",
        curve.probability(n, **asked),
        curve.size_for(**asked, probability=probability),
    )
    stable = _capped(rows_where(sizes, spread, STABLE), n)
    last = Criterion(
        "stable predictions", f"{MOST:.0%} of rows vary by at most {STABLE:g}", spread[0], stable
    )
    overall = _class_shares if curve.classes is not None else _residual_spread
    return first, overall(curve), _optimism(curve), last


def spread_of(curve: Any, instability: Array) -> Array:
    """Return by which share of its range the prediction of most rows varies at most, by size."""
    order, scale = np.argsort(instability, axis=1), 1.0
    if curve.classes is None:
        scale = _RANGE * float(np.sqrt(variance_of(curve)))
    total = np.cumsum(curve.share[order], axis=1)
    place = np.minimum(np.sum(total < MOST - 1e-12, axis=1), instability.shape[1] - 1)
    found = np.take_along_axis(instability, order, axis=1)[np.arange(len(place)), place]
    return np.asarray(found / scale)


def rows_where(sizes: Array, values: Array, target: float) -> float:
    """Return the size at which values fall to a target: straight lines in logarithms."""
    x, y = np.log(sizes), np.log(np.maximum(values, np.finfo(float).tiny))
    goal = np.log(target)
    k = int(np.clip(np.sum(y > goal) - 1, 0, len(x) - 2))
    slope = (y[k + 1] - y[k]) / (x[k + 1] - x[k])
    if slope >= 0.0:
        return 1.0 if y[0] <= goal else np.inf
    return float(np.exp(min(x[k] + (goal - y[k]) / slope, 700.0)))


def _capped(rows: float, n: int) -> int | None:
    """Return whole rows, or None if they are more than anyone looks for."""
    return None if rows > FARTHEST * n else max(1, int(np.ceil(rows - 1e-9)))


def _shares(curve: Any) -> Array:
    return np.array([curve.share[curve.y == label].sum() for label in curve.classes])


def _effective(curve: Any) -> float:
    return 1.0 / float(np.sum(curve.share**2))


def _class_shares(curve: Any) -> Criterion:
    """Return the rows for a 95 % interval of the share of each class: a binomial proportion."""
    p = _shares(curve)
    variance = float(np.max(p * (1.0 - p)))
    n, effective = curve.source.n_present, _effective(curve)
    rows = _Z**2 * variance / MARGIN**2 * n / effective
    return Criterion(
        "overall risk",
        f"share of each class known to ± {MARGIN:g}",
        _Z * float(np.sqrt(variance / effective)),
        _capped(rows, n),
    )


def _residual_spread(curve: Any) -> Criterion:
    """Return the rows for a 95 % interval of the residual standard deviation: a chi-square."""
    n, effective = curve.source.n_present, _effective(curve)
    rows = bisect_left(range(2, 10_000), True, key=lambda m: bool(_ratio(m) <= RATIO)) + 2
    return Criterion(
        "residual spread",
        f"standard deviation known to a factor of {RATIO:g}",
        _ratio(max(effective, 2.0)),
        _capped(rows * n / effective, n),
    )


def _ratio(n: float) -> float:
    ends = np.asarray(chi2.ppf([0.025, 0.975], n - 1.0)) / (n - 1.0)
    return float(np.sqrt(max(ends[1], 1.0 / ends[0])))


def _optimism(curve: Any) -> Criterion:
    """Return the rows at which R² on the training rows is hardly better than on others.

    The difference falls in proportion to the rows, as it does for a model of fixed size.
    """
    n = curve.source.n_present
    now = max(_apparent_r2(curve) - _held_out_r2(curve), 0.0)
    return Criterion(
        "little overfitting",
        f"R² on training rows at most {OPTIMISM:g} too good",
        now,
        _capped(n * now / OPTIMISM, n),
    )


def _apparent_r2(curve: Any) -> float:
    is_class = curve.classes is not None
    return _r2(curve, curve.apparent_log_loss if is_class else curve.apparent_error)


def _held_out_r2(curve: Any) -> float:
    measure = "log_loss" if curve.classes is not None else "error"
    return _r2(curve, curve.forecast(curve.source.n_present, measure).value)


def _r2(curve: Any, loss: float) -> float:
    """Return the explained share of the variance or, of classes, Nagelkerke's R²."""
    if curve.classes is None:
        return 1.0 - loss / variance_of(curve)
    p = _shares(curve)
    alone = float(-p[p > 0.0] @ np.log(p[p > 0.0]))
    return float(np.expm1(-2.0 * (alone - loss)) / np.expm1(-2.0 * alone))
