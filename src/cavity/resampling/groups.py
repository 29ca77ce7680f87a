"""Examples with equal inputs: they share one latent value.

An average field cannot tell whether an example's twin is in the training set. With Gaussian noise
that is not needed: the draws of k examples with one latent value are draws of one example, of which
0, 1, ..., k are made. An example that is held out has its k − 1 twins beside it, drawn or not, so
its averages are a mixture over the number of twins drawn.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import binom, hypergeom

from cavity.arrays import Array, row_blocks
from cavity.priors import DensePrior
from cavity.resampling.averaged import SizeSolution
from cavity.resampling.laws import Occupancy, lumped, most_draws
from cavity.resampling.pool import Averages, EffectiveSites, Pool, mixed

# Latent values are equal if all n examples together tell their difference from zero by less than
# this share of a variance, so that merging changes the averages less than the theory is off, ...
_EQUAL = 0.02
# ... or if it has this share of their own: that much is rounding.
_ROUNDING = 16.0 * float(np.finfo(float).eps)
# Numbers of twins drawn that are rarer than this are ignored.
_RARE = 1e-9
_BLOCK = 256
_TINY = float(np.finfo(float).tiny)


class Groups(NamedTuple):
    """The examples of a pool by latent value."""

    pool: Pool
    """All examples."""
    index: Array
    """The group of each example."""
    first: Array
    """One example of each group."""
    count: Array
    """Number of examples in each group."""

    @property
    def mean(self) -> Array:
        """Average target of each group."""
        return np.bincount(self.index, self.pool.y) / self.count

    @property
    def spread(self) -> Array:
        """Variance of the targets within each group."""
        return np.bincount(self.index, (self.pool.y - self.mean[self.index]) ** 2) / self.count

    @property
    def merged(self) -> Pool:
        """A pool with one example for each group, of its average target."""
        rows, pool = self.first, self.pool
        K = pool.prior.K[np.ix_(rows, rows)]
        noisy, share = pool.likelihood.subset(rows), pool.share[rows] * self.count
        return Pool(DensePrior(K), self.mean, noisy, share, noise=pool.noise)

    def occupancy(self, draws: Array, law: str) -> Occupancy:
        """Return how often each group is drawn if its examples are drawn ``draws`` times each."""
        drawn = _Drawn.by(draws, law)
        found = drawn.occupancy(self.count, draws[self.first] / drawn.size)
        return found._replace(scatter=found.scatter * self.spread)

    def split(self, found: SizeSolution, draws: Array, law: str) -> SizeSolution:
        """Return what the averages of the groups mean for each example."""
        (u, gamma, w, _), k = found.sites, self.count
        each = (part[self.index] for part in (u / k, gamma / k, w / k))
        parts = tuple(self._with_twins(found.held_out, draws, law))
        return found._replace(
            pool=_rows(found.pool, self.index), held_out=mixed(parts), sites=EffectiveSites(*each)
        )

    def _with_twins(self, c: Averages, draws: Array, law: str) -> list[tuple[Array, Averages]]:
        """Return shares and averages of held-out examples with 0, 1, ... twins drawn."""
        index, y = self.index, self.pool.y
        k, mean = self.count[index], self.mean[index]
        others = np.maximum(k - 1.0, 1.0)
        twins = mean + (mean - y) / others
        spread = np.maximum(k * self.spread[index] - (y - mean) ** 2 * k / others, 0.0) / others
        drawn, own = _Drawn.by(draws, law), draws[self.first]
        share = own / np.maximum(drawn.size - (own if law == "bootstrap" else 0.0), _TINY)
        drawn = drawn._replace(present=max(drawn.present - 1.0, 0.0))
        s, p, scatter = drawn.occupancy(self.count - 1.0, share)
        c, noise = _rows(c, index), self.pool.likelihood.noise_variance
        parts = [(np.maximum(1.0 - p.sum(axis=0), 0.0)[index], c)]
        for s_k, p_k, part in zip(s, p[:, index], np.asarray(scatter)[:, index], strict=True):
            keep, v = noise / (noise + s_k * c.G), part * spread
            R = twins + keep * (c.R - twins)
            parts.append((p_k, Averages(keep * c.G, R, keep**2 * c.V + (1.0 - keep) ** 2 * v)))
        return [part for part in parts if np.max(part[0]) > _RARE]


def groups_of(pool: Pool) -> Groups | None:
    """Return the examples by latent value; None if no two have the same.

    Examples of unequal noise or share stay apart.
    """
    noise = np.broadcast_to(np.asarray(pool.likelihood.noise_variance), pool.y.shape)
    index, leads = np.arange(len(pool.y)), np.ones(len(pool.y), dtype=bool)
    for i, j in row_blocks(len(index), _BLOCK):
        equal = _equal(pool, noise, slice(i, j))
        for k in np.flatnonzero(np.argmax(equal, axis=1) < index[i:j]) + i:
            # All of a group equal its first: of a chain of neighbours, the ends may differ.
            index[k] = np.argmax(equal[k - i] & leads)
            leads[k] = index[k] == k
    first, index, count = np.unique(index, return_inverse=True, return_counts=True)
    return Groups(pool, index, first, count.astype(float)) if len(first) < len(index) else None


def _equal(pool: Pool, noise: Array, rows: slice) -> Array:
    """Return whether some examples have the latent values of all, of shape (rows, n)."""
    own, difference = pool.prior.diag, -2.0 * pool.prior.K[rows]
    difference += own
    difference += own[rows, None]
    equal = difference <= _EQUAL / len(own) * noise + _ROUNDING * own
    equal &= noise == noise[rows, None]
    equal &= np.isclose(pool.share, pool.share[rows, None], rtol=1e-9, atol=0.0)
    return np.asarray(equal)


class _Drawn(NamedTuple):
    """A training set of ``size`` draws, of which several may be of one group."""

    law: str
    size: float
    present: float
    """How many examples there are to draw from, all alike; 0 if each is drawn by itself."""

    @classmethod
    def by(cls, draws: Array, law: str) -> "_Drawn":
        """Return the law under which each example is expected so often."""
        some = draws[draws > 0.0]
        alike = law == "subsample" and np.allclose(some, some[0], rtol=1e-9)
        return cls(law, float(np.round(np.sum(draws))), float(len(some)) if alike else 0.0)

    def occupancy(self, count: Array, share: Array) -> Occupancy:
        """Return the draws of ``count`` examples, each of a share; targets have the variance 1."""
        if self.law == "bootstrap":
            p = np.minimum(count * share, 1.0)
            s = np.arange(1.0, min(self.size, most_draws(self.size * p)) + 1.0)[:, None]
            return Occupancy(s[:, 0], lumped(binom(self.size, p), s), 1.0 / (s + 0.0 * p))
        s = np.arange(1.0, max(1.0, float(np.max(count))) + 1.0)[:, None]
        drawn = binom(count, np.minimum(self.size * share, 1.0))
        if self.present:
            there = np.where(share > 0.0, count, 0.0)
            drawn = hypergeom(self.present, there, min(self.size, self.present))
        # Of a finite number without replacement.
        left = np.maximum(count - s, 0.0) / np.maximum(count - 1.0, 1.0)
        return Occupancy(s[:, 0], drawn.pmf(s), left / s)


def _rows(c: Averages, index: Array) -> Averages:
    return Averages(c.G[index], c.R[index], c.V[index])
