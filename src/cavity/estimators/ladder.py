"""Tuning on a ladder of tables: a small sample, a larger one, then all rows.

The sample is fitted without inducing points. Its optimum, and how far the evidence there is from
flat, tell where that of a larger table must be: few evaluations touch every row.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cavity.arrays import Array
from cavity.estimators.automatic import KernelComparison
from cavity.estimators.fitting import way_of_tuning
from cavity.estimators.process import Coverage, FittedProcess
from cavity.estimators.progress import progress_of_rung
from cavity.evidence import (
    Evaluation,
    Evidence,
    NormalPrior,
    Optimum,
    climb,
    named_failure,
)
from cavity.kernels import Rule, length_scales
from cavity.priors import choose_points
from cavity.rows import MemoryBlocks, RowBlocks
from cavity.sites import Rows

if TYPE_CHECKING:
    from cavity.estimators.large import LargeTable

_FIRST = 500
"""Rows of the sample that is fitted without inducing points: that takes seconds."""
_GAIN, _GAIN_PER_ROW = 0.02, 2e-6
"""Nats, and nats for each row, that are not worth another evaluation of all rows."""
_STEP = 10
"""The rung below all rows has a tenth of them, if that is at least three times the first one."""
_ROWS_FOR_A_POINT, _LEAST_ROWS = 20, 2000
"""Inducing points are chosen among this many rows for each, and at least this many."""
_FEWEST, _MOST, _ENOUGH = 100, 500, 1e-3
"""With n_inducing="auto": the fewest and the most points, and the share of the prior variance that
may be left over."""
_BLOCK = 4096
_MANY, _SOME, _QUICK = 40, 15, 50_000
"""Most evaluations of a rung of up to so many rows, and of a larger one."""
_UNIT = 0.2
"""Of a coordinate whose curvature is not known, in log hyperparameters."""
_LONG, _LONGER = 3.0, 0.75
"""Length scales begin a rung at most this many times as long as is typical, and longer by this
power of the rows that were seen before: an input that many rows have no use for is seldom needed.
With 100,000 rows and 200 points three times cost 340 nats to begin with, and 20 at the end."""


@dataclass(frozen=True)
class Rung:
    """Some rows in blocks."""

    blocks: RowBlocks
    size: int
    index: Array | None
    """Their numbers, unless they are all rows."""


def on_ladder(
    estimator: Any, table: "LargeTable"
) -> tuple[list[FittedProcess], KernelComparison | None]:
    """Tune every problem's kernel on one rung after the other, and infer with all rows."""
    sample, rungs = table.summary.sample, list(_rungs(table))
    first = sample.part(slice(0, _FIRST))
    small = table.small(first, further=len(rungs) * len(table.problems))
    processes, comparison = way_of_tuning(estimator, small.rule)(estimator, small)
    found = [_up(table, k, process, rungs, len(first)) for k, process in enumerate(processes)]
    return found, comparison


def _rungs(table: "LargeTable") -> Iterator[Rung]:
    sample, n = table.summary.sample, table.summary.n_rows
    middle = min(n // _STEP, len(sample))
    if middle >= 3 * _FIRST:
        part = sample.part(slice(0, middle))
        rows = MemoryBlocks(Rows(part.y, part.weight, part.X), _BLOCK)
        yield Rung(rows, middle, part.index)
    yield Rung(table.blocks, n, None)


def _up(
    table: "LargeTable", k: int, first: FittedProcess, rungs: list[Rung], n_first: int
) -> FittedProcess:
    """Tune one problem's kernel, which a fit to a sample has found, on larger and larger tables."""
    prior = None if first.given is None else first.given.prior
    best, below, n_below = Optimum(first.evaluation.theta, -np.inf, True, 0, 0.0), first, n_first
    rng = np.random.default_rng(table.rngs[k].randint(2**31 - 1))
    for number, rung in enumerate(rungs, 2):
        rule = first.rule.with_theta(best.theta[: len(first.rule.theta)])
        Z = _points(table, rule, rng)
        evidence = table.evidence(k, rule, table.couple(Z), rung.blocks, rung.index)
        evidence = evidence.with_theta(best.theta)
        if first.tuned:
            along = below.posterior.principal(rung.size / n_below)
            if prior is None and evidence.hyperprior is None:
                long = _LONG * (n_below / n_first) ** _LONGER
                theta = _shortened(evidence, table.summary.inputs.std, long)
                along = _reaching(along, theta != best.theta)
                best = replace(best, theta=theta)
            name = f"rung {number} of {len(rungs) + 1}, {rung.size:,} rows, {len(Z)} points"
            best = _search(table, evidence, best, along, prior, name, rung.size)
        evaluation = _evaluate(evidence, best)
        below = replace(first, evaluation=evaluation, at_bounds=(), given=None, prior=prior)
        n_below = rung.size
    bounds = best.at_bounds if prior is None else []
    coverage = _coverage(evaluation, table)
    return replace(below, at_bounds=bounds, coverage=coverage)


def _shortened(evidence: Evidence, spreads: Array, long: float) -> Array:
    """Return the hyperparameters with no length scale so long that nothing would bring it back.

    On few rows the evidence often finds no use for an input. There the slope in its length scale
    is zero, whatever more rows have to say.
    """
    theta, d = evidence.theta.copy(), len(spreads)
    longest = np.log(long * 2.0 * np.sqrt(d) * np.where(spreads > 0.0, spreads, 1.0))
    scales = np.flatnonzero(length_scales(evidence.names))
    for place in np.split(scales, np.flatnonzero(np.diff(scales) > 1) + 1):
        if len(place) == d > 1:
            theta[place] = np.minimum(theta[place], longest)
    return np.clip(theta, *evidence.bounds.T)


def _reaching(along: Array, moved: Array) -> Array:
    """Return directions that reach every hyperparameter that has moved, from a bound perhaps."""
    new = np.flatnonzero(moved & ~np.any(along, axis=1))
    return np.hstack([along, _UNIT * np.eye(len(moved))[:, new]])


def _search(
    table: "LargeTable",
    evidence: Evidence,
    best: Optimum,
    along: Array,
    prior: Any,
    name: str,
    size: int,
) -> Optimum:
    """Climb on one rung, and report it."""
    most, tol = _MANY if size <= _QUICK else _SOME, _GAIN + _GAIN_PER_ROW * size
    progress = progress_of_rung(table.estimator, name, most)
    density = prior if isinstance(prior, NormalPrior) else None
    progress.begin_start()
    found = climb(evidence, best.theta, along, density, progress=progress, tol=tol, most=most)
    progress.end_start()
    progress.summarise(found)
    return found


def _evaluate(evidence: Evidence, best: Optimum) -> Evaluation:
    with named_failure(evidence.with_theta(best.theta).rule):
        found = evidence.at(best.theta, best.starts)
        return found if best.starts is None or found.converged else evidence.at(best.theta)


def _points(table: "LargeTable", rule: Rule, rng: np.random.Generator) -> Array:
    """Return the inducing points: the user's own, or chosen from the sample."""
    estimator, sample = table.estimator, table.summary.sample
    if estimator.inducing_points is not None:
        return _own_points(estimator.inducing_points, sample.X.shape[1])
    auto = estimator.n_inducing in (None, "auto")
    most = _MOST if auto else int(estimator.n_inducing)
    X = sample.X[: max(_LEAST_ROWS, _ROWS_FOR_A_POINT * most)]
    Z, left = choose_points(rule, X, min(most, len(X)), rng)
    enough = np.flatnonzero(left <= _ENOUGH)
    if auto and len(enough):
        Z = Z[: max(_FEWEST, int(enough[0]) + 1)]
    return Z


def _own_points(given: Any, n_features: int) -> Array:
    Z = np.asarray(given, dtype=float)
    if Z.ndim != 2 or Z.shape[1] != n_features or not len(Z) or not np.isfinite(Z).all():
        raise ValueError(
            f"inducing_points must be finite, of shape (m, {n_features}) as the inputs have "
            f"{n_features} columns; got shape {Z.shape}."
        )
    return Z


def _coverage(evaluation: Evaluation, table: "LargeTable") -> Coverage:
    """Return what the points leave over, and what the last doubling of their number has gained."""
    prior, evidence = evaluation.prior, evaluation.evidence
    X, m = table.summary.sample.X[:_LEAST_ROWS], len(prior.points)
    P, rule = prior.cross(X), prior.rule
    whole = float(np.sum(rule.diag(X) - rule.noise(X)))
    left = max(0.0, 1.0 - float(np.sum(P * P)) / whole) if whole > 0.0 else 0.0
    if m < 2:
        return Coverage(left, None)
    half = replace(evidence, couple=table.couple(prior.points[: m // 2]))
    # From the sites under all points it takes half of the passes.
    fewer = half.at(evaluation.theta, evaluation.starts)
    return Coverage(left, evaluation.value - fewer.value)
