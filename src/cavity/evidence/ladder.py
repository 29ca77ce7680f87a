"""From the optimum of a small table to that of a larger one, in few evaluations."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import optimize

from cavity.arrays import Array
from cavity.evidence.evidence import Evidence
from cavity.evidence.hyperpriors import NormalPrior
from cavity.evidence.objective import Objective
from cavity.evidence.tuning import Optimum, Progress, at_bounds, loosened
from cavity.inference import WarmStart

_LONGEST = 1.0
"""Longest unit of a coordinate, in log hyperparameters."""
_FIRST_STEP = 3.0
"""Largest first step, in these units."""
_TINY = 1e-300
_FARTHEST = 30.0


def climb(
    evidence: Evidence,
    theta: Array,
    along: Array,
    prior: NormalPrior | None = None,
    starts: Sequence[WarmStart] | None = None,
    progress: Progress | None = None,
    tol: float = 0.02,
    most: int = 40,
) -> Optimum:
    """Maximise an evidence from hyperparameters that were found with fewer rows.

    Parameters
    ----------
    evidence : Evidence
    theta : array of shape (p,)
        Where to begin.
    along : array of shape (p, k)
        Directions, each as long as the hyperparameters are still uncertain along it: in these units
        the evidence is nearly a sphere, and the first step nearly reaches its top.
    prior : NormalPrior, optional
        A density that counts with the evidence.
    starts : sequence of WarmStart, optional
    progress : Progress, optional
    tol : float, default 0.02
        Nats that are not worth another evaluation.
    most : int, default 40
        Largest number of evaluations.
    """
    objective, bounds = Objective(loosened(evidence), progress), evidence.bounds
    objective.starts, begin = starts, time.perf_counter()
    along = along / np.maximum(1.0, np.max(np.abs(along), axis=0, initial=0.0) / _LONGEST)
    z_0, z_along = _of_prior(prior, theta, along)

    def at(s: Array) -> tuple[float, Array]:
        free, z = theta + along @ s, z_0 + z_along @ s
        here = np.clip(free, bounds[:, 0], bounds[:, 1])
        value, slope = objective(here, penalty=0.5 * float(z @ z))
        return value, along.T @ (slope * (here == free)) + z_along.T @ z

    if along.shape[1]:
        _descend(at, along.shape[1], tol, most)
    else:
        objective(theta, eval_gradient=False)
    objective.check()
    best, cost = objective.best, (objective.n_evaluations, time.perf_counter() - begin)
    limited = at_bounds(evidence, bounds, best.theta)
    usable = best.usable
    return Optimum(best.theta, -best.value, usable, *cost, at_bounds=limited, starts=best.starts)


def _descend(at: Callable[[Array], tuple[float, Array]], k: int, tol: float, most: int) -> None:
    """Minimise a function that is nearly a sphere, from the origin; it keeps what it finds."""
    value, slope = at(np.zeros(k))
    # Where the slope is steeper than that of a sphere, so is the curvature.
    unit = np.sqrt(np.minimum(1.0, _FIRST_STEP / np.maximum(np.abs(slope), _TINY)))

    def scaled(s: Array) -> tuple[float, Array]:
        here, there = at(unit * s) if np.any(s) else (value, slope)
        return here, unit * there

    share = tol / max(1.0, abs(value))
    options: Any = {"maxcor": 30, "ftol": share, "gtol": np.sqrt(tol), "maxfun": most}
    # With limits in every direction the first step is that of Newton's method.
    limits, start = [(-_FARTHEST, _FARTHEST)] * k, np.zeros(k)
    optimize.minimize(scaled, start, method="L-BFGS-B", jac=True, bounds=limits, options=options)


def _of_prior(prior: NormalPrior | None, theta: Array, along: Array) -> tuple[Array, Array]:
    """Return z at the beginning, and how it changes along the directions."""
    if prior is None:
        return np.zeros(0), np.zeros((0, along.shape[1]))
    return prior.z(theta), np.linalg.lstsq(prior.factor, along, rcond=None)[0]
