"""The posterior of several functions on the same inducing points, coupled by the rows' sites."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import (
    Array,
    add_to_diagonal,
    cholesky,
    gram,
    invert_lower,
    lower_gram,
    lower_product,
    matmul,
    mirrored,
    signed_gram,
)
from cavity.priors.factor import half_log_det


class CoupledSums(NamedTuple):
    """All that the posterior of the functions' coordinates needs from the rows."""

    gram: Array
    """Σ_i T_i ⊗ P_i P_i', of shape (q m, q m); only its lower triangle is filled in."""
    pull: Array
    """Σ_i ν_i ⊗ P_i, of shape (q m,)."""
    half_log_e: float

    @classmethod
    def of(cls, P: Array, T: Array, nu: Array, half_log_e: float) -> CoupledSums:
        """Return what rows with features P (n, m), precisions (n, q, q), sources (n, q) add."""
        m, q = P.shape[1], T.shape[1]
        G = np.zeros((q, m, q, m))
        for a in range(q):
            G[a, :, a] = gram(np.sqrt(np.maximum(T[:, a, a], 0.0))[:, None] * P)
            for b in range(a):
                # Its own transpose, but not a block on the diagonal.
                G[a, :, b] = mirrored(signed_gram(P, np.ascontiguousarray(T[:, a, b])))
        pull = matmul(P.T, nu).T
        return cls(G.reshape(q * m, q * m), np.ascontiguousarray(pull).ravel(), half_log_e)


class Coupled:
    """The posterior N(w, A⁻¹) of q vectors u_1, …, u_q, A = I + Σ_i T_i ⊗ P_i P_i', V = chol(A)⁻¹.

    Parameters
    ----------
    V : array of shape (q m, q m)
    w : array of shape (q m,)
    half_log_det : float
    """

    def __init__(self, V: Array, w: Array, half_log_det: Any, m: int) -> None:
        self.V, self.w, self.half_log_det, self._m = V, w, half_log_det, m

    @classmethod
    def of(cls, sums: CoupledSums, m: int) -> Coupled:
        """Return the posterior given what all rows add up to."""
        L = cholesky(add_to_diagonal(1.0 * sums.gram, 1.0))
        log_det = half_log_det(L) + sums.half_log_e
        return cls(invert_lower(L), sums.pull, log_det, m).under(sums)

    def under(self, sums: CoupledSums) -> Coupled:
        """Return the posterior with the same precisions and other sources."""
        w = lower_product(self.V, lower_product(self.V, sums.pull), transpose=True)
        return Coupled(self.V, w, self.half_log_det, self._m)

    @property
    def means(self) -> Array:
        """The means of the vectors, of shape (q, m)."""
        return self.w.reshape(-1, self._m)

    @cached_property
    def inverse(self) -> Array:
        """A⁻¹ of shape (q, m, q, m)."""
        q = len(self.means)
        return lower_gram(1.0 * self.V).reshape(q, self._m, q, self._m)

    def spread(self, P: Array) -> Array:
        """Return the posterior covariances (n, q, q) of each row's q values of P u."""
        q, m = self.means.shape
        found = np.zeros((len(P), q, q))
        for j in range(q):
            # What is right of the diagonal block is zero.
            rows = self.V[j * m : (j + 1) * m]
            U = [matmul(P, rows[:, c * m : (c + 1) * m].T) for c in range(j + 1)]
            for c in range(j + 1):
                for d in range(c + 1):
                    found[:, c, d] += np.einsum("ij,ij->i", U[c], U[d])
        for c in range(q):
            found[:, :c, c] = found[:, c, :c]
        return found

    def weighed(self, P: Array, T: Array, W: Array) -> Array:
        """Return Σ_cd diag(T_cd) P [A⁻¹]_cd W, of the shape of P."""
        found = np.zeros((len(P), W.shape[1]))
        for c in range(T.shape[1]):
            for d in range(c + 1):
                block = self.inverse[c, :, d]
                both = block if c == d else block + block.T
                found += T[:, c, d, None] * matmul(P, matmul(np.ascontiguousarray(both), W))
        return found
