"""How many rows a goal needs."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.estimators.columns import columns
from cavity.model_selection.advice import Advice, advise
from cavity.model_selection.criteria import Criterion, criteria_of, spread_of
from cavity.model_selection.curve import LearningCurve
from cavity.model_selection.forecast import Forecast
from cavity.model_selection.goals import StatedGoal, goal_of
from cavity.model_selection.learning import learning_curve

_TIMES = (1, 2, 4)


@dataclass(frozen=True)
class PlannedSize:
    """What so many rows lead to.

    Attributes
    ----------
    rows : int
    value, low, high : float
        Forecast in the units of the goal, with its 90 % interval.
    probability : float
        That the goal is met.
    spread : float
        By which share of its range the prediction of nine in ten rows varies at most from one
        training set of this size to another: mean absolute deviation, of a probability or, of a
        real target, in units of four standard deviations.
    """

    rows: int
    value: float
    low: float
    high: float
    probability: float
    spread: float


@dataclass(frozen=True, repr=False)
class Plan:
    """How many rows a goal needs; prints as a short report.

    Attributes
    ----------
    goal : StatedGoal
    probability : float
        With which the goal is to be met.
    outlook : tuple of PlannedSize
        With the present number of rows, with twice and with four times as many.
    floor : Forecast
        What no number of rows removes, in the units of the goal, with its 90 % interval.
    instability : ndarray of shape (3, n)
        Mean absolute deviation of each row's held-out prediction over training sets of these three
        sizes: of the probability of its label, or of its expected target.
    criteria : tuple of Criterion
        What is asked of a training set, and how many rows each takes. The goal comes first.
    advice : Advice
        The verdict in words, with the reason.
    """

    goal: StatedGoal
    probability: float
    outlook: tuple[PlannedSize, ...]
    floor: Forecast
    instability: Array
    criteria: tuple[Criterion, ...]
    advice: Advice

    @property
    def rows(self) -> int | None:
        """The rows that meet all criteria: the largest number wins. None if no number does."""
        each = [criterion.rows for criterion in self.criteria]
        return None if None in each else max(rows for rows in each if rows is not None)

    @property
    def verdict(self) -> str:
        """One of "enough", "more rows", "better inputs" and "cleaner labels"."""
        return self.advice.verdict

    def to_frame(self) -> Any:
        """Return the criteria as a pandas data frame."""
        import pandas as pd

        rows = [asdict(criterion) for criterion in self.criteria]
        return pd.DataFrame(rows).set_index("name").astype({"rows": "Int64"})

    def to_dict(self) -> dict[str, Any]:
        """Return all but the instability of single rows as plain numbers and words."""
        return {
            "goal": self.goal.words,
            "probability": self.probability,
            "outlook": [asdict(some) for some in self.outlook],
            "floor": {key: getattr(self.floor, key) for key in ("value", "low", "high")},
            "criteria": [asdict(criterion) for criterion in self.criteria],
            "rows": self.rows,
            "verdict": self.verdict,
            "reason": self.advice.reason,
        }

    def __repr__(self) -> str:
        ahead = [
            [
                f"{o.rows:,}",
                o.value,
                _ends(o.low, o.high),
                f"{o.probability:.2f}",
                f"{o.spread:.3f}",
            ]
            for o in self.outlook
        ]
        header = ["rows", self.goal.what, "90 % interval", "probability", "varies by"]
        floor, ends = self.floor.value, _ends(self.floor.low, self.floor.high)
        asked = [[c.name, c.asks, f"{c.now:.3g}", _rows(c.rows)] for c in self.criteria]
        return "\n".join(
            [
                f"Goal: {self.goal.words}, with probability {self.probability:g}",
                *columns(header, ahead),
                f"The floor, which no number of rows removes: {floor:.4g} ({ends}).",
                *columns(["criterion", "asks for", "now", "needs"], asked),
                f"For all of these: {_rows(self.rows)}.",
                f"Verdict on the goal: {self.verdict}. {self.advice.reason}",
            ]
        )


def plan(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    error: float | None = None,
    log_loss: float | None = None,
    rmse: float | None = None,
    r2: float | None = None,
    probability: float = 0.8,
    **options: Any,
) -> Plan:
    """Plan how many rows a goal needs, and say whether rows are what is missing.

    Parameters
    ----------
    estimator : GaussianProcessClassifier, GaussianProcessRegressor, Pipeline, or LearningCurve
        A curve from `cavity.learning_curve`, or what that takes.
    X, y : array-like, default None
        The table, unless a curve is given.
    error, log_loss, rmse, r2 : float, default None
        The goal on unseen rows; give one. The error is a rate or a mean squared error; the last two
        are for real targets.
    probability : float, default 0.8
        With which the goal is to be met.
    **options
        Of `cavity.learning_curve`, unless a curve is given.

    Returns
    -------
    Plan

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity import GaussianProcessClassifier, plan
    >>> from cavity.datasets import load_crabs
    >>> X, y = load_crabs(return_X_y=True)
    >>> clf = GaussianProcessClassifier(100.0 * RBF(10.0), optimizer=None)
    >>> found = plan(clf, X, y, error=0.1)
    >>> found.verdict
    'enough'
    """
    if not 0.0 < probability < 1.0:
        raise ValueError(f"probability must lie between 0 and 1; got {probability!r}.")
    curve = estimator
    if not isinstance(estimator, LearningCurve):
        whole = {"train_sizes": _largest(options.get("sample_weight"))}
        curve = learning_curve(estimator, X, y, **(whole | options))
    elif X is not None or y is not None or options:
        raise ValueError("A learning curve has its own table and options: give it and a goal only.")
    goal = goal_of(curve, error=error, log_loss=log_loss, rmse=rmse, r2=r2)
    return _planned(curve, goal, probability)


def _largest(weight: Any) -> list[float]:
    """Return the largest size of a training set: that is all that the curve itself has to know."""
    if weight is None:
        return [1.0]
    weight = np.asarray(weight, dtype=float)
    most = np.sum(weight) / max(np.max(weight), np.finfo(float).tiny)
    return [max(1, int(most + 1e-9))]


def _planned(curve: LearningCurve, goal: StatedGoal, probability: float) -> Plan:
    sizes = float(curve.source.n_present) * np.array(_TIMES)
    instability = curve.source.instability(sizes)
    spread = spread_of(curve, instability)
    criteria = criteria_of(curve, goal, probability, sizes, spread)
    ahead = goal.shown(curve.forecast(sizes, goal.measure))
    chance = curve.probability(sizes, **{goal.measure: goal.value})
    parts = [part.tolist() for part in (*ahead[1:], chance, spread)]
    outlook = map(PlannedSize, sizes.astype(int).tolist(), *parts)
    floor = Forecast(*map(float, goal.shown(curve.forecast(np.inf, goal.measure))))
    advice = advise(curve, goal, probability, criteria[0])
    return Plan(goal, probability, tuple(outlook), floor, instability, criteria, advice)


def _ends(low: float, high: float) -> str:
    return f"{low:.4g} to {high:.4g}"


def _rows(rows: int | None) -> str:
    return "out of reach" if rows is None else f"{rows:,} rows"
