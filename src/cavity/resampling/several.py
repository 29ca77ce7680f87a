"""What averages over training sets say about predictions of several classes."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import entr, logsumexp
from scipy.stats import norm, qmc

from cavity.arrays import Array
from cavity.resampling.laws import Occupancy
from cavity.resampling.orders import Order, Pool
from cavity.resampling.repeats import Copies
from cavity.resampling.scores import Expected, Measured, Scorer, log_odds_against
from cavity.resampling.theories import lag
from cavity.sites import Marginals

__all__ = ["Classes"]

_DRAWS = 512
# An error is a share of draws that jump: for the pool's, averaged over examples, these suffice.
_FEWER_DRAWS = 128


class Classes(Scorer):
    """Several classes, each with a latent function that separates it from the rest.

    Their fields are taken for independent given the example.
    """

    def held_out(self, orders: Sequence[Order]) -> Measured:
        """Errors, log losses and Brier scores, by quasi-Monte Carlo over the fields."""
        log_p = self._log_proba(orders)
        own = self._own(log_p)
        hit = np.argmax(log_p, axis=2) == self.codes
        p = np.exp(log_p)
        brier = np.sum(p**2, axis=2) - 2.0 * np.exp(own) + 1.0
        support = logsumexp(own, axis=0) - np.log(_DRAWS)
        error, odds = 1.0 - hit.mean(axis=0), log_odds_against(support)
        return Measured(error, -own.mean(axis=0), brier.mean(axis=0), support, odds)

    def expected(self, orders: Sequence[Order]) -> Expected:
        """Probabilities of all but the most probable class, and entropies."""
        p = np.exp(self._log_proba(orders))
        error, entropy = 1.0 - np.max(p, axis=2), np.sum(entr(p), axis=2)
        return Expected(error.mean(axis=0), entropy.mean(axis=0))

    def pool_error(
        self, pool: Sequence[Order], held_out: Sequence[Order], occupancy: Occupancy, /
    ) -> Array:
        """Probability that another class is the most probable one, number of draws by number."""
        x = self._draws(_FEWER_DRAWS)
        fields = [_Fields.of(*each) for each in zip(self.pools, held_out, x.T, strict=True)]
        wrong = (1.0 - occupancy.probability.sum(axis=0)) * self._wrong([f.before for f in fields])
        after = zip(*(f.after(occupancy.s) for f in fields), strict=True)
        for p, marginals in zip(occupancy.probability, after, strict=True):
            wrong += p * self._wrong(marginals)
        return wrong

    def predictions(self, orders: Sequence[Order], x: Array) -> Array:
        """Refuse: one field does not decide among several classes."""
        raise ValueError(
            "measure() needs a prediction of one number: two classes or a real target, not "
            f"{len(self.pools)} classes."
        )

    @property
    def codes(self) -> Array:
        """Each example's class."""
        return np.argmax([pool.y for pool in self.pools], axis=0)

    def _own(self, log_p: Array) -> Array:
        return np.take_along_axis(log_p, self.codes[None, :, None], axis=2)[:, :, 0]

    def _log_proba(self, orders: Sequence[Order]) -> Array:
        """Return normalised log probabilities of shape (draws, n, classes)."""
        x = self._draws(_DRAWS)
        fields = [_Fields.of(*each) for each in zip(self.pools, orders, x.T, strict=True)]
        log_p = self._unnormalised([f.before for f in fields])
        return log_p - logsumexp(log_p, axis=2, keepdims=True)

    def _draws(self, count: int) -> Array:
        """Return standard normal fields of shape (count, classes) that fill the space evenly."""
        sobol = qmc.Sobol(len(self.pools), seed=0).random(count)
        return norm.ppf(np.clip(sobol, 1e-12, 1.0 - 1e-12))

    def _unnormalised(self, marginals: Sequence[Marginals]) -> Array:
        parts = [
            pool.likelihood.tilted(1.0, q).log_z
            for pool, q in zip(self.pools, marginals, strict=True)
        ]
        return np.stack(parts, axis=2)

    def _wrong(self, marginals: Sequence[Marginals]) -> Array:
        return np.mean(np.argmax(self._unnormalised(marginals), axis=2) != self.codes, axis=0)


class _Fields(NamedTuple):
    """A latent function at the pool, as seen from training sets without the example."""

    pool: Pool
    before: Marginals
    c: Order

    @classmethod
    def of(cls, pool: Pool, c: Order, x: Array) -> "_Fields":
        """Return the fields that standardised ones x stand for."""
        return cls(
            pool,
            Marginals(c.R + np.sqrt(c.V) * x[:, None], np.broadcast_to(c.G, (len(x), len(c.G)))),
            c,
        )

    def after(self, occupations: Array) -> Iterator[Marginals]:
        """Yield the marginals once the example has been drawn 1, 2, ... times."""
        (h, G), pool = self.before, self.pool
        copies = Copies(pool.likelihood, pool.y, occupations)
        for slope, curvature in copies(self.before, lag(self.c)):
            yield Marginals(h + self.c.response * slope, G * (1.0 + G * curvature))
