"""What a model is wanted to reach, in the units of its learning curve."""

from typing import Any, NamedTuple

import numpy as np

from cavity.model_selection.forecast import Forecast, one_goal
from cavity.resampling.scores import LARGEST_TARGET, SMALLEST_SPREAD

_OF_TARGETS = ("rmse", "r2")


class StatedGoal(NamedTuple):
    """A goal as it was stated, and what that is for the curve.

    Attributes
    ----------
    what : {"error rate", "mean squared error", "log loss", "RMSE", "R²"}
    stated : float
    measure : {"error", "log_loss"}
        What of the curve it is about.
    value : float
        What that may be at most.
    variance : float
        Of real targets; R² is one minus the error as a share of it.
    """

    what: str
    stated: float
    measure: str
    value: float
    variance: float = 1.0

    @property
    def words(self) -> str:
        """The goal in words."""
        return f"{self.what} of at {'least' if self.what == 'R²' else 'most'} {self.stated:g}"

    def shown(self, found: Forecast) -> Forecast:
        """Return a forecast of the measure in the units of the goal."""
        parts = [np.asarray(part, dtype=float) for part in found[1:]]
        if self.what == "RMSE":
            parts = [np.sqrt(part) for part in parts]
        if self.what == "R²":
            value, low, high = (1.0 - part / self.variance for part in parts)
            parts = [value, high, low]
        return Forecast(found.size, *parts)


def goal_of(curve: Any, **goals: float | None) -> StatedGoal:
    """Return the one goal that is given: error, log_loss, rmse or r2.

    The last two are for real targets: an rmse is the root of the error, and r2 is one minus the
    error as a share of the variance of the curve's targets.
    """
    name, value = one_goal("plan", **goals)
    y = np.asarray(curve.y)[curve.share > 0.0]
    if curve.classes is None and np.all(y == y[0]):
        raise ValueError(f"A plan needs targets that differ; all {len(y)} are {y[0]:g} here.")
    if name in _OF_TARGETS and curve.classes is not None:
        raise ValueError(f"{name}= is for real targets: give a goal for error= or log_loss=.")
    positive = name in ("error", "rmse") or (name == "log_loss" and curve.classes is not None)
    if positive and value <= 0.0:
        raise ValueError(f"The goal {name}={value!r} must be above zero, as no model is perfect.")
    if name == "rmse" and not SMALLEST_SPREAD < value < LARGEST_TARGET:
        raise ValueError(
            f"The goal rmse={value!r} must be between {SMALLEST_SPREAD:g} and {LARGEST_TARGET:g}, "
            "as the errors of targets are."
        )
    if name == "error" and curve.classes is not None and value >= 1.0:
        raise ValueError(f"An error rate is a share below 1; got the goal error={value!r}.")
    if name == "r2" and value >= 1.0:
        raise ValueError(f"R² is below 1; got the goal r2={value!r}.")
    return _stated(curve, name, float(value))


def _stated(curve: Any, name: str, value: float) -> StatedGoal:
    if name == "rmse":
        return StatedGoal("RMSE", value, "error", value**2)
    if name == "r2":
        variance = variance_of(curve)
        return StatedGoal("R²", value, "error", (1.0 - value) * variance, variance)
    whose = "error rate" if curve.classes is not None else "mean squared error"
    return StatedGoal(whose if name == "error" else "log loss", value, name, value)


def variance_of(curve: Any) -> float:
    """Return the variance of a curve's real targets."""
    y, share = np.asarray(curve.y, dtype=float), curve.share
    return float((y - y @ share) ** 2 @ share)
