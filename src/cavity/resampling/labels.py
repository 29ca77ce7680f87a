"""What a label of several classes does to the average over training sets of everything else.

The likelihood sees differences of latent values only. So the theory lives on C − 1 orthonormal
contrasts x = H'f of the C latent values, each with the prior covariance K of one of them. Without
an example, the mean there is a Gaussian field h ~ N(R, V) and the covariance G; slopes and
curvatures of log Z become vectors and matrices, and sites, too.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.stats import norm, qmc

from cavity.arrays import Array
from cavity.likelihoods.multinomial import orthant
from cavity.resampling.laws import Occupancy
from cavity.resampling.pool import EffectiveSites
from cavity.resampling.repeats import extrapolated
from cavity.sites import ClassMarginals, Sites, contrasts

DRAWS = 32
"""Fields for the theory: scores agree with those of 512 fields to .0003, for 3 to 6 classes."""
_ROUNDS = 40
# A response needs fields that differ by more than the slopes are off.
_LEAST_SPREAD = 1e-4
_LOOSEST = 0.02
# A precision may fall to this share of itself in a round.
_LEAST = 0.1


class ClassAverages(NamedTuple):
    """Averages over training sets of several latent values, one entry for each example."""

    G: Array
    """Average posterior covariance, of shape (n, k, k)."""
    R: Array
    """Average prediction, of shape (n, k)."""
    V: Array
    """Covariance of the prediction from training set to training set, (n, k, k)."""
    chi: Array | None = None
    """How far the prediction moves with a unit source at the example; None if that is G."""

    @property
    def response(self) -> Array:
        """χ, whether it is G or not."""
        return self.G if self.chi is None else self.chi

    @property
    def excess_response(self) -> Array | None:
        """χ − G; None if there is no excess."""
        return None if self.chi is None else self.chi - self.G

    @property
    def variance(self) -> Array:
        """Posterior variance of a latent value, the mean over them, of shape (n,)."""
        return trace(self.G) / self.G.shape[-1]

    def fields(self, x: Array) -> ClassMarginals:
        """Return Gaussians whose means are R + V^½ x, of shape (len(x), n, k)."""
        # One direction of V may be empty: that in which all classes move together.
        h = self.R + np.einsum("nab,qb->qna", root(self.V)[:, :, -x.shape[1] :], x)
        return ClassMarginals(h, np.broadcast_to(self.G, (*h.shape, h.shape[-1])))


class LabelSites(EffectiveSites):
    """The same of several classes: matrices (n, k, k) for u, w and u_χ, and vectors for γ."""


LabelTheory = Callable[[ClassAverages], LabelSites]


def helmert(n_classes: int) -> Array:
    """Return orthonormal contrasts H of shape (C, C − 1): its columns sum to zero."""
    C = n_classes
    triangle = np.tril(np.ones((C, C)), -1)[:, : C - 1] * -1.0 + np.eye(C)[:, : C - 1]
    triangle[np.arange(C - 1), np.arange(C - 1)] = np.arange(C - 1, 0, -1.0)
    return triangle / np.sqrt(np.sum(triangle**2, axis=0))


def over_classes(c: ClassAverages, n_classes: int, prior: Array) -> ClassAverages:
    """Return the averages of all classes, from those of their contrasts and prior variances.

    What all classes have in common keeps its prior: no label says anything about it.
    """
    H, common = helmert(n_classes), (prior / n_classes)[:, None, None]
    chi = None if c.chi is None else H @ c.chi @ H.T + common
    return ClassAverages(H @ c.G @ H.T + common, c.R @ H.T, H @ c.V @ H.T, chi)


def transposed(A: Array) -> Array:
    """Return the transposes of a stack of matrices."""
    return np.swapaxes(A, -1, -2)


def symmetric(A: Array) -> Array:
    """Return the symmetric parts of a stack of matrices."""
    return 0.5 * (A + transposed(A))


def trace(A: Array) -> Array:
    """Return the traces of a stack of matrices."""
    return np.trace(A, axis1=-2, axis2=-1)


def times(A: Array, x: Array) -> Array:
    """Return the products of a stack of matrices and a stack of vectors."""
    return (A @ x[..., None])[..., 0]


def root(A: Array) -> Array:
    """Return B with B B' = A for each of a stack of semidefinite matrices.

    Its columns are in increasing order of size.
    """
    values, vectors = np.linalg.eigh(symmetric(A))
    return vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]


def even_draws(k: int, count: int) -> Array:
    """Return points of a k-dimensional standard normal that fill the space evenly.

    Each comes with its mirror image, and their covariance is exactly the identity. There are
    ``count``, a power of two, or more if there are many dimensions.
    """
    u = qmc.Sobol(k, seed=0).random_base2(int(np.ceil(np.log2(max(count // 2, 2 * k)))))
    x = norm.ppf(np.clip(u, 1e-12, 1.0 - 1e-12))
    L = np.linalg.cholesky(x.T @ x / len(x))
    x = np.linalg.solve(L, x.T).T
    return np.concatenate([x, -x])


class RepeatedLabels:
    """Slopes and curvatures of log Z where each label was drawn 1, 2, ... times.

    As `RepeatedSites`, in C − 1 contrasts: the copies of a label have equal sites, each in a cavity
    with the others, and each copy brings noise of its own.

    Parameters
    ----------
    codes : array of shape (n,)
        Class codes 0, ..., C − 1.
    n_classes : int
    occupations : array of shape (k,)
    tol : float or array of shape (k,), default 0.0001
        Change of a slope, in units of the cavity, at which it counts as solved.
    """

    def __init__(
        self, codes: Array, n_classes: int, occupations: Array, tol: Array | float = 1e-4
    ) -> None:
        self._E = contrasts(codes, n_classes) @ helmert(n_classes)
        self._draws = list(zip(occupations, tol + np.zeros(len(occupations)), strict=True))
        self._sites: dict[float, Sites] = {}

    def __call__(
        self, c: ClassMarginals, excess: Array | None = None
    ) -> Iterator[tuple[Array, Array]]:
        """Yield slope and curvature, in the cavity's mean, for each number of draws.

        Cavities are without the example, of shape (..., n, C − 1). A slope d moves the mean of
        each copy's cavity by excess × d, beyond what its covariance says.
        """
        shape, E = c.mean.shape, self._E
        # In differences to the label's own class sites are diagonal, up to the copy's own noise.
        there = [E @ A @ transposed(E) for A in (c.covariance, excess) if A is not None]
        flat = [np.broadcast_to(A, (*shape, shape[-1])).reshape(-1, *A.shape[-2:]) for A in there]
        h, G, more = times(E, c.mean).reshape(-1, shape[-1]), flat[0], (*flat, None)[1]
        site = None
        for s, tol in self._draws:
            last = self._sites.get(s, site)
            start = last if last is not None and last.tau.shape == h.shape else None
            site = self._sites[s] = self._solve(h, G, s, start, more, tol)
            slope, curvature = _together(h, G, site, s, more)
            slope = times(transposed(E), slope.reshape(shape))
            yield slope, transposed(E) @ curvature.reshape(*shape, shape[-1]) @ E

    @staticmethod
    def _solve(
        h: Array, G: Array, s: float, site: Sites | None, more: Array | None, tol: float
    ) -> Sites:
        """Return the sites of one draw of each label, given that all its draws have the same."""
        if s == 1.0 and more is None:
            return orthant(h, G + 1.0, site, tol).sites
        site = site or orthant(h, G + 1.0, None, tol).sites
        scale, found = np.sqrt(trace(G) / G.shape[-1]), Sites(*map(np.copy, site))
        active, last = np.arange(len(h)), None
        x = np.concatenate(site, axis=1)
        for _ in range(_ROUNDS):
            part = h[active], G[active], None if more is None else more[active]
            now = Sites(*np.split(x, 2, axis=1))
            new = _of_one(*part, now, s)
            changes = _together(*part[:2], new, s, part[2])[0]
            changes = changes - _together(*part[:2], now, s, part[2])[0]
            found.tau[active], found.nu[active] = new
            going = np.max(np.abs(changes), axis=1) * scale[active] > tol
            if not np.any(going):
                break
            f = np.concatenate(new, axis=1) - x
            step = 2.0 / (s + 1.0) * f if last is None else extrapolated(x.T, f.T, last).T
            last, active = (x[going].T, f[going].T), active[going]
            x = _shifted(x[going], step[going])
        return found


def _shifted(x: Array, step: Array) -> Array:
    """Return sites moved by a step, with precisions that do not fall too far."""
    k = x.shape[1] // 2
    moved = x + step
    moved[:, :k] = np.maximum(moved[:, :k], _LEAST * x[:, :k])
    return moved


def _of_one(h: Array, G: Array, more: Array | None, site: Sites, s: float) -> Sites:
    """Return the sites of one draw among s − 1 others with the given ones, after one sweep."""
    if more is not None:
        h = h + times(more, _together(h, G, site, s, more)[0])
    slope, curvature = _together(h, G, site, s - 1.0)
    with_others = h + times(G, slope), G + G @ curvature @ G
    return orthant(with_others[0], with_others[1] + 1.0, site, sweeps=1).sites


def _together(
    h: Array, G: Array, site: Sites, s: float, more: Array | None = None
) -> tuple[Array, Array]:
    """Return slope and curvature of log Z, in the mean, under the sites of s equal draws.

    With the draw's own noise integrated out, its sites are diag τ − ττ'/(1 + Στ) on the
    differences.
    """
    tau, nu = site
    total, eye = 1.0 + np.sum(tau, axis=1), np.eye(tau.shape[1])
    U = s * (tau[:, :, None] * eye - tau[:, :, None] * tau[:, None, :] / total[:, None, None])
    pull = s * (nu - tau * (np.sum(nu, axis=1) / total)[:, None]) - times(U, h)
    response = G if more is None else G + more
    slope = np.linalg.solve(eye + U @ response, pull[:, :, None])[:, :, 0]
    return slope, -symmetric(np.linalg.solve(eye + U @ G, U))


def label_theory(
    codes: Array, n_classes: int, occupancy: Occupancy, tol: float = 1e-5
) -> LabelTheory:
    """Return the cavity theory of several classes, for any law of resampling."""
    responds = len(occupancy.s) > 1
    # What is rare need not be as exact.
    each = np.minimum(tol / np.max(occupancy.probability, axis=1), _LOOSEST)
    repeats = RepeatedLabels(codes, n_classes, occupancy.s, each)
    x = even_draws(n_classes - 1, DRAWS)

    def sites(c: ClassAverages) -> LabelSites:
        V = c.V + _LEAST_SPREAD * c.G if responds else c.V
        c = c._replace(V=V, chi=c.response if responds else None)
        q = c.fields(x)
        d1, square, d2, with_field = _moments(repeats, occupancy, c, q, x)
        # How d1 follows the field on average: its derivative, by Stein's lemma.
        slope = np.linalg.solve(transposed(root(c.V)), transposed(with_field)) if responds else d2
        return _sites(c, d1, square, d2, symmetric(slope))

    return sites


def _moments(
    repeats: RepeatedLabels, occupancy: Occupancy, c: ClassAverages, q: ClassMarginals, x: Array
) -> list[Array]:
    """Return averages over draws and fields of d1, d1 d1', d2 and d1 x'."""
    found: list[Array] = []
    for p, (slope, curvature) in zip(
        occupancy.probability, repeats(q._replace(covariance=c.G), c.excess_response), strict=True
    ):
        parts = [
            p[:, None] * np.mean(slope, axis=0),
            p[:, None, None] * np.einsum("qna,qnb->nab", slope, slope) / len(x),
            p[:, None, None] * np.mean(curvature, axis=0),
            p[:, None, None] * np.einsum("qna,qb->nab", slope, x) / len(x),
        ]
        found = [a + b for a, b in zip(found, parts, strict=True)] if found else parts
    return found


def _sites(c: ClassAverages, d1: Array, square: Array, d2: Array, d_chi: Array) -> LabelSites:
    """Return the sites of examples with average slope d1, curvature d2 and response d_chi."""
    eye = np.eye(d1.shape[-1])
    u = -symmetric(np.linalg.solve(eye + d2 @ c.G, d2))
    grown = np.linalg.inv(eye + d_chi @ c.response)
    gamma = times(grown, d1 - times(d_chi, c.R))
    # What varies beyond the linear response to the field comes from the example itself.
    own = square - d1[:, :, None] * d1[:, None, :] - d_chi @ c.V @ d_chi
    half = root(grown @ own @ transposed(grown))
    u_chi = None if c.chi is None else -symmetric(grown @ d_chi)
    return LabelSites(u, gamma, half @ transposed(half), u_chi)
