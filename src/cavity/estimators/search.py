"""Tuning for an estimator: every climb of every latent process, side by side."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from cavity.arrays import Array, is_small, one_thread
from cavity.estimators.process import LatentProcess
from cavity.estimators.progress import Narrator, begin_fit
from cavity.evidence.tuning import Optimizer, Optimum, climb

__all__ = ["fit_latents"]


class _Climb(NamedTuple):
    """One start of one latent process."""

    latent: LatentProcess
    theta: Array
    narrator: Narrator


def fit_latents(
    estimator: Any, latents: Sequence[LatentProcess], rngs: Sequence[np.random.RandomState]
) -> list[LatentProcess]:
    """Tune every latent process by its evidence and infer.

    All starts of all processes share the workers. They are drawn before any of them is tried, so
    that the number of workers changes nothing but the time.

    Parameters
    ----------
    estimator : GaussianProcessClassifier or GaussianProcessRegressor
        Its ``optimizer``, ``n_restarts_optimizer``, ``n_jobs`` and ``verbose`` are obeyed.
    latents : sequence of LatentProcess
    rngs : sequence of RandomState
        Draws each process's restarts.
    """
    small = all(is_small(len(latent.X_train_)) for latent in latents)
    climbs = _climbs(estimator, latents, rngs)
    with _threads(small):
        if climbs:
            _tune(estimator, climbs, small)
        return list(
            _parallel(estimator, len(latents))(delayed(_infer)(latent, small) for latent in latents)
        )


def _climbs(
    estimator: Any, latents: Sequence[LatentProcess], rngs: Sequence[np.random.RandomState]
) -> list[_Climb]:
    starts = [
        latent.starts(estimator.n_restarts_optimizer, rng) if estimator.optimizer else []
        for latent, rng in zip(latents, rngs, strict=True)
    ]
    contexts = iter(begin_fit(estimator, sum(map(len, starts))))
    return [
        _Climb(latent, theta, _narrator(estimator, next(contexts), (p, len(latents)), (s, len(ts))))
        for p, (latent, ts) in enumerate(zip(latents, starts, strict=True))
        for s, theta in enumerate(ts)
    ]


def _narrator(
    estimator: Any, context: Any, problem: tuple[int, int], start: tuple[int, int]
) -> Narrator:
    name = f"start {start[0] + 1} of {start[1]}"
    if problem[1] > 1:
        name = f"problem {problem[0] + 1} of {problem[1]}, {name}"
    # Workers need the estimator for its callbacks only.
    return Narrator(name, estimator.verbose, None if context is None else estimator, context)


def _tune(estimator: Any, climbs: Sequence[_Climb], small: bool) -> None:
    """Climb from every start, and leave each latent process at the best that it has found."""
    optimizer = estimator.optimizer if callable(estimator.optimizer) else None
    found: dict[int, list[Optimum]] = {}
    optima = _parallel(estimator, len(climbs), return_as="generator")(
        delayed(_climb)(c.latent, c.theta, optimizer, c.narrator, small) for c in climbs
    )
    for (latent, _, narrator), optimum in zip(climbs, optima, strict=True):
        narrator.sum_up(optimum)
        found.setdefault(id(latent), []).append(optimum)
    for latent in {id(c.latent): c.latent for c in climbs}.values():
        latent.settle(found[id(latent)])


def _climb(
    latent: LatentProcess,
    theta: Array,
    optimizer: Optimizer | None,
    narrator: Narrator,
    small: bool,
) -> Optimum:
    with _threads(small):
        narrator.begin_climb()
        optimum = climb(latent.evidence, theta, latent.rule.bounds, optimizer, narrator)
        narrator.end_climb()
    return optimum


def _infer(latent: LatentProcess, small: bool) -> LatentProcess:
    with _threads(small):
        return latent.infer()


def _parallel(estimator: Any, tasks: int, **options: Any) -> Any:
    """Return what runs tasks side by side; a single one is not worth a worker."""
    return Parallel(n_jobs=estimator.n_jobs if tasks > 1 else 1, **options)


def _threads(small: bool) -> AbstractContextManager[Any]:
    return one_thread() if small else nullcontext()
