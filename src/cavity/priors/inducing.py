"""A small stand-in for a prior covariance: a few of its columns, and what they leave over.

K ≈ P Pᵀ + diag(r), with r such that the diagonal is exact. Everything about the posterior of this
prior costs n m² operations, m the number of columns of P: next to nothing beside the n³ of the
whole matrix. The posterior is close enough to the true one to begin with, and its factor to
precondition with.
"""

from functools import cached_property
from typing import ClassVar

from cavity.arrays import (
    Array,
    add_to_diagonal,
    cholesky,
    clip,
    column_square_sums,
    copy,
    gram,
    invert_lower,
    is_numpy_array,
    lower_product,
    matmul,
    namespace,
    pivots,
    solve_lower,
)
from cavity.priors.dense import DensePosterior, DensePrior
from cavity.priors.factor import half_log_det
from cavity.sites import Sites

__all__ = ["LowRankFactor", "LowRankPrior", "stand_in"]

_FEWEST = 400
"""Examples from which on a stand-in pays."""
_ENOUGH, _SHARE = 250, 8
"""So many examples may lend their columns, or one in eight of a large table."""
_RTOL = 3e-5
"""Variance left over, as a share of the largest, that is not worth a further column."""


class LowRankPrior:
    """Latent values f ~ N(0, P Pᵀ + diag(r)).

    Parameters
    ----------
    P : array of shape (n, m)
    diag : array of shape (n,)
        The prior variances.
    """

    factors_cheaply: ClassVar[bool] = True
    """As `DensePrior.factors_cheaply`."""

    def __init__(self, P: Array, diag: Array) -> None:
        self.P, self.diag = P, diag
        self.left = clip(diag - namespace(P).sum(P * P, axis=1), low=0.0)

    @property
    def size(self) -> int:
        """Number of latent values."""
        return int(self.P.shape[0])

    def product(self, a: Array) -> Array:
        """Return K a."""
        return matmul(self.P, matmul(self.P.T, a)) + self.left * a

    def columns(self, index: Array) -> Array:
        """Return some columns of K."""
        xp = namespace(self.P)
        k = matmul(self.P, xp.take(self.P, index, axis=0).T)
        k[index, xp.arange(index.shape[0])] += xp.take(self.left, index)
        return k

    def factor(self, s: Array) -> "LowRankFactor":
        """Return what solves with B = I + S K S."""
        return LowRankFactor(self.P, self.left, s)

    def condition(self, sites: Sites) -> DensePosterior:
        """Return the posterior given the sites; not all that it offers can be had."""
        return DensePosterior(self, sites)  # type: ignore[arg-type]


class LowRankFactor:
    """B = D^½ (I + W Wᵀ) D^½ with D = I + S diag(r) S, W = D^-½ S P, and chol(I + Wᵀ W).

    Parameters
    ----------
    P : array of shape (n, m)
    left : array of shape (n,)
        The variances r.
    s : array of shape (n,)
        The diagonal √τ of S.
    """

    def __init__(self, P: Array, left: Array, s: Array) -> None:
        xp = namespace(P)
        self._d = 1.0 / xp.sqrt(1.0 + s * s * left)
        self._W = (self._d * s)[:, None] * P
        self._L = cholesky(add_to_diagonal(gram(self._W), 1.0))

    @cached_property
    def half_log_det(self) -> Array:
        """½ log det B."""
        xp = namespace(self._d)
        return half_log_det(self._L) - xp.sum(xp.log(self._d))

    def solve(self, v: Array) -> Array:
        """Return B⁻¹ v, by I − W (I + Wᵀ W)⁻¹ Wᵀ = (I + W Wᵀ)⁻¹."""
        d = self._d if v.ndim == 1 else self._d[:, None]
        u = d * v
        half = solve_lower(self._L, matmul(self._W.T, u))
        return d * (u - matmul(self._W, solve_lower(self._L, half, transpose=True)))

    @cached_property
    def inverse_diagonal(self) -> Array:
        """[B⁻¹]_ii."""
        xp = namespace(self._d)
        inner = column_square_sums(_half_solve(copy(self._L), self._W.T))
        return self._d**2 * clip(1.0 - inner, low=float(xp.finfo(inner.dtype).eps))

    def quadratic(self, V: Array) -> Array:
        """Return vᵀ B⁻¹ v for each column v."""
        return namespace(V).sum(V * self.solve(V), axis=0)


def stand_in(prior: DensePrior, *, rough: bool = True) -> LowRankPrior | None:
    """Return a stand-in of low rank, None where it would not pay.

    Its columns are those of examples here and there, as many as a pivoted Cholesky factorisation
    among these examples finds to matter.

    Parameters
    ----------
    prior : DensePrior
    rough : bool
        Whether to accept one that leaves something over because all of these examples matter.
    """
    K, n = prior.K, prior.size
    if n < _FEWEST or not is_numpy_array(K):
        return None
    step = min(_SHARE, max(2, n // _ENOUGH))
    L, order = pivots(K[::step, ::step], _RTOL * float(prior.diag.max()))
    if not len(order) or (not rough and step * len(order) >= n):
        return None
    # K is symmetric, and its rows are closer together in memory than its columns.
    return LowRankPrior(_half_solve(L, K[step * order]).T, prior.diag)


def _half_solve(L: Array, V: Array) -> Array:
    """Return L⁻¹ V, for many columns faster by way of the inverse; consumes L."""
    return lower_product(invert_lower(L), V)
