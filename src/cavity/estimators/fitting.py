"""From evidences to fitted processes: tuning as the estimator's parameters say."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from cavity.arrays import Array, threads_for
from cavity.estimators.automatic import KernelComparison, candidates, choose, spreads_of
from cavity.estimators.latents import SIGNS, Latents
from cavity.estimators.process import FittedProcess
from cavity.estimators.progress import FitProgress, progress_of_starts
from cavity.estimators.validation import is_auto
from cavity.evidence import (
    Evaluation,
    Evidence,
    Hierarchy,
    Optimum,
    Tuned,
    integrate,
    named_failure,
    starting_points,
    threads_of,
    tune,
)
from cavity.kernels import Rule


class Setting(NamedTuple):
    """What an estimator's fit is made of."""

    evidences_of: Callable[[Rule], Sequence[Evidence]]
    """From a kernel rule to the evidence of each problem."""
    rule: Rule
    """The rule of the estimator's kernel."""
    X: Any
    """Training inputs."""
    amplitude: float
    """Typical variance of a latent function."""
    noise: bool
    """Whether the kernel needs noise of its own, if it is to be chosen."""
    rngs: Sequence[np.random.RandomState]
    """One for each problem."""
    columns: Sequence[Array | None]
    """With a precomputed kernel: which columns of new covariances belong to each problem."""
    further: int = 0
    """How many searches come after these."""
    latents: Latents = SIGNS
    """What each problem's latent values are of."""


Found = tuple[list[FittedProcess], KernelComparison | None]


def way_of_tuning(estimator: Any, rule: Rule) -> Callable[[Any, Setting], Found]:
    """Return the function that tunes every problem's kernel and infers at the optimum."""
    hierarchical = isinstance(estimator.hyperprior, str) and len(rule.theta)
    if is_auto(estimator.kernel) or (hierarchical and estimator.optimizer is not None):
        return _under_hierarchy
    return _maximised


def averaged(
    estimator: Any, rngs: Sequence[np.random.RandomState], processes: list[FittedProcess]
) -> list[FittedProcess]:
    """Let predictions be averages over hyperparameters, if the estimator wants that."""
    count, each = int(estimator.average_hyperparameters), zip(processes, rngs, strict=True)
    return [process.averaged(count, rng) for process, rng in each] if count else processes


def _under_hierarchy(estimator: Any, setting: Setting) -> Found:
    """Tune under the hierarchical prior; one kernel, or the best of several."""
    vectors = isinstance(setting.X, np.ndarray)
    spreads, comparison = spreads_of(setting.X) if vectors else None, None
    counts = [1] * len(setting.columns)
    progress = progress_of_starts(estimator, counts, setting.further)
    with threads_for(len(setting.X)), _reported(progress) as report:
        if is_auto(estimator.kernel):
            kernels = candidates(setting.X, noise=setting.noise)
            tuned, comparison = choose(
                kernels, setting.evidences_of, spreads, setting.amplitude, progress
            )
        else:
            evidences = setting.evidences_of(setting.rule)
            each = [Hierarchy.of(e, spreads, setting.amplitude) for e in evidences]
            tuned = list(map(integrate, evidences, each, progress))
        report(tuned)
    around = zip(tuned, setting.columns, strict=True)
    how = setting.latents
    return [FittedProcess.around(found.posterior, own, how) for found, own in around], comparison


@contextmanager
def _reported(progress: Sequence[FitProgress]) -> Iterator[Callable[[Sequence[Tuned]], None]]:
    """Report the beginning and the end of a search by one start for each problem."""
    begin = time.perf_counter()
    for one in progress:
        one.begin_start()

    def report(tuned: Sequence[Tuned]) -> None:
        for one, found in zip(progress, tuned, strict=True):
            cost = found.n_evaluations, time.perf_counter() - begin
            posterior = found.posterior
            one.end_start()
            one.summarise(Optimum(posterior.theta, posterior.evaluation.value, True, *cost))

    yield report


def _maximised(estimator: Any, setting: Setting) -> Found:
    """Maximise the evidence, times a prior density of the hyperparameters if there is one."""
    evidences = setting.evidences_of(setting.rule)
    how, n_jobs, n_restarts = estimator.optimizer, estimator.n_jobs, estimator.n_restarts_optimizer
    tunes, progress = (
        how is not None,
        partial(progress_of_starts, estimator, further=setting.further),
    )
    starts = [
        starting_points(evidence.theta, evidence.bounds, n_restarts, rng) if tunes else []
        for evidence, rng in zip(evidences, setting.rngs, strict=True)
    ]
    optima = tune(evidences, starts, optimizer=how, n_jobs=n_jobs, progress=progress)
    threads = threads_of(evidences)
    run = Parallel(n_jobs=n_jobs if len(evidences) > 1 else 1)
    with threads():
        found = run(
            delayed(_evaluate)(evidence, optimum, threads)
            for evidence, optimum in zip(evidences, optima, strict=True)
        )
    each = zip(found, setting.columns, optima, starts, strict=True)
    processes = [
        FittedProcess(evaluation, own, best.at_bounds, bool(begin), latents=setting.latents)
        for evaluation, own, best, begin in each
    ]
    return processes, None


def _evaluate(evidence: Evidence, best: Optimum, threads: Callable[[], Any]) -> Evaluation:
    with threads(), named_failure(evidence.with_theta(best.theta).rule):
        found = evidence.at(best.theta, best.starts)
        if best.starts is not None and not found.converged:
            found = evidence.at(best.theta)
    _require_numbers(found)
    return found


def _require_numbers(found: Evaluation) -> None:
    """Raise an error if an inference has overflowed: nothing could be predicted from it."""
    for fit in found.fits:
        if not np.isfinite(fit.log_evidence):
            largest = float(np.max(found.prior.kernel_rule.diag(found.prior.points)))
            raise ValueError(
                f"Inference by {fit.method.name!r} has overflowed: the latent function has a prior "
                f"variance of up to {largest:.1g}. Lower the kernel's amplitude, or scale the "
                "inputs or targets."
            )
