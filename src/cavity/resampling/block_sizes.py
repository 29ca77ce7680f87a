"""Averages over training sets of many sizes, for rows in blocks.

As in inference by sweeps (`cavity.inference.sweeps`), the step depends on the residual and is never
undone. Each size starts from where the cavities of the last two solved sizes lead.
"""

from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import Array, clip, gram, namespace
from cavity.inference.sweeps import next_step
from cavity.priors.inducing import Features
from cavity.resampling.averaged import largest_change
from cavity.resampling.blocks import BlockAverages, BlockPool, CurveSums, RowAverages, SizeEquations
from cavity.resampling.pool import Averages, EffectiveSites
from cavity.rows import State
from cavity.sites import Rows, Sites, cavity
from cavity.solvers import contraction

BLOCK_THEORIES = ("cavity", "variational")
_SHARE, _LOOSE = 0.1, 0.02
"""Tolerance for the equations inside a theory: a share of the curve's, or of the last change."""
_FASTEST = 0.05
"""An iteration is never assumed to contract faster than this."""
_FARTHEST = 2.0
"""A step to the next size leads at most this many times as far as the last step."""
_NEVER = float("inf")
_NOTHING = Averages(None, None, None)


class BlockSolution(NamedTuple):
    """Averages over random training sets of one size, and how they were found.

    Those of the rows stay with the rows, under the name of ``state``.
    """

    state: State
    averages: BlockAverages
    equations: SizeEquations
    converged: bool
    n_iter: int
    residual: float
    reliable: bool = True


class CurveRound(NamedTuple):
    """What every block needs to know in a round."""

    averages: Any
    """Those of all rows; to begin with, the posterior of a fit."""
    prior: Any
    equations: SizeEquations
    step: float = 1.0
    ahead: float = 0.0
    """How far the next size is from the last one, in units of the last step."""


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

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity.kernels import rule
    >>> from cavity.likelihoods import Probit
    >>> from cavity.priors import InducingPrior
    >>> from cavity.resampling import BlockPool, solve_on_blocks
    >>> from cavity.rows import MemoryBlocks
    >>> from cavity.sites import Rows
    >>> x, y = np.linspace(-1.0, 1.0, 6)[:, None], np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    >>> blocks = MemoryBlocks(Rows(y, np.ones(6), x), 3)
    >>> pool = BlockPool(InducingPrior.of(rule(RBF(1.0)), x[::2]), blocks, Probit(), 6, 1.0 / 6.0)
    >>> sizes = np.array([2.0, 6.0])
    >>> two, six = solve_on_blocks(pool, sizes, "subsample", "cavity", tol=1e-6, max_iter=50)
    >>> two.converged and six.converged
    True
    """
    found: dict[int, BlockSolution] = {}
    # Downwards from all examples if a fit to them is known, else upwards from none.
    order = np.argsort(sizes if pool.posterior is None else -sizes, kind="stable")
    known = [] if pool.posterior is None else [float(pool.size)]
    last: BlockSolution | None = None
    for k in order:
        size = float(sizes[k])
        about = (pool.likelihood, theory, law, size, pool.share, pool.noise, _SHARE * tol)
        now = CurveRound(None, pool.prior, SizeEquations(*about), ahead=_ahead(known, size))
        found[int(k)] = here = _solve(pool, now, last, tol, max_iter)
        if here.converged:
            last, known = here, [*known, size][-2:]
    return [found[k] for k in range(len(sizes))]


def _ahead(known: list[float], size: float) -> float:
    """Return the step to the next size, in logs, in units of the last step."""
    if len(known) < 2 or known[0] == known[1]:
        return 0.0
    return float(min(np.log(size / known[1]) / np.log(known[1] / known[0]), _FARTHEST))


def _solve(
    pool: BlockPool, now: CurveRound, start: BlockSolution | None, tol: float, max_iter: int
) -> BlockSolution:
    """Iterate the equations of one size, from the cavities of another one or of a fit."""
    state, blocks, equations = State(pool.blocks), pool.blocks, now.equations
    found = _begin(pool, now, start, state.name)
    residual = last = _NEVER
    n_iter, step = 1, 1.0
    while residual > tol and n_iter < max_iter:
        averages = BlockAverages.of(pool.prior, found.sums)
        inner = equations._replace(tol=max(equations.tol, _LOOSE * min(last, 1.0)))
        taken, now = step, now._replace(averages=averages, equations=inner, step=step)
        found, n_iter = blocks.reduce(_visit, now, state.name), n_iter + 1
        change = _NEVER if found.lost else found.largest / taken
        residual = change
        if taken == 1.0 and last < _NEVER:
            residual *= max(_FASTEST, contraction(last, change))
        step = next_step(step, 0.0 if found.lost or last == _NEVER else change / last)
        last = change
    averages = BlockAverages.of(pool.prior, found.sums)
    return BlockSolution(state, averages, equations, residual <= tol, n_iter, residual)


def _begin(pool: BlockPool, now: CurveRound, start: BlockSolution | None, state: str) -> CurveVisit:
    """Return what the rows add up to with the sites of a new size, in the cavities of a start."""
    visit: Any = _from_size if start is not None else _from_fit
    name: str | None = None
    if start is not None:
        name = start.state.name
    else:
        name = None if pool.fitted is None else pool.fitted.name
        posterior = pool.prior.condition() if pool.posterior is None else pool.posterior
        now = now._replace(averages=posterior)
    found: CurveVisit = pool.blocks.reduce(visit, now, state, name)
    return found


def _from_fit(rows: Rows, sites: Any, now: CurveRound) -> tuple[RowAverages, CurveVisit]:
    """Begin with the leave-one-out cavities of a fit, or with the prior."""
    noise, floor = now.equations.noise, np.finfo(float).eps
    local = now.averages.local(now.prior.features(rows), sites)
    m, v = cavity(local, clip(rows.weight, low=1.0))
    c = Averages(np.maximum(v - noise, floor * v), m, np.zeros_like(m))
    return _answer(rows, c, now, before=c)


def _from_size(rows: Rows, kept: Any, now: CurveRound) -> tuple[RowAverages, CurveVisit]:
    """Begin with the cavities that the rows keep from other sizes."""
    if kept is None:
        prior = now.equations.seen(now.prior, rows).prior
        return _answer(rows, Averages(prior, 0.0 * prior, 0.0 * prior), now, lost=1)
    c = kept.cavities
    return _answer(rows, _further(kept.before, c, now.ahead), now, before=c)


def _further(before: Averages, c: Averages, t: float) -> Averages:
    """Return where two sizes lead: variances as powers of the size, means as its logarithm.

    It saves an eighth to a quarter of the rounds.
    """
    if before.G is None or t == 0.0:
        return c
    G, chi = (b * (b / a) ** t for a, b in ((before.G, c.G), (before.response, c.response)))
    R, V = c.R + t * (c.R - before.R), np.maximum(c.V + t * (c.V - before.V), 0.0)
    return Averages(G, R, V, None if c.chi is None else chi)


def _visit(rows: Rows, kept: Any, now: CurveRound) -> tuple[RowAverages, CurveVisit]:
    """Find the cavities under the sites that the rows keep, and move on to new sites."""
    seen = now.equations.seen(now.prior, rows)
    zero = 0.0 * seen.prior
    sites = EffectiveSites(zero, zero, zero) if kept is None else kept.sites
    return _answer(rows, now.averages.cavities(seen, sites), now, kept, lost=int(kept is None))


def _answer(
    rows: Rows,
    c: Averages,
    now: CurveRound,
    kept: RowAverages | None = None,
    before: Averages = _NOTHING,
    lost: int = 0,
) -> tuple[RowAverages, CurveVisit]:
    """Return what a block keeps, and adds up to, once its cavities are known."""
    seen, sites, largest = now.equations.seen(now.prior, rows), now.equations.sites(rows, c), 0.0
    if kept is not None:
        largest, before = largest_change(c, kept.cavities), kept.before
        pairs = zip(kept.sites, sites, strict=True)
        sites = EffectiveSites(*(_between(a, b, now.step) for a, b in pairs))
    beyond = None if np.ndim(seen.beyond) == 0 else seen.beyond
    own = RowAverages(*sites, *c[:4], beyond, *before[:4])
    return own, CurveVisit(_sums(seen, sites), largest, lost)


def _between(a: Any, b: Any, step: float) -> Any:
    return b if step == 1.0 or b is None else a + step * (b - a)


def _sums(seen: Features, sites: EffectiveSites) -> CurveSums:
    """Return what the rows add to the averages."""
    e = 1.0 + sites.response * seen.left
    spread = gram((namespace(e).sqrt(sites.w) / e)[:, None] * seen.P)
    with_u = None if sites.u_chi is None else seen.sums(Sites(sites.u, sites.gamma))
    return CurveSums(seen.sums(Sites(sites.response, sites.gamma)), spread, with_u)
