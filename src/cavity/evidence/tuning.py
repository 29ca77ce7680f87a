"""The search for the hyperparameters that maximise the evidence, from several starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed

from cavity.arrays import Array, NotPositiveDefiniteError
from cavity.arrays.threads import is_small, one_thread
from cavity.evidence.evidence import Evidence
from cavity.evidence.objective import Objective, l_bfgs_b, named_failure
from cavity.inference import WarmStart
from cavity.sites import Rows

_TUNING_TOL = {True: 3e-5, False: 1e-6}
"""Residual of an inference that is good enough for a search, by whether its evidence is stationary
in what is iterated: then its error is the square of the residual. That of the gradient is not: at
1e-4, which saves 5% of the factorisations, twice as many searches end on a slope above 1e-4."""

Optimizer = Callable[..., tuple[Array, float]]
"""scikit-learn's signature: optimizer(objective, initial_theta, bounds) → (theta, minimum)."""
RandomGenerator = np.random.RandomState | np.random.Generator


class Progress(Protocol):
    """Reports on the search from one start."""

    def begin_start(self) -> None:
        """Note that the search begins."""

    def begin_evaluation(self) -> None:
        """Note that an evaluation of the evidence begins."""

    def end_evaluation(self, value: float) -> None:
        """Note the log evidence that it ended with: −∞ if it failed."""

    def end_start(self) -> None:
        """Note that the search has ended."""

    def summarise(self, optimum: Optimum) -> None:
        """Report the whole search."""


@dataclass(frozen=True)
class Optimum:
    """Where a search ended: the hyperparameters found and the log evidence there."""

    theta: Array
    value: float
    """−∞ if no evaluation succeeded."""
    trusted: bool
    """Whether the inference of the best evaluation had come close to a solution."""
    n_evaluations: int
    seconds: float
    failure: NotPositiveDefiniteError | None = None
    """Why no evaluation succeeded."""
    at_bounds: list[str] = field(default_factory=list)
    """In scikit-learn's words, which hyperparameters ended at a bound."""
    starts: Sequence[WarmStart] | None = None
    """Where an evaluation at the optimum may begin."""


def tune(
    evidences: Sequence[Evidence],
    starts: Sequence[Sequence[Array]] | None = None,
    *,
    bounds: Sequence[Array] | None = None,
    optimizer: str | Optimizer = "fmin_l_bfgs_b",
    n_jobs: int | None = None,
    progress: Callable[[Sequence[int]], Sequence[Progress]] | None = None,
) -> list[Optimum]:
    """Find the hyperparameters that maximise each of several evidences.

    All starts of all evidences share the workers. Their number does not change the results.

    Parameters
    ----------
    evidences : sequence of Evidence
    starts : sequence of sequences of arrays of shape (p,), optional
        Starting points for each evidence; with none, its hyperparameters stay fixed. By default
        the only one is that of its rule. `starting_points` draws more.
    bounds : sequence of arrays of shape (p, 2), optional
        Log bounds, for each evidence; by default the rules' own.
    optimizer : "fmin_l_bfgs_b" or callable, default "fmin_l_bfgs_b"
        The default is L-BFGS-B in `Coordinates`; a callable with scikit-learn's signature gets an
        objective of theta.
    n_jobs : int or None, default None
        Number of starts to run in parallel.
    progress : callable, optional
        Given the number of starts for each evidence, returns one `Progress` for each start.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity.evidence import Evidence, tune
    >>> from cavity.inference import EP
    >>> from cavity.kernels import rule
    >>> from cavity.likelihoods import Probit
    >>> X = np.linspace(0.0, 3.0, 8)[:, None]
    >>> y = np.sign(X[:, 0] - 1.6)
    >>> evidence = Evidence.of(rule(RBF(1.0)), X, [y], Probit(), EP(), np.ones(8))
    >>> [optimum] = tune([evidence])
    >>> optimum.value > evidence.at(evidence.theta).value
    True
    """
    spaces = bounds or [evidence.bounds for evidence in evidences]
    begin = starts or [[e.theta] if len(e.theta) else [] for e in evidences]
    reporters = progress([len(own) for own in begin]) if progress else [None] * sum(map(len, begin))
    search = optimizer if callable(optimizer) else l_bfgs_b
    jobs = [(i, theta) for i, own in enumerate(begin) for theta in own]
    threads = threads_of(evidences)
    run = Parallel(n_jobs=n_jobs if len(jobs) > 1 else 1, return_as="generator")
    found: list[list[Optimum]] = [[] for _ in evidences]
    with threads():
        optima = run(
            delayed(_tune_from)(evidences[i], spaces[i], theta, search, reporter, threads)
            for (i, theta), reporter in zip(jobs, reporters, strict=True)
        )
        for (i, _), reporter, optimum in zip(jobs, reporters, optima, strict=True):
            if reporter:
                reporter.summarise(optimum)
            found[i].append(optimum)
    each = zip(evidences, spaces, found, strict=True)
    return [_best_of(evidence, space, own) for evidence, space, own in each]


def maximise(
    evidence: Evidence,
    theta: Array,
    bounds: Array,
    *,
    optimizer: Optimizer | None = None,
    n_restarts: int = 0,
    rng: RandomGenerator | None = None,
    n_jobs: int | None = None,
) -> Optimum:
    """Maximise one evidence from given hyperparameters, inside given log bounds.

    As `tune`, with ``n_restarts`` further starts drawn from ``rng``.
    """
    starts = starting_points(theta, bounds, n_restarts, rng)
    how = optimizer or "fmin_l_bfgs_b"
    return tune([evidence], [starts], bounds=[bounds], optimizer=how, n_jobs=n_jobs)[0]


def threads_of(evidences: Sequence[Evidence]) -> Callable[[], AbstractContextManager[Any]]:
    """Return a context with as many BLAS threads as the evidences' matrices can use."""
    rows = [rows for evidence in evidences for rows in evidence.rows]
    small = all(isinstance(r, Rows) and is_small(int(r.y.shape[0])) for r in rows)
    return one_thread if small else nullcontext


def starting_points(
    theta: Array,
    bounds: Array,
    n_restarts: int,
    rng: RandomGenerator | None,
) -> list[Array]:
    """Return the first start, moved inside the bounds, and random ones; none if nothing is free."""
    if not len(theta):
        return []
    first = np.clip(theta, bounds[:, 0], bounds[:, 1])
    if not n_restarts:
        return [first]
    if rng is None or not np.isfinite(bounds).all():
        raise ValueError(
            "Restarts of the optimizer are drawn inside the kernel's bounds: "
            "n_restarts_optimizer > 0 requires that all bounds are finite."
        )
    return [first, *(rng.uniform(bounds[:, 0], bounds[:, 1]) for _ in range(n_restarts))]


def _tune_from(
    evidence: Evidence,
    bounds: Array,
    theta: Array,
    optimizer: Optimizer,
    progress: Progress | None,
    threads: Callable[[], Any],
) -> Optimum:
    """Run one optimiser from one start."""
    with threads():
        if progress:
            progress.begin_start()
        begin = time.perf_counter()
        objective = Objective(loosened(evidence), progress)
        best, value = optimizer(objective, theta, bounds=bounds)
        cost = objective.n_evaluations, time.perf_counter() - begin
        if progress:
            progress.end_start()
    if objective.failure is not None and not objective.succeeded:
        return Optimum(theta, -np.inf, False, *cost, objective.failure)
    theta, found = np.asarray(best, dtype=float), objective.best
    # Another optimiser's result need not be the best point that it has found.
    starts = found.starts if np.array_equal(theta, found.theta) else None
    return Optimum(theta, -float(value), found.usable, *cost, starts=starts)


def _best_of(evidence: Evidence, bounds: Array, optima: Sequence[Optimum]) -> Optimum:
    """Return the highest optimum, the first of equals; raise if all searches have failed.

    A high evidence of an inference far from a solution counts only if there is no other.
    """
    if not optima:
        return Optimum(evidence.theta, np.nan, True, 0, 0.0)
    best = max(optima, key=lambda optimum: (optimum.trusted, optimum.value))
    if best.failure is not None:
        with named_failure(evidence.rule):
            raise best.failure
    return replace(best, at_bounds=at_bounds(evidence, bounds, best.theta))


def at_bounds(evidence: Evidence, bounds: Array, theta: Array) -> list[str]:
    """Say which hyperparameters ended at a bound, in scikit-learn's words."""
    close = np.isclose(bounds, theta[:, None], atol=1e-3)
    found = zip(evidence.names, bounds, close, strict=True)
    ends = [
        (name, own, "lower" if low else "upper") for name, own, (low, high) in found if low or high
    ]
    harmless = evidence.likelihood.open_ends
    return [_limited(*end) for end in ends if (end[0], end[2]) not in harmless]


def _limited(name: str, bounds: Array, side: str) -> str:
    lower = side == "lower"
    parameter, _, dimension = name.removesuffix("]").partition("[")
    bound = float(f"{np.exp(bounds[0 if lower else 1]):.12g}")  # the logarithm has rounded it
    change = "Decreasing" if lower else "Increasing"
    return (
        f"The optimal value found for dimension {dimension or 0} of parameter {parameter} is close "
        f"to the specified {side} bound {bound}. {change} the bound and calling fit again may find "
        "a better value."
    )


def loosened(evidence: Evidence) -> Evidence:
    """Return the evidence that is searched, with a precision that suits an optimiser."""
    method = evidence.method.tuned_by
    tol = max(method.tol, _TUNING_TOL[method.is_stationary])
    return replace(evidence, method=replace(method, tol=tol))
