"""Several classes, class by class: time and memory proportional to their number.

Integrated over the noise u that its differences share, an example's sites are exp(ν·f − f'T f/2)
with T = diag π − π π'/s: weights π, one for each class, and their sum s. With S_c = diag √π_c,
B_c = I + S_c K S_c, E_c = S_c B_c⁻¹ S_c and P = Σ_c E_c = L_P L_P' the posterior covariance of
classes c and d is δ_cd (K − K E_c K) + K E_c P⁻¹ E_d K.
"""

from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from cavity.arrays import (
    Array,
    cholesky,
    congruence_plus_identity,
    invert_lower,
    lower_gram,
    lower_product,
    matmul,
    mirrored,
    symmetric_product,
)
from cavity.priors.differences import of_one_copy
from cavity.priors.factor import half_log_det
from cavity.priors.labels import site_precisions

_WEAK = 1e-5
"""Below this π K, I − B⁻¹ has too few digits."""
_BLOCK, _WIDE = 32, 128


class StructuredFactor:
    """B_c⁻¹ of each class and L_P⁻¹, for sites on differences.

    Parameters
    ----------
    prior : ClassPrior
    tau : array of shape (n (C − 1),)
    """

    def __init__(self, prior: Any, tau: Array) -> None:
        self._prior, self._labels = prior, prior.labels
        self._all = tau
        self._tau, self._s = site_precisions(prior.labels, tau)
        self._classes = ClassWise(prior.K, class_weights(prior.labels, self._tau))

    @property
    def half_log_det(self) -> Any:
        """½ log det(I + G T) of all differences of all copies."""
        w = self._labels.copies
        shared = 0.5 * np.sum(w * np.log(self._s) - np.log(w * self._s))
        return self._classes.half_log_det + float(shared)

    def alpha(self, nu: Array) -> Array:
        """Return α of the differences under these sources."""
        labels = self._labels
        nu = labels.by_example(nu)
        shared = np.sum(nu, axis=1) / self._s
        a = self._classes.alpha(labels.to_classes(nu - self._tau * shared[:, None]))
        return -np.take_along_axis(a, labels.others, axis=1).ravel()

    def variance(self) -> tuple[Array, Array]:
        """Return the variance of each difference of one copy, and one minus τ times it."""
        return of_one_copy(self._labels, self._all, self.differences())

    def differences(self) -> Array:
        """Return the covariances (n, C − 1, C − 1) of f_y − f_j, j ≠ y, of each example."""
        A = self._labels.contrasts
        return A @ self._classes.blocks() @ A.swapaxes(1, 2)

    def explained(self, K_star: Array) -> Array:
        """Return by how much the sites reduce the covariances (m, C, C) at new inputs."""
        return self._classes.explained(K_star)

    def pulled(self, scale: float) -> Array:
        """Return this multiple of Σ_c [E_c − E_c P⁻¹ E_c], the slope of the log determinant."""
        return self._classes.pulled(scale)

    def covariance(self) -> Array:
        """Return the covariance of all differences."""
        n, q = self._tau.shape
        F, y, others = self._classes.covariance(), self._labels.codes, self._labels.others
        index = np.arange(n)
        # A F A', then the noise given f, on both sides in turn.
        for _ in range(2):
            own, rest = F[:, :, index, y], F[:, :, index[:, None], others]
            part = own[..., None] - rest
            shared = np.einsum("...jl,jl->...j", part, self._tau) / self._s
            F = np.moveaxis(part - shared[..., None], (2, 3), (0, 1))
        F = np.ascontiguousarray(F)
        np.einsum("ikil->ikl", F)[...] += (1.0 / self._s)[:, None, None]
        return F.reshape(n * q, n * q)


def class_weights(labels: Any, tau: Array) -> Array:
    """Return π of all copies: 1 for the label's own class, τ_j for each other one."""
    pi = np.ones((len(tau), labels.n_classes))
    np.put_along_axis(pi, labels.others, tau, axis=1)
    return pi * labels.copies[:, None]


class ClassWise:
    """The posterior of C independent functions under sites of weights π.

    Parameters
    ----------
    K : array of shape (n, n)
    pi : array of shape (n, C)
    """

    def __init__(self, K: Array, pi: Array) -> None:
        self._K, self._roots = K, np.sqrt(pi).T
        self._strong = pi.T * np.diagonal(K) > _WEAK
        self._inverses = []
        log_det, P = 0.0, np.zeros_like(K)
        for r in self._roots:
            L = cholesky(congruence_plus_identity(K, r))
            log_det += float(half_log_det(L))
            self._inverses.append(lower_gram(invert_lower(L)))
            self._add_weights(len(self._inverses) - 1, P)
        L = cholesky(P)
        self.half_log_det = log_det + float(half_log_det(L))
        self._L = invert_lower(L)

    def _add_weights(self, c: int, M: Array) -> None:
        """Add E_c to a matrix, without another one."""
        r = self._roots[c]
        for J in self._places():
            M[J] += r[J, None] * self._inverses[c][J] * r

    def _places(self) -> list[slice]:
        """Return the places of a few rows at a time."""
        n = len(self._K)
        return [slice(i, min(i + _BLOCK, n)) for i in range(0, n, _BLOCK)]

    def _times(self, c: int, V: Array) -> Array:
        """Return E_c V."""
        r = self._roots[c]
        if V.ndim == 1:
            return r * symmetric_product(self._inverses[c], r * V)
        return r[:, None] * matmul(self._inverses[c], r[:, None] * V)

    def _solve(self, v: Array) -> Array:
        """Return P⁻¹ v."""
        return lower_product(self._L, lower_product(self._L, v), transpose=True)

    def alpha(self, nu: Array) -> Array:
        """Return ν_c − E_c K ν_c + E_c P⁻¹ Σ_d E_d K ν_d, of shape (n, C)."""
        pulled = matmul(self._K, nu)
        b = np.stack([self._times(c, v) for c, v in enumerate(pulled.T)], axis=1)
        x = self._solve(np.sum(b, axis=1))
        back = np.stack([self._times(c, x) for c in range(len(self._roots))], axis=1)
        return nu - b + back

    def _own(self, c: int, J: slice) -> Array:
        """Return columns of E_c K = S (I − B⁻¹) S⁻¹, and E_c k where a site is weak."""
        r, strong = self._roots[c], self._strong[c, J]
        found = -self._inverses[c][:, J]
        np.einsum("ii->i", found[J])[...] += 1.0
        found *= r[:, None]
        found /= np.where(strong, r[J], 1.0)
        weak = np.flatnonzero(~strong)
        if len(weak):
            found[:, weak] = self._times(c, self._K[:, J][:, weak])
        return found

    def _columns(self) -> Iterator[tuple[slice, list[Array]]]:
        """Yield E_c K of all classes, some columns at a time."""
        for J in self._places():
            yield J, [self._own(c, J) for c in range(len(self._roots))]

    def blocks(self) -> Array:
        """Return the posterior covariances (n, C, C) of the classes at each example."""
        n, C = len(self._K), len(self._roots)
        found = np.empty((n, C, C))
        for J, columns in self._columns():
            found[J] = self._together(columns)
            for c, H in enumerate(columns):
                found[J, c, c] += self._alone(c, J, H)
        return found

    def _together(self, columns: list[Array]) -> Array:
        """Return V_c·V_d, V_c = L_P⁻¹ E_c k, for each column k."""
        V = [lower_product(self._L, H) for H in columns]
        found = np.empty((V[0].shape[1], len(V), len(V)))
        for c, d in combinations_with_replacement(range(len(V)), 2):
            found[:, c, d] = found[:, d, c] = np.einsum("ij,ij->j", V[c], V[d])
        return found

    def _alone(self, c: int, J: slice, H: Array) -> Array:
        """Return the diagonal of K − K E_c K = (1 − [B⁻¹]_jj)/π, or directly if π is small."""
        strong, pi = self._strong[c, J], self._roots[c, J] ** 2
        rest = 1.0 - np.diagonal(self._inverses[c])[J]
        k = self._K[:, J]
        direct = np.diagonal(k[J]) - np.einsum("ij,ij->j", k, H)
        return np.where(strong, rest / np.where(strong, pi, 1.0), direct)

    def explained(self, K_star: Array) -> Array:
        """Return δ_cd k*'E_c k* − k*'E_c P⁻¹ E_d k* at new inputs."""
        columns = [self._times(c, K_star.T) for c in range(len(self._roots))]
        found = -self._together(columns)
        for c, H in enumerate(columns):
            found[:, c, c] += np.einsum("ji,ij->j", K_star, H)
        return found

    def pulled(self, scale: float) -> Array:
        """Return a multiple of Σ_c [E_c − E_c P⁻¹ E_c], a new matrix."""
        M = np.zeros_like(self._K)
        if scale == 0.0:
            return M
        for c in range(len(self._roots)):
            self._add_weights(c, M)
        for k in self._places():
            self._take_off(M, self._half(k))
        M *= scale
        return mirrored(M)

    def _half(self, k: slice) -> Array:
        """Return some rows of L_P⁻¹ E_c, those of all classes below each other."""
        L, n = self._L[k, : k.stop], len(self._K)
        W = np.empty((len(self._roots), len(L), n))
        for c, r in enumerate(self._roots):
            W[c] = matmul(L * r[: k.stop], self._inverses[c][: k.stop])
            W[c] *= r
        return W.reshape(-1, n)

    def _take_off(self, M: Array, W: Array) -> None:
        """Subtract W'W from the lower triangle of M, without another matrix."""
        for i in range(0, len(M), _WIDE):
            J = slice(i, i + _WIDE)
            M[i:, J] -= matmul(W[:, i:].T, W[:, J])

    def covariance(self) -> Array:
        """Return all covariances, of shape (n, C, n, C)."""
        n, C = len(self._K), len(self._roots)
        V = np.empty((C, n, n))
        F = np.zeros((n, C, n, C))
        for J, columns in self._columns():
            for c, H in enumerate(columns):
                F[:, c, J, c] = self._K[:, J] - matmul(self._K, H)
                V[c][:, J] = lower_product(self._L, H)
        F += np.einsum("cki,dkj->icjd", V, V, optimize=True)
        return F
