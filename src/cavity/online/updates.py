"""Changes of the basis and of the prior: grow, delete, fade, refresh, recondition."""

import numpy as np
from scipy.linalg import qr_delete

from cavity.arrays import (
    Array,
    NotPositiveDefiniteError,
    cholesky,
    invert_lower,
    solve_lower,
)
from cavity.online.state import Covariance, Features, State, empty_state, features

__all__ = ["delete", "fade", "grow", "log_normaliser", "mend", "recondition", "worth"]

_DRIFT = 1e-10
"""Relative error of L Lᵀ at which the factor is computed afresh."""
_SMALLEST = 1e-14
"""Eigenvalue of Σ below which rounding is all that is left of it."""


def grow(state: State, x: Array, seen: Features) -> State:
    """Make an input a basis point; the posterior process stays the same.

    Parameters
    ----------
    state : State
    x : array of shape (1, d)
    seen : Features
        Of this one input.
    """
    b = len(state.mean)
    L, cov = np.zeros((b + 1, b + 1)), np.zeros((b + 1, b + 1))
    L[:b, :b], L[b, :b], L[b, b] = state.L, seen.phi[:, 0], np.sqrt(seen.own[0])
    cov[:b, :b], cov[b, b] = state.cov, 1.0
    return state._replace(
        Z=np.concatenate([state.Z, x]),
        L=L,
        mean=np.append(state.mean, 0.0),
        cov=cov,
        changes=state.changes + 1,
    )


def worth(state: State) -> Array:
    """Return the score ε_i = α_i²/(Q_ii + C_ii) of each basis point."""
    W = invert_lower(state.L.copy())
    # Q + C = L⁻ᵀ Σ L⁻¹ is the posterior covariance of K⁻¹ f, and α its mean.
    return (W.T @ state.mean) ** 2 / np.einsum("ij,ij->j", W, state.cov @ W)


def delete(state: State, i: int) -> State:
    """Take a basis point out, at the least KL divergence from the old posterior to the new.

    The projection is the posterior *given* that [K⁻¹ f]_i = w·f̃ vanishes, w = L⁻¹ e_i: that
    the point's value is the one that the others predict. w is also the one direction that no other
    basis point's value depends on; rotations that put it last leave a triangular factor.
    """
    b = len(state.mean)
    unit = np.zeros(b)
    unit[i] = 1.0
    w = solve_lower(state.L, unit)
    s = state.cov @ w
    mean = state.mean - s * ((w @ state.mean) / (w @ s))
    cov = state.cov - np.outer(s, s / (w @ s))
    U, R = qr_delete(np.eye(b), state.L.T, i, which="col")
    # The same rotations, applied from either side to what stands in the place of the identity.
    half, _ = qr_delete(cov, state.L.T, i, which="col")
    cov, _ = qr_delete(half.T, state.L.T, i, which="col")
    sign = np.where(np.diagonal(R) < 0.0, -1.0, 1.0)
    return state._replace(
        Z=np.delete(state.Z, i, axis=0),
        L=np.ascontiguousarray(R[:-1].T * sign),
        mean=(U.T @ mean)[:-1] * sign,
        cov=_symmetric(cov[:-1, :-1] * np.outer(sign, sign)),
        changes=state.changes + 1,
    )


def fade(state: State, share: float) -> State:
    """Raise all that the data have said to a power below one: back towards the prior.

    The data's part of the posterior's natural parameters, Σ⁻¹ − I and Σ⁻¹ μ, is multiplied by the
    share ρ: Σ ← Σ D⁻¹ and μ ← ρ D⁻¹ μ with D = (1 − ρ) Σ + ρ I.
    """
    D = (1.0 - share) * state.cov + share * np.eye(len(state.mean))
    L = cholesky(D)
    half = solve_lower(L, np.column_stack([state.cov, share * state.mean]))
    back = solve_lower(L, half, transpose=True)
    return state._replace(mean=back[:, -1].copy(), cov=_symmetric(back[:, :-1]))


def mend(kernel: Covariance, state: State) -> State:
    """Return the state with its factor computed afresh if a row of it has drifted.

    A different row is looked at each time, so that the check costs no more than a change.
    """
    b = len(state.mean)
    if not b:
        return state
    i = state.changes % b
    row, own = kernel.matrix(state.Z[i : i + 1], state.Z)[0], state.L @ state.L[i]
    if np.max(np.abs(row - own)) <= _DRIFT * np.max(np.abs(row)):
        return state
    try:
        return state._replace(L=cholesky(np.ascontiguousarray(kernel.matrix(state.Z, state.Z))))
    except NotPositiveDefiniteError:
        # Basis points this close have a factor only as grown, one by one.
        return state


def proper(state: State) -> State:
    """Return the state with a covariance that rounding has not made indefinite."""
    try:
        cholesky(state.cov.copy())
    except NotPositiveDefiniteError:
        values, U = np.linalg.eigh(state.cov)
        return state._replace(cov=_symmetric((U * np.clip(values, _SMALLEST, 1.0)) @ U.T))
    return state


def recondition(old: Covariance, new: Covariance, state: State, tol: float) -> State:
    """Put what the data have said at the basis points behind another prior.

    The data's part of the posterior, exp(h·f − f·T f/2) in the basis points' values f, is kept and
    multiplied into the new prior. Basis points that others tell under the new prior are dropped,
    and speak through these. The evidence changes by the ratio of the two normalisers.

    Parameters
    ----------
    old, new : Covariance
    state : State
    tol : float
        As in `Options`.
    """
    values, U = np.linalg.eigh(state.cov)
    values = np.clip(values, _SMALLEST, 1.0)
    fresh = _basis(new, state.Z, tol)
    P = features(new, fresh.Z, fresh.L, state.Z).phi
    # T = A Aᵀ and h in the values f = L f̃, then in the new coordinates, f = Pᵀ f̃'.
    A = P @ solve_lower(state.L, U * np.sqrt(1.0 / values - 1.0), transpose=True)
    natural = U @ ((U.T @ state.mean) / values)
    h = P @ solve_lower(state.L, natural, transpose=True)
    L = cholesky(np.eye(len(h)) + A @ A.T)
    W = invert_lower(L)
    cov = W.T @ W
    after = fresh._replace(mean=cov @ h, cov=_symmetric(cov))
    change = log_normaliser(after) - log_normaliser(state)
    return after._replace(
        log_evidence=state.log_evidence + change, seen=state.seen, changes=state.changes + 1
    )


def _basis(kernel: Covariance, Z: Array, tol: float) -> State:
    """Return the prior at those of the points that others do not tell."""
    state = empty_state(Z.shape[1])
    for x in Z[:, None]:
        seen = features(kernel, state.Z, state.L, x)
        if seen.own[0] > tol * seen.prior[0]:
            state = grow(state, x, seen)
    return state


def log_normaliser(state: State) -> float:
    """Return log E exp(h·f̃ − f̃·T f̃/2) under the prior, of the data's part of a posterior."""
    values, U = np.linalg.eigh(state.cov)
    values = np.clip(values, _SMALLEST, 1.0)
    return float(0.5 * np.sum((U.T @ state.mean) ** 2 / values) + 0.5 * np.sum(np.log(values)))


def _symmetric(A: Array) -> Array:
    return 0.5 * (A + A.T)
