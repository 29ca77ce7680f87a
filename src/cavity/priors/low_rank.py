"""A low-rank approximation of a covariance matrix, to start from and to precondition with.

K ≈ P P' + diag(r), exact on the diagonal: an inducing prior whose points are some of the rows.
"""

from functools import cached_property
from typing import Any, ClassVar

from cavity.arrays import (
    Array,
    invert_lower,
    is_numpy_array,
    lower_product,
    matmul,
    namespace,
    pivots,
)
from cavity.priors.inducing import Features, Whitened, left_over
from cavity.sites import Local, Sites

_FEWEST = 650
"""From this many rows on a low-rank approximation of K pays: with it, fits at n = 500 cost 14 %
more, at 800 8 % less, at 1,600 a third less."""
_ENOUGH, _SHARE = 250, 8
"""At most about this many rows are candidates, or one in eight of a large table."""
_RTOL = 3e-5
"""If no variance above this share of the largest remains, no column is added."""


class InducingRows:
    """All rows of a low-rank prior at once, as Newton's method for the means needs them.

    Parameters
    ----------
    P : array of shape (n, m)
    diag : array of shape (n,)
        The prior variances.
    """

    factors_cheaply: ClassVar[bool] = True

    def __init__(self, P: Array, diag: Array) -> None:
        self.seen = Features(None, P, diag, left_over(diag, P))

    @property
    def diag(self) -> Array:
        """Prior variances."""
        return self.seen.prior

    def product(self, a: Array) -> Array:
        """Return K a."""
        P = self.seen.P
        return matmul(P, matmul(P.T, a)) + self.seen.left * a

    def condition(self, sites: Sites) -> "InducingRowsPosterior":
        """Return the posterior given the sites."""
        return InducingRowsPosterior(self.seen, sites)


class InducingRowsPosterior:
    """The posterior of all rows of a low-rank prior.

    Parameters
    ----------
    seen : Features
    sites : Sites
    """

    def __init__(self, seen: Features, sites: Sites) -> None:
        self.seen, self.sites = seen, sites

    @cached_property
    def values(self) -> Whitened:
        """The posterior of u."""
        return Whitened.of(self.seen.sums(self.sites))

    @property
    def alpha(self) -> Array:
        """Weights α = ν − τ μ."""
        return self.values.alpha(self.seen, self.sites)

    def local(self) -> Local:
        """Return what the posterior says about each row."""
        return self.values.local(self.seen, self.sites)

    def solve(self, v: Array) -> Array:
        """Return B⁻¹ v = E⁻¹ (v − U A⁻¹ U' E⁻¹ v) with E = diag(1 + τ r) and U = S P."""
        e, _ = self.seen.scaled(self.sites)
        s = namespace(v).sqrt(self.sites.tau)
        pulled = self.values.solve(matmul(self.seen.P.T, s * v / e))
        return (v - s * matmul(self.seen.P, pulled)) / e


def low_rank_of(prior: Any, *, rough: bool = True) -> InducingRows | None:
    """Return a low-rank approximation of a dense prior, or None if it would not pay.

    The points are chosen from every few rows by a pivoted Cholesky factorisation.

    Parameters
    ----------
    prior : DensePrior, or another that is a matrix
        Only one that says it is ``pre_solved`` has an approximation.
    rough : bool, default True
        Whether to accept an inexact one, if all of these rows matter.
    """
    K, n = prior.K, prior.size
    if not prior.pre_solved or n < _FEWEST or not is_numpy_array(K):
        return None
    step = min(_SHARE, max(2, n // _ENOUGH))
    L, order = pivots(K[::step, ::step], _RTOL * float(prior.diag.max()))
    if not len(order) or (not rough and step * len(order) >= n):
        return None
    # K is symmetric, and its rows are closer together in memory than its columns.
    return InducingRows(lower_product(invert_lower(L), K[step * order]).T, prior.diag)
