"""Whether more rows, better inputs or cleaner labels lead to a goal."""

from typing import Any, NamedTuple

import numpy as np

from cavity.model_selection.contested import contested_of
from cavity.model_selection.criteria import Criterion
from cavity.model_selection.goals import StatedGoal
from cavity.model_selection.leave_one_out import inputs_help

REACH = 10
"""More rows than this many times the present ones count as out of reach."""


class Advice(NamedTuple):
    """What to do, and why.

    Attributes
    ----------
    verdict : {"enough", "more rows", "better inputs", "cleaner labels"}
    reason : str
    """

    verdict: str
    reason: str


def advise(curve: Any, goal: StatedGoal, probability: float, first: Criterion) -> Advice:
    """Return the verdict on a goal; ``first`` is its criterion.

    1. It is met with the present rows, with the probability: enough.
    2. It is with at most ten times as many: more rows.
    3. The probability that it is missed even with these is smaller than the probability: more rows,
       to find out.
    4. The inputs help, some labels are wrong, and without what they cost the forecast for ten times
       the rows would meet the goal: cleaner labels.
    5. Better inputs.
    """
    n = curve.source.n_present
    if first.now >= probability:
        return Advice("enough", f"{n:,} rows meet it with probability {first.now:.2f}.")
    if first.met_with(REACH * n) and not first.met_with(n):
        text = f"{first.rows:,} rows meet it with probability {probability:g}."
        return Advice("more rows", text)
    asked = {goal.measure: goal.value}
    far = curve.probability(REACH * n, **asked)
    if far > 1.0 - probability:
        return Advice(
            "more rows",
            f"{REACH * n:,} rows meet it with probability {far:.2f}: this table is too small to "
            "tell, and more rows will.",
        )
    return _without_rows(curve, goal, probability, first)


def _without_rows(curve: Any, goal: StatedGoal, probability: float, first: Criterion) -> Advice:
    """Return the advice where rows do not help."""
    n = curve.source.n_present
    if first.rows is None:
        why = _out_of_reach(curve, goal, probability)
    else:
        why = f"It would take {first.rows:,} rows, {first.rows / n:.0f} times the present ones"
    if not _inputs_help(curve):
        text = f"{why}. So far these inputs tell nothing about the target."
        return Advice("better inputs", text)
    labels = contested_of(curve, goal.measure)
    ahead = curve.forecast(REACH * n, goal.measure).value
    if labels.certain and ahead - labels.cost <= goal.value:
        return Advice("cleaner labels", f"{why}. But {labels.words}.")
    return Advice("better inputs", f"{why}. What is missing is not in these inputs.")


def _out_of_reach(curve: Any, goal: StatedGoal, probability: float) -> str:
    """Return where the curve ends; it may end below the goal, but not as surely as is asked."""
    end = curve.forecast(np.inf, goal.measure)
    _, floor, low, high = map(float, goal.shown(end))
    if end.value > goal.value:
        return f"No number of rows will do: the {goal.what} ends at about {floor:.3g}"
    return (
        f"No number of rows meets it with probability {probability:g}: the {goal.what} ends at "
        f"about {floor:.3g}, but that is not sure ({low:.3g} to {high:.3g})"
    )


def _inputs_help(curve: Any) -> bool:
    """Return whether left-out rows are predicted better than without inputs."""
    is_class = curve.classes is not None
    if not is_class and not curve.source.inputs.fitted.likelihood.quadratic:
        return True
    return inputs_help(curve.point_log_loss[-1], np.asarray(curve.y), classes=is_class).helps
