"""Averages over training sets of several classes at once, size by size.

The same fixed point as in `averaged`, with blocks for numbers: with D = C − 1 contrasts, an
example's averages are D × D matrices, and the prior covariance of all of them is K ⊗ I.
"""

from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import Array, cholesky, solve_lower
from cavity.priors import DensePrior
from cavity.resampling.averaged import left_over
from cavity.resampling.labels import (
    ClassAverages,
    LabelSites,
    LabelTheory,
    label_theory,
    over_classes,
    root,
    symmetric,
    times,
    trace,
    transposed,
)
from cavity.resampling.laws import LAWS
from cavity.resampling.sizes import SizePath
from cavity.solvers import solve

MOST = 4000
"""Most rows of the matrices, examples × (classes − 1): four of them take half a GiB."""
_MEMORY = 6
_SMALLEST = 1e-12
# Share of the tolerance for the equations inside the theory.
_SHARE = 0.03


class ClassPool(NamedTuple):
    """Examples of several classes, from which training sets are drawn."""

    prior: DensePrior
    """Of one class's latent values; those of the classes are independent."""
    codes: Array
    """Class codes 0, ..., C − 1."""
    n_classes: int
    share: Array
    """Each example's share of the population; they sum to one."""
    tuning: Any = None
    """A `ClassTuning`, as in `Pool`."""
    noise: float = 0.0
    """Variance of the kernel's noise that is not in the prior: none."""


class ClassSolution(NamedTuple):
    """Averages over random training sets of one size, of the latent values of all classes.

    ``sites`` are those of the contrasts. Otherwise as `SizeSolution`.
    """

    pool: ClassAverages
    held_out: ClassAverages
    sites: LabelSites
    converged: bool
    n_iter: int
    residual: float
    reliable: bool = True

    def at(self, prior: DensePrior, K_star: Array, prior_variance: Array) -> ClassAverages:
        """Return the averages at m new inputs, from their (m, n) covariances with the pool's."""
        u, gamma, w, u_chi = self.sites
        n_classes = gamma.shape[1] + 1
        there = LabelPosterior(prior.K, self.sites.response).at(K_star, prior_variance)
        R = np.einsum("majb,jb->ma", there.cross, gamma)
        half = np.einsum("majb,jbc->majc", there.cross, root(w)).reshape(*R.shape, -1)
        V = half @ transposed(half)
        if u_chi is None:
            found = ClassAverages(there.variance, R, V)
        else:
            G = LabelPosterior(prior.K, u).at(K_star, prior_variance).variance
            found = ClassAverages(G, R, V, there.variance)
        return over_classes(found, n_classes, prior_variance)


class New(NamedTuple):
    """Posterior covariances at new inputs, and of these with the pool's latent values."""

    variance: Array
    cross: Array
    """Of shape (m, D, n, D)."""


class LabelPosterior:
    """The posterior (K⁻¹ ⊗ I + diag U)⁻¹ under sites with D × D precisions U = S S'.

    With B = I + S'(K ⊗ I)S = L L' and A = L⁻¹ S'(K ⊗ I), it is K ⊗ I − A'A.
    """

    def __init__(self, K: Array, U: Array) -> None:
        n, D = U.shape[:2]
        self._K, self._S = K, transposed(root(U)).reshape(n * D, D)
        self._shape = n, D
        B = (self._S @ self._S.T).reshape(n, D, n, D)
        B *= K[:, None, :, None]
        B = B.reshape(n * D, n * D)
        B[np.diag_indices_from(B)] += 1.0
        self._L = cholesky(B)

    def _shrink(self, K_star: Array) -> Array:
        """Return L⁻¹ S'(K* ⊗ I), of shape (nD, mD), from covariances (n, m)."""
        (n, D), m = self._shape, K_star.shape[1]
        A = self._S.reshape(n, D, 1, D) * K_star[:, None, :, None]
        return solve_lower(self._L, A.reshape(n * D, m * D))

    def covariance(self) -> Array:
        """Return the covariance of the pool's latent values, of shape (n, D, n, D)."""
        n, D = self._shape
        A = self._shrink(self._K)
        G = -(A.T @ A).reshape(n, D, n, D)
        for a in range(D):
            G[:, a, :, a] += self._K
        return G

    def variance(self) -> Array:
        """Return its blocks for single examples, of shape (n, D, D)."""
        return self._blocks(self._shrink(self._K), np.diagonal(self._K))

    def at(self, K_star: Array, prior_variance: Array) -> New:
        """Return covariances at m new inputs, from their (m, n) covariances with the pool's."""
        (n, D), m = self._shape, len(K_star)
        A = self._shrink(K_star.T)
        cross = -(A.T @ self._shrink(self._K)).reshape(m, D, n, D)
        for a in range(D):
            cross[:, a, :, a] += K_star
        return New(self._blocks(A, prior_variance), cross)

    def _blocks(self, A: Array, prior_variance: Array) -> Array:
        D = self._shape[1]
        A = A.reshape(len(A), -1, D)
        return prior_variance[:, None, None] * np.eye(D) - np.einsum("kia,kib->iab", A, A)


class AveragedLabels:
    """Averages under given effective sites, with each example's own site and without it."""

    def __init__(self, prior: DensePrior, sites: LabelSites) -> None:
        u, gamma, w, u_chi = sites
        G = None if u_chi is None else LabelPosterior(prior.K, u).variance()
        chi, R, others = _responses(LabelPosterior(prior.K, sites.response).covariance(), sites)
        V = others + chi @ w @ transposed(chi)
        rest = np.linalg.inv(np.eye(R.shape[1]) - chi @ sites.response)
        own = times(rest, R - times(chi, gamma))
        V_c, chi_c = symmetric(rest @ others @ transposed(rest)), symmetric(rest @ chi)
        self.pool = ClassAverages(chi, R, V)
        self.held_out = ClassAverages(chi_c, own, V_c)
        if G is not None:
            without = np.linalg.solve(np.eye(R.shape[1]) - G @ u, G)
            self.pool = ClassAverages(G, R, V, chi)
            self.held_out = ClassAverages(symmetric(without), own, V_c, chi_c)


def _responses(chi: Array, sites: LabelSites) -> tuple[Array, Array, Array]:
    """Return blocks of χ, predictions χγ, and Σ_{j≠i} χ_ij W_j χ_ij'. Overwrites χ."""
    n, D = sites.gamma.shape
    R = (chi.reshape(n * D, n * D) @ sites.gamma.ravel()).reshape(n, D)
    each = np.arange(n)
    own = chi[each, :, each, :].copy()
    chi[each, :, each, :] = 0.0
    half = np.einsum("iajb,jbc->iajc", chi, root(sites.w)).reshape(n, D, n * D)
    return symmetric(own), R, half @ transposed(half)


def log_of(A: Array) -> Array:
    """Return the logarithms of a stack of positive definite matrices."""
    values, vectors = np.linalg.eigh(symmetric(A))
    logs = np.log(np.maximum(values, _SMALLEST))
    return np.asarray((vectors * logs[..., None, :]) @ transposed(vectors))


def exp_of(A: Array) -> Array:
    """Return the exponentials of a stack of symmetric matrices, of eigenvalues at most one."""
    values, vectors = np.linalg.eigh(symmetric(A))
    grown = np.exp(np.minimum(values, 0.0))
    return np.asarray((vectors * grown[..., None, :]) @ transposed(vectors))


class ClassCoordinates(NamedTuple):
    """Averages as one vector without dimension; ``scale`` are the prior variances."""

    scale: Array
    D: int

    def prior(self) -> ClassAverages:
        """Return the cavities before anything is learned."""
        G = self.scale[:, None, None] * np.eye(self.D)
        return ClassAverages(G, np.zeros(G.shape[:2]), 0.0 * G)

    def pack(self, c: ClassAverages) -> Array:
        """Return log G, log χ, R and V, in units of the prior."""
        v = self.scale[:, None, None]
        parts = [log_of(c.G / v), log_of(c.response / v), c.V / v]
        R = c.R / np.sqrt(self.scale)[:, None]
        return np.concatenate([part.ravel() for part in (*parts, R)])

    def unpack(self, x: Array) -> ClassAverages:
        """Return the averages that a vector holds."""
        v = self.scale[:, None, None]
        shape = len(self.scale), self.D, self.D
        cut = np.prod(shape)
        G, chi, V = (part.reshape(shape) for part in np.split(x[: 3 * cut], 3))
        half = root(V)
        R = x[3 * cut :].reshape(shape[:2]) * np.sqrt(self.scale)[:, None]
        return ClassAverages(v * exp_of(G), R, v * half @ transposed(half), v * exp_of(chi))


def largest_shift(a: ClassAverages, b: ClassAverages) -> float:
    """Return the largest change, as `averaged.largest_change`."""
    size = trace(a.G + a.V)
    changes = [
        np.abs(log_of(a.G) - log_of(b.G)),
        np.abs(log_of(a.response) - log_of(b.response)),
        np.abs(a.R - b.R) / np.sqrt(size)[:, None],
        np.abs(a.V - b.V) / size[:, None, None],
    ]
    return max(float(np.max(change)) for change in changes)


class LabelPoint:
    """Cavities, and the averages under the effective sites that they lead to.

    As `AveragesPoint`, without first-order steps.
    """

    def __init__(
        self,
        c: ClassAverages,
        found: AveragedLabels,
        sites: LabelSites,
        last: Any,
        to: ClassCoordinates,
    ) -> None:
        self.cavities, self.sites, self._to = c, sites, to
        self.pool, self.held_out = found.pool, found.held_out
        self.residual = largest_shift(self.held_out, c) * left_over(largest_shift, self, last)
        self.merit = 0.0 if np.isfinite(self.residual) else -np.inf

    def target(self) -> Array:
        """Return the cavities found."""
        return self._to.pack(self.held_out)


def solve_labels(
    pool: ClassPool, theory: LabelTheory, start: ClassAverages, *, tol: float, max_iter: int
) -> ClassSolution:
    """Return averages of the contrasts that the theory is consistent with; see `solve_averages`."""
    to = ClassCoordinates(pool.prior.diag, pool.n_classes - 1)
    last: LabelPoint | None = None

    def evaluate(x: Array) -> LabelPoint:
        nonlocal last
        c = to.unpack(x)
        sites = theory(c)
        point = LabelPoint(c, AveragedLabels(pool.prior, sites), sites, last, to)
        last = point if np.isfinite(point.residual) else last
        return point

    found = solve(evaluate, to.pack(start), tol=tol, max_iter=max_iter, memory=_MEMORY)
    end = found.state
    how = (found.converged, found.n_iter, found.residual)
    return ClassSolution(end.pool, end.held_out, end.sites, *how)


def solve_class_sizes(
    pool: ClassPool, sizes: Array, law: str, *, tol: float, max_iter: int
) -> list[ClassSolution]:
    """Return the averages over random training sets of each size, of all classes together.

    Parameters
    ----------
    pool : ClassPool
    sizes, law, tol, max_iter
        As in `solve_sizes`.
    """
    check_size(len(pool.codes), pool.n_classes)
    to = ClassCoordinates(pool.prior.diag, pool.n_classes - 1)
    path, found = SizePath(to.prior(), to.pack, to.unpack), {}
    for k in np.argsort(sizes, kind="stable"):
        draws = sizes[k] * pool.share
        theory = label_theory(pool.codes, pool.n_classes, LAWS[law](draws), _SHARE * tol)
        for guess in path.guesses(sizes[k]):
            last = solve_labels(pool, theory, guess, tol=tol, max_iter=max_iter)
            if last.converged:
                path.add(sizes[k], last.held_out)
                break
        every = (pool.n_classes, pool.prior.diag)
        held_out = over_classes(last.held_out, *every)
        if pool.tuning is not None:
            held_out = pool.tuning(held_out, float(np.max(draws)))
        found[int(k)] = last._replace(pool=over_classes(last.pool, *every), held_out=held_out)
    return [found[k] for k in range(len(sizes))]


def check_size(n: int, n_classes: int) -> None:
    """Refuse pools whose matrices would be too large."""
    rows = n * (n_classes - 1)
    if rows > MOST:
        raise ValueError(
            f"A learning curve of all classes together needs matrices of n (C − 1) rows, at most "
            f"{MOST:,}; {n:,} examples of {n_classes} classes have {rows:,}. Give a random sample "
            f"of {MOST // (n_classes - 1):,} examples, or use multi_class='one_vs_rest'."
        )
