"""Averages over training sets of many sizes, for rows in blocks: from the largest size downwards.

As in inference by sweeps (`cavity.inference.sweeps`), the only state of a row is what it adds to
the sums, and the step depends on the residual and is never undone.
"""

from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import Array, clip, gram, namespace
from cavity.inference.sweeps import next_step
from cavity.priors.inducing import Features
from cavity.resampling.averaged import largest_change
from cavity.resampling.blocks import (
    BlockAverages,
    BlockPool,
    CurveSums,
    RowAverages,
    SizeEquations,
)
from cavity.resampling.pool import Averages, EffectiveSites
from cavity.rows import State
from cavity.sites import Rows, Sites, cavity
from cavity.solvers import contraction

BLOCK_THEORIES = ("cavity", "variational")
_SHARE = 0.1
"""Share of the tolerance for the equations inside a theory."""
_FASTEST = 0.05
"""An iteration is never assumed to contract faster than this."""


class BlockSolution(NamedTuple):
    """Averages over random training sets of one size, and how they were found.

    Those of the rows stay with the rows, under the name of ``state``.
    """

    state: State
    averages: BlockAverages
    size: float
    converged: bool
    n_iter: int
    residual: float
    reliable: bool = True


class CurveRound(NamedTuple):
    """What every block needs to know in a round."""

    averages: Any
    prior: Any
    equations: SizeEquations
    step: float = 1.0


class CurveVisit(NamedTuple):
    """What a block answers."""

    sums: CurveSums
    largest: float
    """The largest change of a cavity since the last round."""
    lost: int
    """Blocks that began without sites."""


def solve_on_blocks(
    pool: BlockPool, sizes: Array, law: str, theory: str, *, tol: float, max_iter: int
) -> list[BlockSolution]:
    """Return the averages over random training sets of each size.

    Parameters
    ----------
    pool : BlockPool
    sizes : array of shape (k,)
        Numbers of examples drawn.
    law : {"subsample", "bootstrap"}
    theory : {"cavity", "variational"}
    tol, max_iter
        As in `solve_sizes`, for each size.
    """
    found: dict[int, BlockSolution] = {}
    last: BlockSolution | None = None
    # Downwards from all examples if a fit to them is known, else upwards from none.
    for k in np.argsort(sizes if pool.fitted is None else -sizes, kind="stable"):
        size = float(sizes[k])
        equations = SizeEquations(
            pool.likelihood, theory, law, size, pool.share, pool.noise, _SHARE * tol
        )
        found[int(k)] = last = _solve(pool, equations, last, tol, max_iter)
    return [found[k] for k in range(len(sizes))]


def _solve(
    pool: BlockPool, equations: SizeEquations, start: BlockSolution | None, tol: float, most: int
) -> BlockSolution:
    """Iterate the equations of one size from the cavities of another one."""
    state, prior = State(pool.blocks), pool.prior
    now = CurveRound(None, prior, equations)
    found = _begin(pool, now, start, state.name)
    step, last, residual, n_iter = 1.0, float("inf"), float("inf"), 1
    while residual > tol and n_iter < most:
        now = now._replace(averages=BlockAverages.of(prior, found.sums), step=step)
        found, n_iter = pool.blocks.reduce(_visit, now, state.name), n_iter + 1
        if found.lost:
            residual = last = float("inf")
            continue
        ratio = found.largest / last
        print(f"   {equations.size:.0f} {n_iter} largest {found.largest:.2e} ratio {ratio:.2f}")
        residual = found.largest * max(_FASTEST, contraction(last, found.largest))
        last = found.largest
    averages = BlockAverages.of(prior, found.sums)
    return BlockSolution(state, averages, equations.size, residual <= tol, n_iter, residual)


def _begin(pool: BlockPool, now: CurveRound, start: BlockSolution | None, state: str) -> CurveVisit:
    """Return what the rows add up to, with the sites of the new size in the cavities of a start."""
    if start is not None:
        return pool.blocks.reduce(_again, now, state, start.state.name)
    if pool.fitted is None:
        posterior, name = pool.prior.condition(), None
    else:
        posterior, name = pool.posterior, pool.fitted.name
    return pool.blocks.reduce(_from_fit, now._replace(averages=posterior), state, name)


def _from_fit(rows: Rows, sites: Any, now: CurveRound) -> tuple[RowAverages, CurveVisit]:
    """Begin with the cavities of a fit, or with the prior."""
    noise, floor = now.equations.noise, np.finfo(float).eps
    local = now.averages.local(now.prior.features(rows), sites)
    m, v = cavity(local, clip(rows.weight, low=1.0))
    c = Averages(np.maximum(v - noise, floor * v), m, np.zeros_like(m))
    return _moved_to(rows, None, c, now, lost=False)


def _again(rows: Rows, kept: Any, now: CurveRound) -> tuple[RowAverages, CurveVisit]:
    """Begin with the cavities that the rows keep from another size."""
    if kept is None:
        seen = now.equations.seen(now.prior, rows)
        c = Averages(seen.prior, 0.0 * seen.prior, 0.0 * seen.prior)
    else:
        c = kept.cavities
    return _moved_to(rows, None, c, now, lost=kept is None)


def _visit(rows: Rows, kept: Any, now: CurveRound) -> tuple[RowAverages, CurveVisit]:
    seen = now.equations.seen(now.prior, rows)
    zero = 0.0 * seen.prior
    sites = EffectiveSites(zero, zero, zero) if kept is None else kept.sites
    return _moved_to(rows, kept, now.averages.cavities(seen, sites), now, lost=kept is None)


def _moved_to(
    rows: Rows, kept: Any, c: Averages, now: CurveRound, *, lost: bool
) -> tuple[RowAverages, CurveVisit]:
    """Return a block with the sites of given cavities, or part of the way to them."""
    seen = now.equations.seen(now.prior, rows)
    sites = now.equations.sites(rows, c)
    largest = 0.0 if kept is None else largest_change(c, kept.cavities)
    if now.step < 1.0 and kept is not None:
        sites = EffectiveSites(*(_between(a, b, now.step) for a, b in zip(kept.sites, sites)))
    beyond = None if np.ndim(seen.beyond) == 0 else seen.beyond
    own = RowAverages(*sites, *c[:4], beyond)
    return own, CurveVisit(_sums(seen, sites), largest, int(lost))


def _between(a: Any, b: Any, step: float) -> Any:
    return b if a is None or b is None else a + step * (b - a)


def _sums(seen: Features, sites: EffectiveSites) -> CurveSums:
    """Return what the rows add to the averages."""
    e = 1.0 + sites.response * seen.left
    spread = gram((namespace(e).sqrt(sites.w) / e)[:, None] * seen.P)
    with_u = None if sites.u_chi is None else seen.sums(Sites(sites.u, sites.gamma))
    return CurveSums(seen.sums(Sites(sites.response, sites.gamma)), spread, with_u)
