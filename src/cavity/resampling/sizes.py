"""Averages over training sets of many sizes: each size starts from where its neighbours lead."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.interpolate import KroghInterpolator

from cavity.arrays import Array
from cavity.resampling.averaged import SizeSolution, pack, prior_cavities, solve_averages, unpack
from cavity.resampling.groups import groups_of
from cavity.resampling.laws import LAWS
from cavity.resampling.pairs import with_pairs
from cavity.resampling.pool import Pool
from cavity.resampling.theories import cavity_theory, variational_theory

THEORIES = ("cavity", "pairs", "variational")
# Number of sizes from which a polynomial predicts the next one's cavities. Without it ten sizes
# take 1.3 to 1.5 times as many factorisations.
_BACK = 4
# How far beyond them it is trusted, in units of the range of these sizes.
_FAR = 1.0
# Share of the tolerance for the equations inside a theory.
_SHARE = 0.1


def solve_sizes(
    pool: Pool, sizes: Array, law: str, theory: str, *, tol: float, max_iter: int
) -> list[SizeSolution]:
    """Return the averages over random training sets of each size.

    Parameters
    ----------
    pool : Pool
    sizes : array of shape (k,)
        Numbers of examples drawn.
    law : {"subsample", "bootstrap"}
    theory : {"cavity", "pairs", "variational"}
        Pairs are added where the likelihood is Gaussian.
    tol, max_iter
        As in `solve_averages`, for each size.

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.likelihoods import Probit
    >>> from cavity.priors import DensePrior
    >>> from cavity.resampling import Pool, solve_sizes
    >>> y = np.array([1.0, 1.0, -1.0])
    >>> pool = Pool(DensePrior(np.eye(3) + 1.0), y, Probit(), np.full(3, 1.0 / 3.0))
    >>> sizes = np.array([1.0, 3.0])
    >>> one, three = solve_sizes(pool, sizes, "subsample", "cavity", tol=1e-6, max_iter=50)
    >>> bool(np.all(one.pool.G > three.pool.G))
    True
    """
    pool = pool.unshifted
    groups = groups_of(pool) if pool.likelihood.quadratic and theory != "variational" else None
    rows, pool = pool, pool if groups is None else groups.merged
    found: dict[int, SizeSolution] = {}
    path = _path_of(pool)
    # Downwards from all examples if a fit to them is known, else upwards from none.
    for k in np.argsort(sizes if pool.loo is None else -sizes, kind="stable"):
        draws = sizes[k] * rows.share
        occupancy = LAWS[law](draws) if groups is None else groups.occupancy(draws, law)
        if theory == "variational":
            equations = variational_theory(pool, draws)
        else:
            equations = cavity_theory(pool, occupancy, _SHARE * tol)
        for guess in path.guesses(sizes[k]):
            last = solve_averages(pool, equations, guess, tol=tol, max_iter=max_iter)
            if last.converged:
                path.add(sizes[k], last.held_out)
                break
        if theory == "pairs" and pool.likelihood.quadratic:
            last = with_pairs(pool, last, occupancy)
        if groups is not None:
            last = groups.split(last, draws, law)
        if rows.tuning is not None:
            last = last._replace(held_out=rows.tuning(last.held_out, float(np.max(draws))))
        found[int(k)] = last
    return [found[k] for k in range(len(sizes))]


def _path_of(pool: Pool) -> "SizePath":
    """Return a path that begins at the prior, or at the cavities of a fit to all examples."""
    own = {"scale": pool.prior.diag}
    path = SizePath(prior_cavities(pool.prior), partial(pack, **own), partial(unpack, **own))
    if pool.loo is not None:
        path.add(pool.prior.size, pool.loo)
    return path


class SizePath:
    """The cavities of the sizes solved so far, and where they lead for the next one.

    Cavities become vectors by ``pack``; before anything is solved the guess is ``start``.
    """

    def __init__(
        self, start: Any, pack: Callable[[Any], Array], unpack: Callable[[Array], Any]
    ) -> None:
        self._start, self._pack, self._unpack = start, pack, unpack
        self._solved: list[tuple[float, Array]] = []

    def add(self, size: float, cavities: Any) -> None:
        """Keep the cavities of a size, and those of the last few others."""
        here = float(np.log(size)), self._pack(cavities)
        others = [solved for solved in self._solved if solved[0] != here[0]]
        self._solved = [*others[1 - _BACK :], here]

    def guesses(self, size: float) -> Iterator[Any]:
        """Yield where to begin: a guess, and the start if that has led nowhere."""
        yield self.guess(size)
        if self._solved:
            yield self._start

    def guess(self, size: float) -> Any:
        """Return cavities on the polynomial, in the log of the size, through the last ones."""
        if not self._solved:
            return self._start
        log_m, x = zip(*self._solved, strict=True)
        far = abs(np.log(size) - log_m[-1]) > _FAR * np.ptp(log_m)
        there = x[-1] if far else KroghInterpolator(log_m, np.stack(x))(np.log(size))
        return self._unpack(there)
