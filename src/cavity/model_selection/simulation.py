"""Learning curves by brute force: draw training sets, refit, look at the rest."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from cavity.arrays import Array
from cavity.model_selection.curve import LearningCurve, Measure
from cavity.model_selection.forecast import Trend, sampling_error
from cavity.model_selection.pools import (
    DEFAULT_SIZES,
    PoolDoor,
    check_resampling,
    check_sizes,
    open_door,
    population,
)
from cavity.model_selection.refits import Draws, Refit, Trainer, refit_all
from cavity.resampling import Pool, log_odds_against
from cavity.sites import Marginals

__all__ = ["simulate_learning_curve"]


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
) -> LearningCurve:
    """Average the error on unseen data over random training sets of any size, by refitting.

    The slow truth that `learning_curve` predicts. Kernel, preprocessing and the normalisation of
    the target stay as they were fitted to the whole table; inference is the estimator's own.

    Parameters
    ----------
    estimator, X, y, train_sizes, resampling
        As in `learning_curve`.
    n_repeats : int
        How many training sets of each size, at least two. At m = n without replacement each
        leaves out another example: never more than n of them.
    sample_weight : array-like of shape (n_samples,), optional
        A population in which some examples are drawn (and judged) more often than others. Without
        replacement each example then enters by itself, and the size holds on average.
    n_jobs : int or None
        How many refits go on at a time; each keeps to one thread of BLAS. Changes nothing but the
        time.
    random_state : int, RandomState instance or None
        Draws the training sets. Those of one size do not depend on the other sizes.
    verbose : int
        1 prints a line about each size.

    Returns
    -------
    LearningCurve
        With ``theory="simulation"`` and the averages' standard errors over training sets in
        ``standard_error``. What no training set has left out is NaN.

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
    check_resampling(resampling, "cavity")
    if not isinstance(n_repeats, Integral) or n_repeats < 2:
        raise ValueError(
            f"n_repeats must be an integer of at least 2, for standard errors; got {n_repeats!r}."
        )
    door = open_door(estimator, X, y, sample_weight)
    share = population(sample_weight, door.size)
    sizes = check_sizes(train_sizes, resampling, share)
    scorer, labels, classes = door.scorer(y, share)
    law = Draws(resampling, share, check_random_state(random_state).randint(2**31 - 1))
    draws = [law.draw(int(size), int(n_repeats)) for size in sizes]
    trainer = Trainer.behind(door, scorer.pools)
    refits = list(refit_all(trainer, sizes, draws, n_jobs, verbose))
    source = _Simulated(door, scorer.pools, law, sizes, refits, labels, classes)
    _warn_about(source)
    return _curve(source)


class _Judged(NamedTuple):
    """What the predictions from each training set, one per row, are worth at each example.

    ``prediction`` is the target, or the probability of the second of two classes.
    """

    error: Array
    log_loss: Array
    brier: Array | None
    prediction: Array | None


@dataclass(frozen=True)
class _Simulated:
    """The source of a simulated curve.

    Parameters
    ----------
    door : PoolDoor
    pools : sequence of Pool
    law : Draws
    sizes : array of shape (k,)
    refits : sequence of lists of Refit
        For each size.
    y : array of shape (n,)
        Labels as given.
    classes : array or None
    """

    door: PoolDoor
    pools: Sequence[Pool]
    law: Draws
    sizes: Array
    refits: Sequence[Sequence[Refit]]
    y: Array
    classes: Array | None

    def predict(self, X: Any) -> tuple[Array, Array]:
        """Refuse: the fits are gone."""
        raise ValueError(
            "A simulation keeps no fits for predictions at new inputs: learning_curve() does that."
        )

    def measure(self, g: Measure) -> Array:
        """Average g(prediction, y) over training sets, at each size and example."""
        if self.judged[0].prediction is None:
            raise ValueError(
                "measure() needs a prediction of one number: two classes or a real target, not "
                f"{len(self.pools)} classes."
            )
        truth = self.y if self.classes is None else self.codes.astype(float)
        return np.stack([self._measure(g, k, truth) for k in range(len(self.sizes))])

    def _measure(self, g: Measure, k: int, truth: Array) -> Array:
        p = np.asarray(self.judged[k].prediction)
        values = np.broadcast_to(g(p, np.broadcast_to(truth, p.shape)), p.shape)
        points, share = _by_example(values, self.left_out(k)), self.law.share
        known = np.isfinite(points)
        # Examples that were never left out shall not sway the average.
        return np.where(known, points, points[known] @ share[known] / np.sum(share[known]))

    def trend(self, measure: str) -> Trend:
        """Return the curve through the simulated sizes."""
        known = np.flatnonzero(np.isfinite(self.means["test_" + measure][0]))
        if len(known) < 3:
            raise ValueError(
                f"A forecast needs a curve of at least three sizes; this one has {len(known)}."
            )
        means, errors = (part[known] for part in self.means["test_" + measure])
        points, share = self.points(measure)[known[-1]], self.law.share
        seen = np.isfinite(points)
        weight = share[seen] / np.sum(share[seen])
        rate = self.classes is not None and measure == "error"
        spread = np.hypot(sampling_error(points[seen], weight, rate=rate), errors[-1])
        positive = self.classes is not None or measure == "error"
        return Trend(self.sizes[known], means, float(spread), positive)

    @property
    def codes(self) -> Array:
        """Each example's class."""
        return np.searchsorted(np.asarray(self.classes), self.y)

    def left_out(self, k: int) -> Array:
        """Return for each training set which examples are not in it."""
        return np.stack([refit.left_out for refit in self.refits[k]])

    def latent(self, k: int) -> tuple[Array, Array]:
        """Return means and variances of shape (latent functions, training sets, n)."""
        mean = np.stack([refit.mean for refit in self.refits[k]], axis=1)
        return mean, np.stack([refit.variance for refit in self.refits[k]], axis=1)

    @cached_property
    def judged(self) -> list[_Judged]:
        """What the predictions are worth, for each size."""
        judge = self._judge_target if self.classes is None else self._judge_classes
        return [judge(*self.latent(k)) for k in range(len(self.sizes))]

    def _judge_target(self, mean: Array, variance: Array) -> _Judged:
        [pool], scale = self.pools, self.door.scale
        log_p = pool.likelihood.tilted(pool.y, Marginals(mean[0], variance[0])).log_z
        prediction = mean[0] * scale + self.door.offset
        return _Judged((prediction - self.y) ** 2, np.log(scale) - log_p, None, prediction)

    def _judge_classes(self, mean: Array, variance: Array) -> _Judged:
        log_p = self._log_proba(mean, variance)
        p, truth = np.exp(log_p), np.eye(log_p.shape[2], dtype=bool)[self.codes]
        own = np.max(np.where(truth, log_p, -np.inf), axis=2)
        best_other = np.max(np.where(truth, -np.inf, log_p), axis=2)
        two = len(self.pools) == 1
        # Two classes that are equally probable: the label is a guess.
        error = (own < best_other) + 0.5 * (own == best_other)
        brier = np.sum((p - truth) ** 2, axis=2) / (2.0 if two else 1.0)
        return _Judged(error, -own, brier, p[:, :, 1] if two else None)

    def _log_proba(self, mean: Array, variance: Array) -> Array:
        """Return log class probabilities of shape (training sets, n, classes)."""
        answers = [
            tuple(
                pool.likelihood.tilted(sign, Marginals(m, v)).log_z.ravel() for sign in (-1.0, 1.0)
            )
            for pool, m, v in zip(self.pools, mean, variance, strict=True)
        ]
        count = len(np.asarray(self.classes))
        return self.door.model._split.scores(answers, count).reshape(*mean.shape[1:], count)

    @cached_property
    def means(self) -> dict[str, tuple[Array, Array]]:
        """Averages over training sets and their standard errors, by name."""
        rows = [self._means(k) for k in range(len(self.sizes))]
        stacked = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        return {name: (pairs[:, 0], pairs[:, 1]) for name, pairs in stacked.items()}

    def _means(self, k: int) -> dict[str, tuple[float, float]]:
        judged, share = self.judged[k], self.law.share
        weight = self.left_out(k) * self.law.weight(int(self.sizes[k]))
        held_out = {"error": judged.error, "log_loss": judged.log_loss, "brier": judged.brier}
        repeats = {
            "test_" + name: _weighted_means(values, weight)
            for name, values in held_out.items()
            if values is not None
        }
        repeats["pool_error"] = judged.error @ share
        repeats["posterior_variance"] = self.latent(k)[1].mean(axis=0) @ share * self.door.scale**2
        return {name: self._mean(k, values) for name, values in repeats.items()}

    def _mean(self, k: int, repeats: Array) -> tuple[float, float]:
        """Average over training sets, with the standard error."""
        if len(repeats) < 2:
            return (float(repeats[0]) if len(repeats) else np.nan), np.nan
        error = np.std(repeats, ddof=1) / np.sqrt(len(repeats))
        if self.law.leaves_one_out(int(self.sizes[k])):
            # Drawn without replacement from the few that there are.
            error *= np.sqrt(1.0 - len(repeats) / len(self.law.members))
        return float(np.mean(repeats)), float(error)

    def points(self, measure: str) -> Array:
        """Return a held-out measure of each example, of shape (sizes, n)."""
        return np.stack(
            [
                _by_example(getattr(judged, measure), self.left_out(k))
                for k, judged in enumerate(self.judged)
            ]
        )

    @cached_property
    def predictions(self) -> tuple[Array, Array, Array]:
        """Mean and variance of the held-out means, and mean of the variances; latent.

        All of shape (sizes, latent functions, n).
        """
        found = []
        for k in range(len(self.sizes)):
            out, (mean, variance) = self.left_out(k), self.latent(k)
            R = np.stack([_by_example(each, out) for each in mean])
            squares = (mean - R[:, None, :]) ** 2
            n = np.maximum(out.sum(axis=0), 1)
            V = np.stack([_by_example(each, out) for each in squares]) * n / np.maximum(n - 1, 1)
            found.append((R, V, np.stack([_by_example(each, out) for each in variance])))
        R, V, G = (np.stack(part) for part in zip(*found, strict=True))
        return R, V, G

    @cached_property
    def support(self) -> Array:
        """Log of each label's held-out probability, averaged over training sets."""
        return np.stack([self._support(k) for k in range(len(self.sizes))])

    def _support(self, k: int) -> Array:
        out, log_p = self.left_out(k), -self.judged[k].log_loss
        # Relative to the largest, so that not all underflow.
        top = np.max(log_p, axis=0, where=out, initial=-np.finfo(float).max)
        return top + np.log(_by_example(np.exp(np.minimum(log_p - top, 0.0)), out))

    @property
    def evidence(self) -> Array:
        """Evidence against each label."""
        if self.classes is not None:
            return log_odds_against(self.support)
        R, V, G = (part[:, 0] for part in self.predictions)
        [pool] = self.pools
        return np.abs(pool.y - R) / np.sqrt(np.asarray(pool.likelihood.latent_noise) + G + V)


def _by_example(values: Array, left_out: Array) -> Array:
    """Average over the training sets that an example is not in; NaN if it is in all of them."""
    count = left_out.sum(axis=0)
    total = np.sum(np.where(left_out, values, 0.0), axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _weighted_means(values: Array, weight: Array) -> Array:
    """Return the mean of each row that has any weight."""
    total = weight.sum(axis=1)
    some = total > 0.0
    return np.sum(values[some] * weight[some], axis=1) / total[some]


def _curve(source: _Simulated) -> LearningCurve:
    mean, variance, _ = (np.moveaxis(part, 1, 2) for part in source.predictions)
    if len(source.pools) == 1:
        mean, variance = mean[:, :, 0], variance[:, :, 0]
    scale = source.door.scale
    reports = [[r for refit in refits for r in refit.reports] for refits in source.refits]
    apparent = source.door.apparent(source.y, source.law.share)
    averages = {name: values for name, (values, _) in source.means.items()}
    return LearningCurve(
        task="regression" if source.classes is None else "classification",
        resampling=source.law.resampling,
        theory="simulation",
        train_sizes=source.sizes,
        **({"test_brier": None} | averages),
        point_error=source.points("error"),
        point_log_loss=source.points("log_loss"),
        point_mean=mean * scale + source.door.offset,
        point_variance=variance * scale**2,
        point_support=source.support,
        point_evidence=source.evidence,
        apparent_error=apparent[0],
        apparent_log_loss=apparent[1],
        y=source.y,
        classes=source.classes,
        share=source.law.share,
        converged=np.array([all(r.converged for r in row) for row in reports]),
        n_iter=np.array([max(r.n_iter for r in row) for row in reports]),
        residual=np.array([max(r.residual for r in row) for row in reports]),
        source=source,
        standard_error={name: errors for name, (_, errors) in source.means.items()},
    )


def _warn_about(source: _Simulated) -> None:
    """Say which sizes have no held-out averages, and how many refits did not converge."""
    empty = source.sizes[np.isnan(source.means["test_error"][0])]
    if len(empty):
        warnings.warn(
            f"At train_sizes {empty.tolist()} no training set has left any example out, so that "
            "there are no held-out averages: raise n_repeats, or draw fewer examples.",
            UserWarning,
            stacklevel=3,
        )
    reports = [r for refits in source.refits for refit in refits for r in refit.reports]
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
