"""How often goals are met, by the probability that was stated."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from benchmarks.goals.cases import MEASURES
from benchmarks.goals.sets import FACTORS, REPORTED
from benchmarks.tables import markdown
from cavity.model_selection.distribution import ForecastDistribution

__all__ = ["Case", "cases_of", "goals_of", "page"]

Rows = list[dict[str, Any]]
BAR, WITHIN = (0.7, 0.9), (0.65, 0.95)
"""Of the cases stated within the first, the share that must be met lies within the second."""
_EDGES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
_SHARES = np.arange(0.02, 1.41, 0.02)
_STEPS = np.arange(-2.0, 0.51, 0.02)


class Case(NamedTuple):
    """A goal: how probable it was said to be, and whether it was met."""

    row: dict[str, Any]
    stated: float
    met: bool


def goals_of(rows: Rows) -> np.ndarray:
    """Return the goals of one set and measure, settled before anything is fitted.

    They are even steps, from nearly nothing to beyond the best guess that looks at no inputs:
    shares of its score, or distances from it where scores have no zero.
    """
    alone = float(np.mean([row["alone"] for row in rows]))
    density = rows[0]["kind"] == "target" and rows[0]["measure"] == "log_loss"
    return alone + _STEPS if density else alone * _SHARES


def cases_of(rows: Rows) -> list[Case]:
    """Return all goals of all draws."""
    found = []
    for some in _groups(rows, lambda row: (row["set"], row["measure"])).values():
        goals = goals_of(some)
        for row in some:
            stated = _distribution(row).probability(goals)
            met = row["truth"] <= goals
            found += [Case(row, *pair) for pair in zip(stated.tolist(), met.tolist(), strict=True)]
    return found


def _distribution(row: dict[str, Any]) -> ForecastDistribution:
    sides = (np.array(row[key]) for key in ("value", "below", "above"))
    return ForecastDistribution(*sides, row["sampling"], row["lowest"], row["highest"])


def _groups(rows: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def page(rows: Rows) -> str:
    """Return the tables of the reported sets, and a line about the others."""
    ours = cases_of([row for row in rows if row["set"] in REPORTED])
    others = cases_of([row for row in rows if row["set"] not in REPORTED])
    parts = []
    if ours:
        parts += [_summary(ours), _by_probability(ours), _by_set(ours)]
    if others:
        names = ", ".join(dict.fromkeys(case.row["set"] for case in others))
        share, error, count = _share(_stated(others, *BAR))
        parts.append(
            f"On the sets that rules are settled on ({names}), {100 * share:.0f} ± "
            f"{100 * error:.0f} % of {count} cases stated 70–90 % were met."
        )
    return "\n\n".join(parts)


def _stated(cases: list[Case], low: float, high: float) -> list[Case]:
    return [case for case in cases if low <= case.stated <= high]


def _share(cases: list[Case]) -> tuple[float, float, int]:
    """Return the share that is met, its standard error over draws, and the number of cases."""
    if not cases:
        return np.nan, np.nan, 0
    share = float(np.mean([case.met for case in cases]))
    draws = _groups(cases, lambda case: (case.row["set"], case.row["draw"])).values()
    off = [sum(case.met - share for case in draw) for draw in draws]
    return share, float(np.sqrt(np.sum(np.square(off)))) / len(cases), len(cases)


def _summary(cases: list[Case]) -> str:
    share, error, count = _share(_stated(cases, *BAR))
    draws = len({case.row["draw"] for case in cases})
    held = "met" if WITHIN[0] <= share <= WITHIN[1] else "missed"
    sets = len({case.row["set"] for case in cases})
    return (
        f"Of {count} cases stated 70–90 %, over {sets} sets and up to {draws} draws of each, "
        f"**{100 * share:.0f} ± {100 * error:.0f} %** were met (the standard error is over "
        f"draws). The bar of 65–95 % is {held}."
    )


def _by_probability(cases: list[Case]) -> str:
    header = ["stated", *(f"met, {w}, {f} n" for w in _words() for f in FACTORS), "met, all"]
    lines = []
    for low, high in pairwise(_EDGES):
        # Certainties of goals far away would drown the first and the last line.
        some = _stated(cases, max(low, 0.005), min(high, 0.995))
        cells = [
            _cell([c for c in some if (c.row["measure"], c.row["times"]) == (what, factor)])
            for what in MEASURES
            for factor in FACTORS
        ]
        lines.append([f"{100 * low:.0f}–{100 * high:.0f} %", *cells, _cell(some)])
    return markdown(header, lines)


def _by_set(cases: list[Case]) -> str:
    """Return the share that is met of the cases stated 70–90 %, set by set."""
    header = ["stated 70–90 %", "rows", *(f"met, {w}, {f} n" for w in _words() for f in FACTORS)]
    lines = []
    for name, some in _groups(_stated(cases, *BAR), lambda case: case.row["set"]).items():
        cells = [
            _cell([c for c in some if (c.row["measure"], c.row["times"]) == (what, factor)], True)
            for what in MEASURES
            for factor in FACTORS
        ]
        lines.append([name, str(some[0].row["n"]), *cells])
    return markdown(header, lines)


def _words() -> list[str]:
    return [what.replace("_", " ") for what in MEASURES]


def _cell(cases: list[Case], judged: bool = False) -> str:
    """Return the share that is met; one beyond the bar is bold if it is judged."""
    share, error, count = _share(cases)
    if not count:
        return "none"
    text = f"{100 * share:.0f} ± {100 * error:.0f} %"
    return f"**{text}**" if judged and not WITHIN[0] <= share <= WITHIN[1] else text
