"""Learning curves by brute force: draw training sets, refit, predict the rest."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from cavity.arrays import Array
from cavity.model_selection.block_pools import BlockInputs
from cavity.model_selection.curve import LearningCurve, Measure, PointScores, Source
from cavity.model_selection.forecast import ErrorTrend, sampling_error
from cavity.model_selection.pools import DEFAULT_SIZES, PoolInputs, pools_of
from cavity.model_selection.refits import (
    Draws,
    JointRefitter,
    Refitter,
    Retuner,
    SizeRefits,
    latent_variance,
    refit_all,
)
from cavity.model_selection.trends import trend_of
from cavity.resampling.scores import Losses


def simulate_learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    train_sizes: Any = DEFAULT_SIZES,
    resampling: str = "subsample",
    n_repeats: int = 100,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    retune: bool = False,
    offset: Any = None,
) -> LearningCurve:
    """Return the average error on unseen data for training sets of any size, by refitting.

    This slow simulation measures what `learning_curve` predicts. Preprocessing stays as fitted to
    the whole table; inference is the estimator's own.

    Parameters
    ----------
    estimator, X, y, train_sizes, resampling
        As in `learning_curve`.
    n_repeats : int, default 100
        Number of training sets of each size, at least two. At m = n without replacement each leaves
        out a different example, so there are at most n: averages over the pool are of n − 1 rows.
    sample_weight : array-like of shape (n_samples,), optional
        How often each example is drawn (and scored), relative to the others. Without replacement,
        examples are then drawn independently, and the size is exact only on average.
    n_jobs : int or None, default None
        Number of refits to run in parallel, each on one BLAS thread. It does not change the
        results.
    random_state : int, RandomState instance or None, default None
        Controls the training sets. Those of one size do not depend on the other sizes.
    verbose : int, default 0
        1 prints a line for each size.
    retune : bool, default False
        Whether every refit chooses and tunes its kernel again (a training set that lacks a class
        keeps that of the whole table). If not, kernel and target normalisation stay as fitted to
        the whole table: the truth for ``learning_curve(..., retune=False)``.
    offset : float or array-like of shape (n_samples,), optional
        What is added to each example's latent value, as in the estimator's ``fit``.

    Returns
    -------
    LearningCurve
        With ``theory="simulation"``, and the standard errors of its averages in ``standard_error``.
        Values of examples that no training set left out are NaN.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity import GaussianProcessClassifier, simulate_learning_curve
    >>> from cavity.datasets import load_crabs
    >>> X, y = load_crabs(return_X_y=True)
    >>> clf = GaussianProcessClassifier(100.0 * RBF(10.0), optimizer=None)
    >>> curve = simulate_learning_curve(
    ...     clf, X, y, train_sizes=[20, 100], n_repeats=10, random_state=0
    ... )
    >>> bool(curve.test_error[0] > curve.test_error[1])
    True
    """
    _check_repeats(n_repeats)
    about = estimator, X, y, train_sizes, resampling, sample_weight
    inputs = _dense(pools_of(*about, offset=offset))
    if retune := retune and inputs.fitted.processes[0].tuned:
        inputs = _retuned(inputs)
    law = Draws(resampling, inputs.share, check_random_state(random_state).randint(2**31 - 1))
    refitter = _retuner(inputs) if retune else _refitter(inputs)
    return _simulated(inputs, law, refitter, int(n_repeats), n_jobs, verbose)


def _simulated(
    inputs: PoolInputs, law: Draws, refitter: Any, n_repeats: int, n_jobs: int | None, verbose: int
) -> LearningCurve:
    """Return the averages over refits to training sets that are drawn by a law."""
    draws = [law.draw(int(size), n_repeats) for size in inputs.sizes]
    refits = list(refit_all(refitter, len(inputs.y), inputs.sizes, draws, n_jobs, verbose))
    source = RefitSource(inputs, "simulation", law, refits)
    _warn_about(source)
    means, errors = ({name: pair[i] for name, pair in source.means.items()} for i in (0, 1))
    return LearningCurve(source, [found.reports for found in refits], means, errors)


def _check_repeats(n_repeats: Any) -> None:
    if not isinstance(n_repeats, Integral) or n_repeats < 2:
        raise ValueError(
            f"n_repeats must be an integer of at least 2, for standard errors; got {n_repeats!r}."
        )


def _dense(inputs: PoolInputs | BlockInputs) -> PoolInputs:
    """Refuse models with inducing points."""
    if isinstance(inputs, PoolInputs):
        return inputs
    raise ValueError(
        "Simulated curves refit models without inducing points: leave n_inducing at None, or use "
        "learning_curve()."
    )


def _refitter(inputs: PoolInputs) -> Any:
    method = inputs.fitted.processes[0].fits[0].method
    if inputs.joint:
        return JointRefitter(inputs.pools[0], method)
    return Refitter(inputs.pools, inputs.likelihoods, method)


def _retuned(inputs: PoolInputs) -> PoolInputs:
    """Return inputs whose noise each refit tunes; other parameters of a likelihood are refused."""
    names = inputs.fitted.likelihood.names
    if names:
        raise ValueError(
            f"retune=True scores all refits with the likelihood of the whole table, whose "
            f"{', '.join(names)} they would tune again: fix it (bounds='fixed'), or leave retune "
            "at False."
        )
    return replace(inputs, splits_noise=False)


def _retuner(inputs: PoolInputs) -> Retuner:
    scores, fixed = inputs.scores, _refitter(inputs)
    noise = inputs.likelihoods[0].noise_variance if inputs.classes is None else 0.0
    about = inputs.model, inputs.X, inputs.y, fixed, scores.scale, scores.origin, noise
    return Retuner(*about, offset=inputs.offset, shifts=scores.shifts)


@dataclass(frozen=True)
class RefitSource(Source):
    """What a simulated curve was computed from; ``refits`` are those of each size."""

    law: Draws
    refits: Sequence[SizeRefits]

    def predict(self, X: Any, offset: Any = None) -> tuple[Array, Array]:
        """Refuse: no fits are kept."""
        raise ValueError(
            "A simulation keeps no fits for predictions at new inputs: use learning_curve()."
        )

    def measure(self, g: Measure) -> Array:
        """Return averages of g(prediction, y) over training sets and examples, at each size."""
        scores, share = self.inputs.scores, self.inputs.share
        scores.check_measurable()
        found = np.stack([r.by_example(scores.measure(g, r.predictive)) for r in self.refits])
        for points in found:
            known = np.isfinite(points)
            # Examples that were never absent must not change the average.
            points[~known] = points[known] @ share[known] / np.sum(share[known])
        return found @ share

    def trend(self, measure: str) -> ErrorTrend:
        """Return the curve through the simulated sizes."""
        known = np.flatnonzero(np.isfinite(self.means["test_" + measure][0]))
        if len(known) < 3:
            raise ValueError(
                f"A forecast needs a curve of at least three sizes; this one has {len(known)}."
            )
        means, errors = (part[known] for part in self.means["test_" + measure])
        points, share = getattr(self.points[known[-1]], measure), self.inputs.share
        seen = np.isfinite(points)
        weight = share[seen] / np.sum(share[seen])
        is_class = self.inputs.classes is not None
        of_pool = sampling_error(points[seen], weight, rate=is_class and measure == "error")
        # One training set has no standard error.
        spread = float(np.hypot(of_pool, np.nan_to_num(errors[-1])))
        found = trend_of(self.inputs.sizes[known], means, spread, 0, measure, is_class=is_class)
        return replace(found, beyond=0)

    def instability(self, sizes: Array) -> Array:
        """Refuse: refits are at the sizes that were asked for."""
        raise ValueError("A simulation has refits at its own sizes only: use learning_curve().")

    @cached_property
    def point_scores(self) -> PointScores:
        """Scores of every example at every size."""
        held_out = [found.averages for found in self.refits]
        return PointScores.of(self.inputs.scores, held_out, self.points)

    @cached_property
    def losses(self) -> list[Losses]:
        """Scores of each training set's predictions at each example, for each size."""
        return [self.inputs.scores.losses(found.predictive) for found in self.refits]

    @cached_property
    def points(self) -> list[Losses]:
        """Held-out scores of each example, for each size."""
        return list(map(SizeRefits.held_out, self.refits, self.losses))

    @cached_property
    def means(self) -> dict[str, Array]:
        """Averages over training sets and their standard errors, by name."""
        rows = [self._means(k) for k in range(len(self.refits))]
        return {name: np.array([row[name] for row in rows]).T for name in rows[0]}

    def _means(self, k: int) -> dict[str, tuple[float, float]]:
        losses, share, refits = self.losses[k], self.inputs.share, self.refits[k]
        weight = refits.absent * self.law.weight(int(self.inputs.sizes[k]))
        # Training sets without held-out examples do not count.
        some = np.any(weight > 0.0, axis=1)
        repeats = {
            "test_" + name: np.average(values[some], axis=1, weights=weight[some])
            for name, values in losses._asdict().items()
            if values is not None
        }
        G = np.mean([latent_variance(q) for q in refits.latent], axis=0)
        repeats["pool_error"] = losses.error @ share
        repeats["posterior_variance"] = G @ share * self.inputs.scores.scale**2
        return {name: self._mean(k, values) for name, values in repeats.items()}

    def _mean(self, k: int, repeats: Array) -> tuple[float, float]:
        """Return the average over training sets, with the standard error."""
        if len(repeats) < 2:
            return (float(repeats[0]) if len(repeats) else np.nan), np.nan
        error = np.std(repeats, ddof=1) / np.sqrt(len(repeats))
        if self.law.leaves_one_out(int(self.inputs.sizes[k])):
            # Drawn without replacement from the few that there are.
            error *= np.sqrt(1.0 - len(repeats) / len(self.law.members))
        return float(np.mean(repeats)), float(error)


def _warn_about(source: RefitSource) -> None:
    """Warn of sizes without held-out averages, and of refits that did not converge."""
    empty = source.inputs.sizes[np.isnan(source.means["test_error"][0])]
    if len(empty):
        warnings.warn(
            f"At train_sizes {empty.tolist()} no training set has left any example out, so there "
            "are no held-out averages: raise n_repeats, or draw fewer examples.",
            UserWarning,
            stacklevel=3,
        )
    reports = [report for found in source.refits for report in found.reports]
    failed = [report for report in reports if not report.converged]
    if failed:
        worst = max(report.residual for report in failed)
        warnings.warn(
            f"{len(failed)} of {len(reports)} inferences did not converge (residual up to "
            f"{worst:.1e}); curve.converged marks their sizes. Raise max_iter_predict, or check "
            "the scale of the inputs and of the kernel.",
            ConvergenceWarning,
            stacklevel=3,
        )
