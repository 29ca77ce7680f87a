"""Averages over training sets on a prior with inducing points, for rows in blocks.

One visit to a block computes the cavities that all effective sites lead to, the new sites of its
rows, and what these add to m × m sums: the averages of millions of rows need no n × n matrix.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import (
    Array,
    clip,
    column_square_sums,
    lower_product,
    matmul,
    mirrored,
    namespace,
    row_blocks,
)
from cavity.likelihoods import Likelihood
from cavity.priors.inducing import Features, InducingPosterior, InducingPrior, Sums, left_over
from cavity.resampling.laws import LAWS, most_draws
from cavity.resampling.pool import Averages, EffectiveSites, Examples
from cavity.resampling.theories import cavity_theory, nodes_enough, variational_theory
from cavity.rows import State
from cavity.sites import Rows, Sites, cavity

_FIELDS = 24_000
"""Fields that fit into a processor's cache together, with what is computed of them."""


class BlockPool(NamedTuple):
    """The rows from which training sets are drawn, in blocks, and the fit to all of them."""

    prior: InducingPrior
    blocks: Any
    """`RowBlocks`, with labels ±1, or real targets."""
    likelihood: Likelihood
    size: int
    """Number of rows."""
    share: Array | float
    """Each row's share of the population, one number if they are equal."""
    noise: float = 0.0
    """Variance of the kernel's own noise, which is not in the prior but in the likelihood."""
    posterior: InducingPosterior | None = None
    """Of a fit to all rows."""
    fitted: State | None = None
    """The sites of that fit."""
    tuning: Any = None
    """A `TuningEffect`, if averages are over kernels tuned on each training set."""

    def shares(self, rows: Rows) -> Array:
        """Return the share of each row of a block."""
        return share_of(self.share, rows)


def share_of(share: Array | float, rows: Rows) -> Array:
    """Return the share of each row of a block."""
    whole = np.ndim(share) == 0
    return np.full(rows.y.shape[0], share) if whole else np.asarray(share)[rows.place]


class RowAverages(NamedTuple):
    """What stays with the rows: their effective sites, and the cavities that led to them."""

    u: Array
    gamma: Array
    w: Array
    u_chi: Array | None
    G: Array
    R: Array
    V: Array
    chi: Array | None
    beyond: Array | None = None
    """Variance that no site acts on, under a bound."""
    G0: Array | None = None
    """The cavities of the size before."""
    R0: Array | None = None
    V0: Array | None = None
    chi0: Array | None = None

    @property
    def before(self) -> Averages:
        """The cavities of the size before."""
        return Averages(self.G0, self.R0, self.V0, self.chi0)

    @property
    def sites(self) -> EffectiveSites:
        """The effective sites."""
        return EffectiveSites(self.u, self.gamma, self.w, self.u_chi)

    @property
    def cavities(self) -> Averages:
        """The averages without each row's own site."""
        return Averages(self.G, self.R, self.V, self.chi)

    @property
    def held_out(self) -> Averages:
        """The averages over training sets without the row, of its whole latent value."""
        G = self.G if self.beyond is None else self.G + self.beyond
        return Averages(G, self.R, self.V, self.chi)

    @property
    def pool(self) -> Averages:
        """The averages over all training sets, with the row's own site."""
        c, (u, gamma, w, _) = self.cavities, self.sites
        shrink = 1.0 / (1.0 + self.sites.response * c.response)
        chi = shrink * c.response
        R, V = shrink * c.R + chi * gamma, shrink**2 * c.V + chi**2 * w
        G = c.G / (1.0 + u * c.G)
        G = G if self.beyond is None else G + self.beyond
        return Averages(G, R, V, None if c.chi is None else chi)


class CurveSums(NamedTuple):
    """What rows add to the averages of all rows."""

    response: Sums
    spread: Array
    """Σ_j w_j P_j P_j'/e_j²; NumPy fills in the lower triangle only."""
    with_u: Sums | None
    """The sums under u, if these are not those of the response."""


class BlockAverages(NamedTuple):
    """Averages under given effective sites: a few m × m matrices, for rows old and new."""

    posterior: InducingPosterior
    spread: Array
    """Half of V S V', S the sum of the spreads: x' V S V' x = 2 x' spread x."""
    with_u: InducingPosterior | None

    @classmethod
    def of(cls, prior: InducingPrior, sums: CurveSums) -> "BlockAverages":
        """Return the averages that all rows add up to."""
        posterior = prior.condition(sums.response)
        V, S = posterior.values.V, mirrored(1.0 * sums.spread)
        T = lower_product(V, lower_product(V, S).T)
        xp = namespace(T)
        # The lower triangle is enough for a quadratic form.
        half = xp.tril(T, k=-1) + 0.5 * xp.eye(T.shape[0]) * T
        return cls(posterior, half, None if sums.with_u is None else prior.condition(sums.with_u))

    def quadratic(self, U: Array) -> Array:
        """Return U_i' V S V' U_i of each column."""
        xp = namespace(U)
        return 2.0 * xp.sum(U * lower_product(self.spread, U), axis=0)

    def cavities(self, seen: Features, sites: EffectiveSites) -> Averages:
        """Return the averages without each row's own site, theory 4b on inducing points."""
        U = lower_product(self.posterior.values.V, seen.P.T)
        s = column_square_sums(U)
        local = self.posterior.values.local(seen, Sites(sites.response, sites.gamma), s)
        e = 1.0 + sites.response * seen.left
        others = clip(self.quadratic(U) / e**2 - (s / e**2) ** 2 * sites.w, low=0.0)
        c, V = cavity(local), others / local.rest**2
        if self.with_u is None:
            return Averages(c.variance, c.mean, V)
        G = cavity(self.with_u.values.local(seen, Sites(sites.u, sites.gamma))).variance
        return Averages(G, c.mean, V, c.variance)

    def at(self, P: Array, prior_variance: Array) -> Averages:
        """Return the averages at new inputs, given in the coordinates of the inducing points."""
        own, U = left_over(prior_variance, P), lower_product(self.posterior.values.V, P.T)
        R, chi = matmul(P, self.posterior.values.w), own + column_square_sums(U)
        V = self.quadratic(U)
        if self.with_u is None:
            return Averages(chi, R, V)
        return Averages(own + self.with_u.values.spread(P), R, V, chi)


class SizeEquations(NamedTuple):
    """The equations of one training size, for the rows of any block."""

    likelihood: Likelihood
    theory: str
    law: str
    size: float
    share: Array | float
    noise: float
    tol: float

    def seen(self, prior: InducingPrior, rows: Rows) -> Features:
        """Return the rows as seen from the inducing points, without the kernel's noise."""
        seen = prior.features(rows)
        left, beyond = seen.left - self.noise, seen.beyond
        if not self.likelihood.quadratic:
            left, beyond = left + beyond, 0.0
        return seen._replace(prior=seen.prior - self.noise, left=clip(left, low=0.0), beyond=beyond)

    def sites(self, rows: Rows, c: Averages) -> EffectiveSites:
        """Return the effective sites of rows with given cavities."""
        found: list[Any] = []
        for part, nodes in self._parts(c):
            sites = self._sites(rows, c, part, nodes)
            found = found or [None if x is None else np.empty_like(c.R) for x in sites]
            for whole, x in zip(found, sites, strict=True):
                if x is not None:
                    whole[part] = x
        return EffectiveSites(*found)

    def _parts(self, c: Averages) -> Iterator[tuple[Array, int]]:
        """Yield rows whose averages take equally many nodes, as many as fit into the cache."""
        nodes = nodes_enough(self.likelihood, c)
        for count in np.unique(nodes):
            same = np.flatnonzero(nodes == count)
            for i, j in row_blocks(len(same), _FIELDS // count):
                yield same[i:j], int(count)

    def _sites(self, rows: Rows, c: Averages, part: Array, nodes: int) -> EffectiveSites:
        examples, here = examples_of(self.likelihood, rows, part), part_of_averages(c, part)
        draws = self.size * share_of(self.share, rows)[part]
        # The same for all blocks.
        most = most_draws(self.size * np.asarray(self.share))
        if self.theory == "variational":
            return variational_theory(examples, draws)(here)
        return cavity_theory(examples, LAWS[self.law](draws, most), self.tol, nodes)(here)


def part_of_averages(c: Averages, part: slice | Array) -> Averages:
    """Return the averages of some rows of a block."""
    chi = None if c.chi is None else c.chi[part]
    return Averages(c.G[part], c.R[part], c.V[part], chi)


def examples_of(likelihood: Likelihood, rows: Rows, part: slice | Array) -> Examples:
    """Return the targets and the likelihood of a part of a block."""
    if rows.place != slice(None):
        likelihood = likelihood.subset(rows.place)
    return Examples(rows.y[part], likelihood.subset(part))
