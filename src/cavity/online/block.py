"""A block of examples, each predicted by all before it and then learned: solved as one system.

Within a block the basis does not change, and example i enters by a site (τ, ν) on its value
g_i = φ_i·f̃. With G the covariance of the block's values before it, S = diag √τ and
L Lᵀ = I + S G S, the prediction of example i from those before it in the block is

    m_i = m⁰_i + Σ_{j<i} V_ji w_j,  v_i = G_ii − Σ_{j<i} V_ji²,
    V = L⁻¹ S G,  w = L⁻¹ S⁻¹ (ν − τ m⁰),

and its site follows from m_i and v_i. The two are computed in turn, by a few matrix operations for
all examples at once. The system is triangular, so the first k examples are exact after k rounds;
usually a few rounds are enough for all.
"""

from typing import NamedTuple

import numpy as np

from cavity.arrays import (
    Array,
    cholesky,
    clip,
    column_square_sums,
    congruence_plus_identity,
    solve_lower,
)
from cavity.likelihoods import Likelihood
from cavity.online.posterior import BasisFeatures, OnlinePosterior
from cavity.sites import Marginals, Matched, Moments, Sites, expand, match

_CLOSE = 1e-11
"""Change of the predictions, in their own standard deviations, at which the rounds stop."""
_SMALLEST_REST = 1e-12
"""Least share of its variance that an example must leave."""
SMALLEST_GAIN = 1e-10
"""Least share of it that an example takes, if the likelihood is not log-concave."""


class Block(NamedTuple):
    """Examples, each predicted by those before it, and what is needed to learn them."""

    moments: Moments
    """Of each example's likelihood under its prediction."""
    rounds: int
    c: Marginals
    """The predictions, of the values without their residual variance and noise."""
    L: Array
    w: Array
    s: Array
    M: Array
    """Σ Φ: covariance between f̃ and the examples' values."""

    def learn(self, posterior: OnlinePosterior, count: int) -> OnlinePosterior:
        """Return the posterior after the block's first examples."""
        Y = solve_lower(self.L[:count, :count], self.s[:count, None] * self.M.T[:count])
        return posterior._replace(
            mean=posterior.mean + self.w[:count] @ Y,
            cov=posterior.cov - Y.T @ Y,
            log_evidence=posterior.log_evidence + float(np.sum(self.moments.log_z[:count])),
            seen=posterior.seen + count,
        )


def site_through_noise(
    likelihood: Likelihood,
    y: Array,
    c: Marginals,
    noise: Array | float,
    least: float = SMALLEST_GAIN,
) -> Matched:
    """Return each example's moments, and its site on a value c that noise is added to.

    Every site takes at least this share of the cavity's variance.
    """
    moments = likelihood.tilted(y, Marginals(c.mean, c.variance + noise))
    if likelihood.quadratic:
        # Matching would lose digits where the likelihood is much sharper than the cavity.
        d1, d2, _ = likelihood.derivatives(y, c.mean)
        tau, nu = expand(c.mean, d1, d2)
        return Matched(moments, Sites(tau / (1.0 + noise * tau), nu / (1.0 + noise * tau)))
    log_z, d1, d2 = moments
    # With an example far out, rounding may make the remaining variance zero or negative.
    variance = np.maximum(c.variance, np.finfo(float).tiny)
    d2 = np.maximum(d2, (_SMALLEST_REST - 1.0) / variance)
    if not likelihood.concave:
        # A contradiction would widen the posterior: it moves the mean only.
        d2 = np.minimum(d2, -least / variance)
    return Matched(moments, match(c, Moments(log_z, d1, d2)))


def solve_block(
    posterior: OnlinePosterior, likelihood: Likelihood, y: Array, seen: BasisFeatures
) -> Block:
    """Predict each example of a block by the posterior and the examples before it."""
    M = posterior.cov @ seen.phi
    G = seen.phi.T @ M
    # Rounding makes variances negative if the prior's are sixteen orders larger.
    np.fill_diagonal(G, clip(np.diagonal(G), low=0.0))
    before = c = Marginals(seen.phi.T @ posterior.mean, np.diagonal(G))
    scale = 1.0 / (c.variance + seen.residual + seen.noise + np.finfo(float).tiny)
    rounds, change = 0, np.inf
    # The first k examples are exact after k rounds, whatever the change.
    while rounds < len(y) and change > _CLOSE:
        rounds += 1
        # Matched with γ included, then used without it: growing and deleting in one step.
        whole = Marginals(c.mean, c.variance + seen.residual)
        moments, sites = site_through_noise(likelihood, y, whole, seen.noise)
        last = c
        c, L, w, s = _predictions(before, G, sites)
        mean, variance = last.mean - c.mean, last.variance - c.variance
        change = max(np.max(mean * mean * scale) ** 0.5, np.max(np.abs(variance) * scale))
    return Block(moments, rounds, c, L, w, s, M)


def _predictions(
    before: Marginals, G: Array, sites: Sites
) -> tuple[Marginals, Array, Array, Array]:
    """Return the predictions for given sites, and L, w and s that they come from."""
    s = np.sqrt(sites.tau)
    L = cholesky(congruence_plus_identity(G, s))
    safe = np.where(s > 0.0, s, 1.0)
    gain = np.where(s > 0.0, (sites.nu - sites.tau * before.mean) / safe, 0.0)
    w = solve_lower(L, gain)
    V = np.triu(solve_lower(L, s[:, None] * G), 1)
    variance = clip(before.variance - column_square_sums(V), low=0.0)
    return Marginals(before.mean + w @ V, variance), L, w, s
