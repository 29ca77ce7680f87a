"""Scores of classes, averaged over training sets."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import entr, logsumexp
from scipy.stats import norm, qmc

from cavity.arrays import Array
from cavity.arrays.special import ndtr
from cavity.likelihoods.normal import standardise
from cavity.resampling.laws import Occupancy
from cavity.resampling.pool import Averages, Pool
from cavity.resampling.repeats import RepeatedSites
from cavity.resampling.scores import (
    NODES,
    REACH,
    SMALLEST,
    ExpectedScores,
    PointScores,
    Scores,
    class_scores,
    log_odds_against,
)
from cavity.resampling.theories import average_over_fields
from cavity.sites import Marginals

_KNOTS = 65
_DRAWS = 512
# The error on the pool is averaged over examples as well: these suffice.
_FEWER_DRAWS = 128


class BinaryScores(Scores):
    """Scores of two classes, which one latent function separates."""

    def held_out(self, averages: Sequence[Averages]) -> PointScores:
        """Return errors, log losses and Brier scores."""
        [c], [pool] = averages, self.pools

        def losses(h: Array) -> tuple[Array, Array]:
            log_p = pool.likelihood.tilted(pool.y, Marginals(h, c.G)).log_z
            return -log_p, np.expm1(log_p) ** 2

        log_loss, brier = average_over_fields(losses, c.R, c.V, NODES)
        support = pool.likelihood.tilted(pool.y, Marginals(c.R, c.G + c.V)).log_z
        error, doubt = _wrong_side(pool.y, c), log_odds_against(support)
        return PointScores(error, log_loss, brier, support, doubt)

    def expected(self, averages: Sequence[Averages]) -> ExpectedScores:
        """Return probabilities of the less probable class, and entropies."""
        [c], [pool] = averages, self.pools

        def losses(h: Array) -> tuple[Array, Array]:
            log_p = pool.likelihood.tilted(1.0, Marginals(h, c.G)).log_z
            p, q = np.exp(log_p), -np.expm1(log_p)
            return np.minimum(p, q), entr(p) + entr(q)

        return ExpectedScores(*average_over_fields(losses, c.R, c.V, NODES))

    def pool_error(
        self, pool: Sequence[Averages], held_out: Sequence[Averages], occupancy: Occupancy, /
    ) -> Array:
        """Return the probability of the wrong sign, for each number of draws by itself.

        An example that was drawn is nearly always right, one that was not often wrong: over both
        together the prediction is far from Gaussian.
        """
        [c], [examples] = held_out, self.pools
        p = occupancy.probability
        wrong = (1.0 - p.sum(axis=0)) * _wrong_side(examples.y, c)
        for p_s, wrong_s in zip(p, _wrong_after(examples, c, occupancy), strict=True):
            wrong += p_s * wrong_s
        return wrong

    def predictions(self, averages: Sequence[Averages], x: Array) -> Array:
        """Return probabilities of the second class."""
        [c], [pool] = averages, self.pools
        h = c.R + np.sqrt(c.V) * x[:, None]
        return np.exp(pool.likelihood.tilted(1.0, Marginals(h, c.G)).log_z)


def _wrong_side(y: Array, c: Averages) -> Array:
    """Return the probability Φ(−y R/√V) that the sign of the prediction is not the label's."""
    return ndtr(standardise(-y * c.R, np.sqrt(np.maximum(c.V, SMALLEST))))


def _wrong_after(pool: Pool, c: Averages, occupancy: Occupancy) -> Iterator[Array]:
    """Yield the probability of the wrong sign once an example has been drawn 1, 2, ... times.

    The posterior mean rises with the field h; the sign is wrong below the field where it is zero.
    """
    x = np.linspace(-REACH, REACH, _KNOTS)
    spread = np.sqrt(np.maximum(c.V, SMALLEST))
    h = c.R + pool.y * spread * x[:, None]
    repeats = RepeatedSites(pool.likelihood, pool.y, occupancy.s)
    for slope, _ in repeats(Marginals(h, c.G), c.excess_response):
        yield ndtr(_root(x, pool.y * (h + c.response * slope)))


def _root(x: Array, f: Array) -> Array:
    """Return where increasing functions, in the columns of f, are zero: Hermite's inverse cubic."""
    right = np.clip(np.sum(f <= 0.0, axis=0), 1, len(x) - 1)
    columns, slope = np.arange(f.shape[1]), np.gradient(f, x, axis=0)
    ends = [(x[i], f[i, columns], slope[i, columns]) for i in (right - 1, right)]
    (x0, f0, d0), (x1, f1, d1) = ends
    width = np.maximum(f1 - f0, SMALLEST)
    # Where rounding has made it flat, a slope far below the chord's.
    d0, d1 = (np.maximum(d, 1e-3 * width / (x1 - x0)) for d in (d0, d1))
    t = np.clip(-f0 / width, 0.0, 1.0)
    between = x0 + (x1 - x0) * t**2 * (3.0 - 2.0 * t)
    between += width * t * (1.0 - t) * ((1.0 - t) / d0 - t / d1)
    return np.clip(between, x0, x1)


class MulticlassScores(Scores):
    """Scores of several classes, each with a latent function that separates it from the rest.

    Their fields are taken to be independent given the example; averages over them are by
    quasi-Monte Carlo.
    """

    def held_out(self, averages: Sequence[Averages]) -> PointScores:
        """Return errors, log losses and Brier scores."""
        losses = class_scores(self._log_proba(averages), self.codes)
        error, log_loss, brier = (np.mean(np.asarray(part), axis=0) for part in losses)
        support = logsumexp(-losses.log_loss, axis=0) - np.log(_DRAWS)
        return PointScores(error, log_loss, brier, support, log_odds_against(support))

    def expected(self, averages: Sequence[Averages]) -> ExpectedScores:
        """Return probabilities of all but the most probable class, and entropies."""
        p = np.exp(self._log_proba(averages))
        error, entropy = 1.0 - np.max(p, axis=2), np.sum(entr(p), axis=2)
        return ExpectedScores(error.mean(axis=0), entropy.mean(axis=0))

    def pool_error(
        self, pool: Sequence[Averages], held_out: Sequence[Averages], occupancy: Occupancy, /
    ) -> Array:
        """Return the probability of a wrong class, for each number of draws by itself."""
        fields = self._fields(held_out, _FEWER_DRAWS)
        p = occupancy.probability
        wrong = (1.0 - p.sum(axis=0)) * self._wrong([f.before for f in fields])
        after = zip(*(f.after(occupancy.s) for f in fields), strict=True)
        for p_s, marginals in zip(p, after, strict=True):
            wrong += p_s * self._wrong(marginals)
        return wrong

    def predictions(self, averages: Sequence[Averages], x: Array) -> Array:
        """Refuse: one field does not decide among several classes."""
        raise ValueError(
            "measure() needs a prediction of one number: two classes or a real target, not "
            f"{len(self.pools)} classes."
        )

    @property
    def codes(self) -> Array:
        """Each example's class."""
        return np.argmax([pool.y for pool in self.pools], axis=0)

    def _log_proba(self, averages: Sequence[Averages]) -> Array:
        """Return normalised log probabilities of shape (draws, n, classes)."""
        log_p = self._unnormalised([f.before for f in self._fields(averages, _DRAWS)])
        return log_p - logsumexp(log_p, axis=2, keepdims=True)

    def _fields(self, averages: Sequence[Averages], count: int) -> list["LatentFields"]:
        """Return draws of every latent function that fill the space evenly."""
        sobol = qmc.Sobol(len(self.pools), seed=0).random(count)
        x = norm.ppf(np.clip(sobol, 1e-12, 1.0 - 1e-12))
        each = zip(self.pools, averages, x.T, strict=True)
        return [
            LatentFields(pool, c, Marginals(c.R + np.sqrt(c.V) * x_c[:, None], c.G))
            for pool, c, x_c in each
        ]

    def _unnormalised(self, marginals: Sequence[Marginals]) -> Array:
        parts = [
            pool.likelihood.tilted(1.0, q).log_z
            for pool, q in zip(self.pools, marginals, strict=True)
        ]
        return np.stack(parts, axis=2)

    def _wrong(self, marginals: Sequence[Marginals]) -> Array:
        return np.mean(np.argmax(self._unnormalised(marginals), axis=2) != self.codes, axis=0)


class LatentFields(NamedTuple):
    """Draws of a latent function at each example, over the training sets it is not in."""

    pool: Pool
    c: Averages
    before: Marginals

    def after(self, occupations: Array) -> Iterator[Marginals]:
        """Yield the marginals once the example has been drawn 1, 2, ... times."""
        (h, G), pool = self.before, self.pool
        repeats = RepeatedSites(pool.likelihood, pool.y, occupations)
        for slope, curvature in repeats(self.before, self.c.excess_response):
            yield Marginals(h + self.c.response * slope, G * (1.0 + G * curvature))
