"""Scores of classes, averaged over training sets."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm, qmc

from cavity.arrays import Array
from cavity.arrays.special import ndtr
from cavity.likelihoods.normal import standardise
from cavity.resampling.laws import Occupancy
from cavity.resampling.pool import Averages, Examples, Targets
from cavity.resampling.scores import (
    NODES,
    REACH,
    SMALLEST,
    TIE,
    Losses,
    Scores,
    class_scores,
    drawn,
    log_odds_against,
)
from cavity.resampling.theories import average_over_fields
from cavity.sites import Marginals

_ROUNDS, _CLOSE, _FLAT = 50, 1e-9, 1e-12
"""Of Newton's method: rounds at most, the change at which it ends, and the least slope."""
_DRAWS = 512
# The error on the pool is also averaged over examples: these are enough.
_FEWER_DRAWS = 128


class ClassScores(Scores):
    """What the scores of two and of more classes have in common."""

    task = "classification"

    def losses(self, latent: Sequence[Any]) -> Losses:
        """Return errors, log losses and Brier scores."""
        return class_scores(self.log_proba(latent), self.truth)

    def doubt(self, averages: Sequence[Any], support: Array) -> Array:
        """Return the log odds against each label."""
        return log_odds_against(support)

    def pool_error(
        self, pool: Sequence[Any], held_out: Sequence[Any], occupancy: Occupancy, /
    ) -> Array:
        """Return the probability of a wrong class, for each number of draws by itself.

        Predictions are nearly always right at an example that was drawn, and often wrong at one
        that was not: over both together they are far from Gaussian.
        """
        p = occupancy.probability
        each = zip([1.0 - p.sum(axis=0), *p], self.wrong(held_out, occupancy.s), strict=True)
        return sum(p_s * wrong for p_s, wrong in each)

    @abstractmethod
    def log_proba(self, latent: Sequence[Any]) -> Array:
        """Return log class probabilities of shape (..., n, classes) from given marginals."""

    @abstractmethod
    def wrong(self, averages: Sequence[Any], occupations: Array) -> Iterator[Array]:
        """Yield the probability of a wrong class where an example is drawn 0, 1, 2, ... times."""


class BinaryScores(ClassScores):
    """Scores of two classes, which one latent function separates."""

    def __init__(self, pools: Sequence[Targets]) -> None:
        super().__init__(pools, (pools[0].y > 0.0).astype(int))

    def held_out(self, averages: Sequence[Averages]) -> Losses:
        """Return errors, log losses and Brier scores."""
        [c], [pool] = averages, self.pools

        def losses(h: Array) -> tuple[Array, Array]:
            log_p = pool.likelihood.tilted(pool.y, Marginals(h, c.G)).log_z
            return -log_p, np.expm1(log_p) ** 2

        log_loss, brier = average_over_fields(losses, c.R, c.V, NODES)
        support = pool.likelihood.tilted(pool.y, Marginals(c.R, c.G + c.V)).log_z
        return Losses(_wrong_side(*_whole(pool, c)), log_loss, brier, support)

    def wrong(self, averages: Sequence[Averages], occupations: Array) -> Iterator[Array]:
        """Yield the probability of the wrong sign.

        The posterior mean rises with the field h: the sign is wrong below the h where it is zero.
        """
        pool, c = _whole(self.pools[0], averages[0])
        yield _wrong_side(pool, c)
        a, v = np.zeros_like(c.G), c.G
        for s in occupations:
            a, v = _zero(pool, c, s, a, v)
            yield ndtr(_off(pool, c, s * a))

    def log_proba(self, latent: Sequence[Marginals]) -> Array:
        """Return both log probabilities: each is accurate in its own tail."""
        [q], [pool] = latent, self.pools
        return np.stack([pool.likelihood.tilted(s, q).log_z for s in (-1.0, 1.0)], axis=-1)

    def prediction(self, latent: Sequence[Marginals]) -> Array:
        """Return probabilities of the second class."""
        [q], [pool] = latent, self.pools
        return np.exp(pool.likelihood.tilted(1.0, q).log_z)


def _whole(pool: Targets, c: Averages) -> tuple[Examples, Averages]:
    """Return the same in latent values that include what is added to them."""
    model = pool.likelihood
    return Examples(pool.y, model.bare), c._replace(R=c.R + model.shift)


def _wrong_side(pool: Targets, c: Averages) -> Array:
    """Return the probability Φ(−y R/√V) that the sign of the prediction is not the label's."""
    # A prediction of zero, up to rounding, has no side: half of them are wrong.
    R = np.where(np.abs(c.R) > TIE * np.sqrt(c.G), c.R, 0.0)
    return ndtr(standardise(-pool.y * R, np.sqrt(np.maximum(c.V, SMALLEST))))


def _off(pool: Targets, c: Averages, source: Array) -> Array:
    """Return the field that would outweigh a source, in standard deviations from its mean.

    Both are signed by the label.
    """
    return standardise(source * c.response - pool.y * c.R, np.sqrt(np.maximum(c.V, SMALLEST)))


def _zero(pool: Targets, c: Averages, s: float, a: Array, v: Array) -> tuple[Array, Array]:
    """Return the cavity of one of s equal draws, a posterior mean of zero given.

    It is y times N(a v, v): each draw is a source of −a, and the field outweighs them all. By
    Newton's method, from the same for fewer draws, as a hardly depends on v.
    """
    for _ in range(_ROUNDS):
        m = a * v
        _, d1, d2 = pool.likelihood.tilted(pool.y, Marginals(pool.y * m, v))
        mean, slope = m + v * pool.y * d1, np.maximum(1.0 + v * d2, _FLAT)
        tau = np.maximum(-d2 / slope, 0.0)
        new = c.G / (1.0 + (s - 1.0) * tau * c.G)
        done = (np.abs(mean) < _CLOSE * np.sqrt(v) * slope) & (np.abs(new - v) < _CLOSE * v)
        # Beyond the reach of the field it does not matter how far.
        done |= (mean > 0.0) & (_off(pool, c, s * a) < -REACH)
        if np.all(done):
            break
        a, v = np.where(done, a, (m - mean / slope) / v), np.where(done, v, new)
    return a, v


class SeveralClassScores(ClassScores):
    """What the scores of more than two classes have in common: averages by quasi-Monte Carlo."""

    def __init__(self, pools: Sequence[Any], truth: Array, n_classes: int) -> None:
        super().__init__(pools, truth)
        self.several = n_classes

    def prediction(self, latent: Sequence[Any]) -> Array:
        """Raise an error: one number does not tell several classes apart."""
        self.check_measurable()
        return np.empty(0)


def averaged_losses(losses: Losses) -> Losses:
    """Average the scores of several predictions, the first axis, and set the support."""
    error, log_loss, brier = (np.mean(np.asarray(part), axis=0) for part in losses[:3])
    support = logsumexp(-losses.log_loss, axis=0) - np.log(len(losses.log_loss))
    return Losses(error, log_loss, brier, support)


class MulticlassScores(SeveralClassScores):
    """Scores of several classes, each with a latent function that separates it from the rest.

    Their fields are taken to be independent given the example.
    """

    def __init__(self, pools: Sequence[Targets]) -> None:
        super().__init__(pools, np.argmax([pool.y for pool in pools], axis=0), len(pools))

    def held_out(self, averages: Sequence[Averages]) -> Losses:
        """Return errors, log losses and Brier scores."""
        return averaged_losses(self.losses(self._fields(averages, _DRAWS)))

    def wrong(self, averages: Sequence[Averages], occupations: Array) -> Iterator[Array]:
        """Yield the share of fields that lead to a wrong class."""
        fields = self._fields(averages, _FEWER_DRAWS)
        each = zip(*map(drawn, self.pools, averages, fields, repeat(occupations)), strict=True)
        for latent in chain([fields], each):
            yield np.mean(class_scores(self._unnormalised(latent), self.truth).error, axis=0)

    def log_proba(self, latent: Sequence[Marginals]) -> Array:
        """Return normalised log probabilities."""
        log_p = self._unnormalised(latent)
        return log_p - logsumexp(log_p, axis=-1, keepdims=True)

    def _fields(self, averages: Sequence[Averages], count: int) -> list[Marginals]:
        """Return draws of every latent function that fill the space evenly."""
        sobol = qmc.Sobol(len(self.pools), seed=0).random(count)
        x = norm.ppf(np.clip(sobol, 1e-12, 1.0 - 1e-12))
        return [c.fields(x_c) for c, x_c in zip(averages, x.T, strict=True)]

    def _unnormalised(self, latent: Sequence[Marginals]) -> Array:
        each = zip(self.pools, latent, strict=True)
        return np.stack([pool.likelihood.tilted(1.0, q).log_z for pool, q in each], axis=-1)
