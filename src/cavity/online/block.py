"""A block of examples, each predicted by all before it and then learned: solved as one system.

Within a block the basis does not change, and example i enters by a site (τ, ν) on its value
g_i = φ_i·f̃. With G the covariance of the block's values before it, S = diag √τ and
L Lᵀ = I + S G S, the prediction of example i from those before it in the block is

    m_i = m⁰_i + Σ_{j<i} V_ji w_j,  v_i = G_ii − Σ_{j<i} V_ji²,
    V = L⁻¹ S G,  w = L⁻¹ S⁻¹ (ν − τ m⁰),

and its site follows from m_i and v_i. Sites from predictions and predictions from sites, in turns:
each round is a handful of matrix operations for all examples at once. The system is triangular, so
that after k rounds the first k examples are exact; a handful of rounds is all it takes, as a rule.
"""

from dataclasses import dataclass
from functools import cache
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
from cavity.online.state import Features, State
from cavity.sites import Marginals, Moments, Sites, expand, match

__all__ = ["Block", "effective_site", "solve_block"]

_CLOSE = 1e-11
"""Change of predictions between rounds, in their own standard deviations, taken for none."""
_SMALLEST_REST = 1e-12
"""Share of a variance that one example may leave, at the least."""


class _Factor(NamedTuple):
    """Predictions within a block for given sites, and what they came from."""

    c: Marginals
    L: Array
    w: Array
    s: Array


@dataclass(frozen=True)
class Block:
    """Examples as predicted, each by those before it, and all that is needed to learn them.

    Attributes
    ----------
    moments : Moments
        Of each example's likelihood under its prediction.
    sites : Sites
        On the examples' values g.
    rounds : int
    """

    moments: Moments
    sites: Sites
    rounds: int
    factor: _Factor
    M: Array
    """Σ Φ: covariance between f̃ and the examples' values."""

    def learn(self, state: State, count: int) -> State:
        """Return the state after the block's first examples."""
        if not count:
            return state
        L, w, s = self.factor.L[:count, :count], self.factor.w[:count], self.factor.s[:count]
        Y = solve_lower(L, s[:, None] * self.M.T[:count])
        return state._replace(
            mean=state.mean + w @ Y,
            cov=state.cov - Y.T @ Y,
            log_evidence=state.log_evidence + float(np.sum(self.moments.log_z[:count])),
            seen=state.seen + count,
        )


def effective_site(
    likelihood: Likelihood, y: Array, c: Marginals, blur: Array
) -> tuple[Moments, Sites]:
    """Return the moments of each example, and its site on a value seen through Gaussian noise.

    Parameters
    ----------
    likelihood : Likelihood
    y : array
    c : Marginals
        Of the value, by other examples.
    blur : array
        Variance of the noise between the value and the likelihood.
    """
    moments = likelihood.tilted(y, Marginals(c.mean, c.variance + blur))
    if likelihood.quadratic:
        # Known beforehand: matching would lose digits where it is much sharper than the cavity.
        d1, d2, _ = likelihood.derivatives(y, c.mean)
        tau, nu = expand(c.mean, d1, d2)
        return moments, Sites(tau / (1.0 + blur * tau), nu / (1.0 + blur * tau))
    log_z, d1, d2 = moments
    # Rounding may let an example that is far out leave no variance at all, or less.
    d2 = np.maximum(d2, (_SMALLEST_REST - 1.0) / np.maximum(c.variance, np.finfo(float).tiny))
    return moments, match(c, Moments(log_z, d1, d2))


def solve_block(state: State, likelihood: Likelihood, y: Array, seen: Features) -> Block:
    """Predict each example of a block by the state and the examples before it.

    Parameters
    ----------
    state : State
    likelihood : Likelihood
    y : array of shape (r,)
    seen : Features
    """
    M = state.cov @ seen.phi
    G = seen.phi.T @ M
    # Rounding takes variances below zero where the prior's are sixteen orders larger.
    np.fill_diagonal(G, clip(np.diagonal(G), low=0.0))
    c = Marginals(seen.phi.T @ state.mean, np.diagonal(G))
    before = c
    scale = 1.0 / (c.variance + seen.own + seen.noise + np.finfo(float).tiny)
    rounds, change = 0, np.inf
    # The first k examples are exact after k rounds, whatever the change.
    while rounds < len(y) and change > _CLOSE:
        rounds += 1
        # Matched with γ in it and then used without: growing and deleting in one step.
        whole = Marginals(c.mean, c.variance + seen.own)
        moments, sites = effective_site(likelihood, y, whole, seen.noise)
        factor = _predictions(before, G, sites)
        change = _distance(c, factor.c, scale)
        c = factor.c
    return Block(moments, sites, rounds, factor, M)


def _predictions(before: Marginals, G: Array, sites: Sites) -> _Factor:
    s = np.sqrt(sites.tau)
    L = cholesky(congruence_plus_identity(G, s))
    safe = np.where(s > 0.0, s, 1.0)
    gain = np.where(s > 0.0, (sites.nu - sites.tau * before.mean) / safe, 0.0)
    w = solve_lower(L, gain)
    V = solve_lower(L, s[:, None] * G) * _before(len(s))
    variance = clip(before.variance - column_square_sums(V), low=0.0)
    return _Factor(Marginals(before.mean + w @ V, variance), L, w, s)


def _distance(a: Marginals, b: Marginals, scale: Array) -> float:
    mean, variance = a.mean - b.mean, a.variance - b.variance
    return float(max(np.max(mean * mean * scale) ** 0.5, np.max(np.abs(variance) * scale)))


@cache
def _before(count: int) -> Array:
    """Return the matrix with ones where j < i: which examples come before which."""
    return np.triu(np.ones((count, count)), 1)
