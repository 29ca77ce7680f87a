"""Expectation propagation on a fixed basis: a table seen again, its old sites taken out first."""

from typing import NamedTuple

import numpy as np

from cavity.arrays import Array, cholesky, clip, invert_lower
from cavity.likelihoods import Likelihood
from cavity.online.block import effective_site, solve_block
from cavity.online.state import BLOCK, Covariance, Features, State, features
from cavity.sites import Local, Marginals, Moments, Sites, cavity

__all__ = ["Sweeps", "sweep"]

_CLOSE = 1e-8
"""Change of the sites, in units of the marginals' own precision, at which sweeping stops."""
_SMALLEST_REST = 1e-12
_SMALLEST_STEP = 0.1


class Sweeps(NamedTuple):
    """Where sweeping ended."""

    state: State
    sites: Sites
    n_sweeps: int
    residual: float


class _Visit(NamedTuple):
    """A block of examples, each by all the others."""

    rows: slice
    seen: Features
    q: Marginals
    c: Marginals
    moments: Moments
    sites: Sites
    """The sites that the cavities ask for."""


class _Natural(NamedTuple):
    """Σ⁻¹ and Σ⁻¹ μ, summed up from sites."""

    A: Array
    h: Array


def sweep(
    kernel: Covariance, likelihood: Likelihood, state: State, X: Array, y: Array, sweeps: int
) -> Sweeps:
    """Sweep over a table until its sites agree with their cavities, or often enough.

    It is EP for the model in which γ, what the basis points do not tell of an example's value, is
    independent from example to example. The sites to begin with are those of one pass from the
    prior at the state's basis points, so that what the state has learned is not counted twice.
    Within a block of examples new sites are found side by side, from block to block one after the
    other. The evidence is EP's.

    Parameters
    ----------
    kernel : Covariance
    likelihood : Likelihood
    state : State
        Its basis points are kept.
    X : array of shape (n, d)
    y : array of shape (n,)
    sweeps : int
        The most sweeps to make.
    """
    state, sites = _first_sites(kernel, likelihood, state, X, y)
    step, residual, k = 1.0, np.inf, 0
    while k < sweeps and residual > _CLOSE:
        last, k = residual, k + 1
        state, sites, residual = _once(kernel, likelihood, state, sites, X, y, step)
        # Sites side by side may overshoot; from a sweep to the next they must come closer.
        step = max(_SMALLEST_STEP, 0.5 * step) if residual > last else min(1.0, 1.4 * step)
    value = _log_evidence(kernel, likelihood, state, sites, X, y)
    return Sweeps(state._replace(log_evidence=value), sites, k, residual)


def _first_sites(
    kernel: Covariance, likelihood: Likelihood, state: State, X: Array, y: Array
) -> tuple[State, Sites]:
    """Return the sites of one pass at a fixed basis, and the state that they make."""
    b = len(state.mean)
    state = state._replace(mean=np.zeros(b), cov=np.eye(b))
    tau, nu = np.empty(len(y)), np.empty(len(y))
    for begin in range(0, len(y), BLOCK):
        rows = slice(begin, min(begin + BLOCK, len(y)))
        phi, own, prior, noise = features(kernel, state.Z, state.L, X[rows])
        seen = Features(phi, np.zeros_like(own), prior, own + noise)
        block = solve_block(state, likelihood.subset(rows), y[rows], seen)
        tau[rows], nu[rows] = block.sites
        state = block.learn(state, len(y[rows]))._replace(seen=state.seen)
    return state, Sites(tau, nu)


def _once(
    kernel: Covariance,
    likelihood: Likelihood,
    state: State,
    sites: Sites,
    X: Array,
    y: Array,
    step: float,
) -> tuple[State, Sites, float]:
    """Visit every example once; the state at the end is summed up from its sites afresh."""
    tau, nu = sites.tau.copy(), sites.nu.copy()
    total = _Natural(np.eye(len(state.mean)), np.zeros(len(state.mean)))
    largest = 0.0
    for begin in range(0, len(y), BLOCK):
        visit = _visit(kernel, likelihood, state, Sites(tau, nu), X, y, begin)
        rows, seen, q = visit.rows, visit.seen, visit.q
        change = Sites(visit.sites.tau - tau[rows], visit.sites.nu - nu[rows])
        size = np.maximum(np.abs(change.tau) * q.variance, np.abs(change.nu) * np.sqrt(q.variance))
        largest = max(largest, float(np.max(size)))
        change = Sites(step * change.tau, step * change.nu)
        tau[rows] += change.tau
        nu[rows] += change.nu
        total = _add(total, seen, Sites(tau[rows], nu[rows]))
        state = _multiply(state, seen, change)
    return _state_of(state, total), Sites(tau, nu), largest


def _visit(
    kernel: Covariance,
    likelihood: Likelihood,
    state: State,
    sites: Sites,
    X: Array,
    y: Array,
    begin: int,
) -> _Visit:
    rows = slice(begin, min(begin + BLOCK, len(y)))
    seen = features(kernel, state.Z, state.L, X[rows])
    variance = clip(np.einsum("ij,ij->j", seen.phi, state.cov @ seen.phi), low=0.0)
    q = Marginals(seen.phi.T @ state.mean, variance)
    old = Sites(sites.tau[rows], sites.nu[rows])
    # Rounding may take a marginal below the variance that its own site allows.
    rest = clip(1.0 - old.tau * variance, low=_SMALLEST_REST)
    c = cavity(Local(q, old, old.nu - old.tau * q.mean, rest))
    moments, new = effective_site(likelihood.subset(rows), y[rows], c, seen.own + seen.noise)
    return _Visit(rows, seen, q, c, moments, new)


def _add(total: _Natural, seen: Features, sites: Sites) -> _Natural:
    P = seen.phi * np.sqrt(sites.tau)
    return _Natural(total.A + P @ P.T, total.h + seen.phi @ sites.nu)


def _multiply(state: State, seen: Features, change: Sites) -> State:
    """Multiply changes of sites, of either sign, into the posterior."""
    M = state.cov @ seen.phi
    G = seen.phi.T @ M
    # ΔT (I + G ΔT)⁻¹, symmetric though its factors are not.
    W = np.linalg.solve((np.eye(len(G)) + G * change.tau).T, np.diag(change.tau)).T
    shift = M @ change.nu
    mean = state.mean + shift - M @ (W @ (seen.phi.T @ (state.mean + shift)))
    cov = state.cov - M @ (W @ M.T)
    return state._replace(mean=mean, cov=0.5 * (cov + cov.T))


def _state_of(state: State, total: _Natural) -> State:
    W = invert_lower(cholesky(total.A.copy()))
    cov = W.T @ W
    return state._replace(mean=cov @ total.h, cov=cov)


def _log_evidence(
    kernel: Covariance, likelihood: Likelihood, state: State, sites: Sites, X: Array, y: Array
) -> float:
    """Return EP's evidence with log det(I + K T) = −log det Σ."""
    value = float(np.sum(np.log(np.diagonal(cholesky(state.cov.copy())))))
    for begin in range(0, len(y), BLOCK):
        rows, _, q, (m, v), moments, _ = _visit(kernel, likelihood, state, sites, X, y, begin)
        tau, nu = sites.tau[rows], sites.nu[rows]
        grown = 1.0 + tau * v
        # (ν + m/v)²/(τ + 1/v) − m²/v, written without the quotients by v.
        quadratic = (v * nu**2 + 2.0 * nu * m - tau * m**2) / grown
        terms = moments.log_z + 0.5 * (np.log(grown) + nu * q.mean - quadratic)
        value += float(np.sum(terms))
    return value
