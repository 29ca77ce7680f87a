"""What one evidence with its gradient costs, in passes and in memory.

A pass is one product of an n × m with an m × m matrix by BLAS, 2 n m² operations, timed in the
same process between the evaluations. A cold evaluation starts without sites; a warm one from the
sites of the last, after all hyperparameters have moved by 5 %, one up and the next one down.
"""

from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dgemm
from sklearn.gaussian_process.kernels import RBF

from benchmarks.large.sets import D, made_up_rows
from benchmarks.measure import median, peak_bytes
from cavity.evidence import Evidence
from cavity.inference import EP
from cavity.kernels import rule
from cavity.likelihoods import Probit
from cavity.priors import InducingPrior, choose_points
from cavity.rows import MemoryBlocks
from cavity.sites import Rows

__all__ = ["Given", "evaluate", "given", "memory", "passes", "rule_near"]

_BLOCK = 4096
"""Rows of a block, as the estimators have them."""
_SAMPLE = 10_000
"""Rows from which the inducing points are drawn."""
_LARGE = 2.0**34
_TOL = 1e-4
"""That of evaluations in a search; the last one of a fit is more exact, by two more rounds."""


class Given(NamedTuple):
    """An evidence, and the hyperparameters at which it is evaluated."""

    evidence: Evidence
    theta: Any


def rule_near() -> Any:
    """Return a kernel near the tuned one of the made-up tables."""
    return rule(3.0 * RBF([2.0, 3.0, 3.0, 3.0, 3.0, 8.0, 20.0, 20.0, 20.0, 20.0]))


def given(n: int, m: int) -> Given:
    """Return the evidence of n made-up rows on m inducing points."""
    X, y, _ = made_up_rows(n, 0)
    kernel = rule_near()
    Z = choose_points(kernel, X[:_SAMPLE], m, np.random.default_rng(0)).Z
    blocks = MemoryBlocks(Rows(2.0 * y - 1.0, np.ones(n), X), _BLOCK, _LARGE)
    couple = partial(InducingPrior.of, Z=Z)
    return Given(Evidence(kernel, [blocks], Probit(), EP(tol=_TOL), couple), kernel.theta)


def evaluate(here: Given, starts: Any = None) -> Any:
    """Return an evaluation, its gradient computed; from the starts if there are any, nearby."""
    theta = here.theta if starts is None else here.theta + 0.05 * (-1.0) ** np.arange(D + 1)
    found = here.evidence.at(theta, starts)
    assert np.all(np.isfinite(found.gradient))
    return found


def passes(n: int, m: int, rounds: int) -> dict[str, Any]:
    """Time passes, cold and warm evaluations in turn; ratios are to the passes on either side."""
    evaluate(given(2 * _BLOCK, m))
    here, product = given(n, m), _product(n, m)
    times: dict[str, list[float]] = {name: [] for name in ("pass", "cold", "warm")}
    for _ in range(rounds):
        before = _least(product)
        cold, first = _timed(lambda: evaluate(here))
        between = _least(product)
        warm, second = _timed(lambda: evaluate(here, first.starts))  # noqa: B023
        after = _least(product)
        times["pass"] += [before, between, after]
        times["cold"].append(2.0 * cold / (before + between))
        times["warm"].append(2.0 * warm / (between + after))
        counts = [found.fits[0].report.n_iter for found in (first, second)]
    return {
        "pass_seconds": median(times["pass"]),
        "cold": median(times["cold"]),
        "warm": median(times["warm"]),
        "cold_least": min(times["cold"]),
        "warm_least": min(times["warm"]),
        "cold_rounds": counts[0],
        "warm_rounds": counts[1],
    }


def memory(n: int, m: int) -> dict[str, Any]:
    """Return how much the peak of the resident memory grows in an evaluation."""
    # Few rows: memory that the first evaluation leaves behind would not count again.
    evaluate(given(2 * m, m))
    here = given(n, m)
    before = peak_bytes()
    evaluate(here)
    return {"doubles": (peak_bytes() - before) / (8.0 * n * m)}


def _product(n: int, m: int) -> Any:
    rng = np.random.default_rng(0)
    A, B = (np.asfortranarray(rng.standard_normal((k, m))) for k in (n, m))
    return lambda: dgemm(1.0, A, B)


def _least(call: Any) -> float:
    return min(_timed(call)[0] for _ in range(2))


def _timed(call: Any) -> tuple[float, Any]:
    begin = perf_counter()
    found = call()
    return perf_counter() - begin, found
