"""Changes of a posterior other than by examples: of its basis, its memory and its prior."""

import numpy as np
from scipy.linalg import qr_delete

from cavity.arrays import Array, NotPositiveDefiniteError, cholesky, invert_lower, solve_lower
from cavity.online.posterior import BasisFeatures, OnlinePosterior, features
from cavity.priors import KernelRule

_DRIFT = 1e-10
"""Relative error of L Lᵀ at which the factor is computed afresh."""
_SMALLEST = 1e-14
"""The least eigenvalue of Σ; one below it is rounding."""


def grow(posterior: OnlinePosterior, x: Array, seen: BasisFeatures) -> OnlinePosterior:
    """Make an input x, of shape (1, d), a basis point; the posterior process stays the same."""
    b = len(posterior.mean)
    L, cov = np.zeros((b + 1, b + 1)), np.zeros((b + 1, b + 1))
    L[:b, :b], L[b, :b], L[b, b] = posterior.L, seen.phi[:, 0], np.sqrt(seen.residual[0])
    cov[:b, :b], cov[b, b] = posterior.cov, 1.0
    return posterior._replace(
        Z=np.concatenate([posterior.Z, x]),
        L=L,
        mean=np.append(posterior.mean, 0.0),
        cov=cov,
        changes=posterior.changes + 1,
    )


def scores(posterior: OnlinePosterior) -> Array:
    """Return the score ε_i = α_i²/(Q_ii + C_ii) of each basis point."""
    W = invert_lower(posterior.L.copy())
    # Q + C = L⁻ᵀ Σ L⁻¹ is the posterior covariance of K⁻¹ f, and α its mean.
    return (W.T @ posterior.mean) ** 2 / np.einsum("ij,ij->j", W, posterior.cov @ W)


def delete(posterior: OnlinePosterior, i: int) -> OnlinePosterior:
    """Remove a basis point, with the least KL divergence from the old posterior to the new.

    The projection is the posterior *given* that [K⁻¹ f]_i = w·f̃ vanishes, w = L⁻¹ e_i: that
    the point's value is the one that the others predict. No other basis point's value depends on
    the direction w, so rotations that put it last leave a triangular factor of the others.
    """
    unit = np.eye(len(posterior.mean))
    w = solve_lower(posterior.L, unit[i].copy())
    s = posterior.cov @ w
    mean = posterior.mean - s * ((w @ posterior.mean) / (w @ s))
    cov = posterior.cov - np.outer(s, s / (w @ s))
    U, R = qr_delete(unit, posterior.L.T, i, which="col")
    # The same rotations, applied to the covariance from both sides.
    half, _ = qr_delete(cov, posterior.L.T, i, which="col")
    cov, _ = qr_delete(half.T, posterior.L.T, i, which="col")
    sign = np.where(np.diagonal(R) < 0.0, -1.0, 1.0)
    return posterior._replace(
        Z=np.delete(posterior.Z, i, axis=0),
        L=np.ascontiguousarray(R[:-1].T * sign),
        mean=(U.T @ mean)[:-1] * sign,
        cov=_symmetric(cov[:-1, :-1] * np.outer(sign, sign)),
        changes=posterior.changes + 1,
    )


def fade(posterior: OnlinePosterior, share: float) -> OnlinePosterior:
    """Raise the data's part of the posterior to a power below one: back towards the prior.

    Its natural parameters, Σ⁻¹ − I and Σ⁻¹ μ, are multiplied by the share ρ: Σ ← Σ D⁻¹ and
    μ ← ρ D⁻¹ μ with D = (1 − ρ) Σ + ρ I.
    """
    D = (1.0 - share) * posterior.cov + share * np.eye(len(posterior.mean))
    L = cholesky(D)
    half = solve_lower(L, np.column_stack([posterior.cov, share * posterior.mean]))
    back = solve_lower(L, half, transpose=True)
    return posterior._replace(mean=back[:, -1].copy(), cov=_symmetric(back[:, :-1]))


def mend(rule: KernelRule, posterior: OnlinePosterior) -> OnlinePosterior:
    """Return the posterior with L computed afresh if a row of L Lᵀ has drifted.

    Each call checks another row, so that the check costs no more than a change of the basis.
    """
    Z, i = posterior.Z, posterior.changes % len(posterior.Z)
    row = rule.matrix(Z[i : i + 1], Z)[0]
    if np.max(np.abs(row - posterior.L @ posterior.L[i])) <= _DRIFT * np.max(np.abs(row)):
        return posterior
    try:
        return posterior._replace(L=cholesky(np.ascontiguousarray(rule.matrix(Z, Z))))
    except NotPositiveDefiniteError:
        # Basis points this close have no factor but the one that has grown point by point.
        return posterior


def proper(posterior: OnlinePosterior) -> OnlinePosterior:
    """Return the posterior with a covariance that rounding has not made indefinite."""
    try:
        cholesky(posterior.cov.copy())
    except NotPositiveDefiniteError:
        values, U = np.linalg.eigh(posterior.cov)
        return posterior._replace(cov=_symmetric((U * np.clip(values, _SMALLEST, 1.0)) @ U.T))
    return posterior


def recondition(new: KernelRule, posterior: OnlinePosterior, novelty: float) -> OnlinePosterior:
    """Return the posterior under another prior, without the data.

    The data's part of the posterior, exp(h·f − f·T f/2) in the basis points' values f, is kept and
    multiplied into the new prior. Basis points that are not novel under the new prior are dropped,
    and their part is expressed in the others. The evidence changes by the ratio of the normalisers.
    """
    values, U = np.linalg.eigh(posterior.cov)
    values = np.clip(values, _SMALLEST, 1.0)
    fresh = OnlinePosterior.empty(posterior.Z.shape[1])
    for x in posterior.Z[:, None]:
        seen = features(new, fresh, x)
        if seen.residual[0] > novelty * seen.prior[0]:
            fresh = grow(fresh, x, seen)
    P = features(new, fresh, posterior.Z).phi
    # T = A Aᵀ and h in the values f = L f̃, then in the new coordinates, f = Pᵀ f̃'.
    A = P @ solve_lower(posterior.L, U * np.sqrt(1.0 / values - 1.0), transpose=True)
    g = U.T @ posterior.mean
    h = P @ solve_lower(posterior.L, U @ (g / values), transpose=True)
    W = invert_lower(cholesky(np.eye(len(h)) + A @ A.T))
    mean = W.T @ (W @ h)
    # log E exp(h·f̃ − f̃·T f̃/2), the prior's mean of the data's part, before and after.
    before = 0.5 * (g @ (g / values) + np.sum(np.log(values)))
    after = 0.5 * (h @ mean) + np.sum(np.log(np.diagonal(W)))
    return fresh._replace(
        mean=mean,
        cov=_symmetric(W.T @ W),
        log_evidence=posterior.log_evidence + float(after - before),
        seen=posterior.seen,
        changes=posterior.changes + 1,
    )


def _symmetric(A: Array) -> Array:
    return 0.5 * (A + A.T)
