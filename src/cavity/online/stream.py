"""A stream's examples, learned one after the other: which of them become basis points."""

import numpy as np

from cavity.arrays import Array, NotPositiveDefiniteError, clip
from cavity.inference import SINGLY, presented
from cavity.likelihoods import Likelihood
from cavity.online.block import Block, site_through_noise, solve_block
from cavity.online.posterior import BLOCK, BasisFeatures, OnlinePosterior, Options, features
from cavity.online.updates import delete, fade, grow, mend, proper, scores
from cavity.priors import KernelRule
from cavity.sites import Marginals, Matched

_MANY, _FEW = 12, 6
"""Rounds after which the next block is made smaller, or larger."""
_CHECKUP = 64 * BLOCK
"""Examples between checks of whether rounding has made the covariance indefinite."""
_FIRST = slice(0, 1)


def learn(
    rule: KernelRule,
    likelihood: Likelihood,
    options: Options,
    posterior: OnlinePosterior,
    X: Array,
    y: Array,
) -> tuple[OnlinePosterior, Array]:
    """Learn examples one after the other; return their log predictive probabilities as well.

    An input becomes a basis point if it is novel and the budget has room. Once the budget is full,
    a novel input is added only if its score exceeds the lowest score of a basis point, which is
    then removed; otherwise the example is learned by projection, which equals adding the input and
    removing it again. The result does not depend on how the stream is cut into calls.
    """
    log_prob = np.empty(len(y))
    i = 0
    while i < len(y):
        due = options.interval - posterior.seen % options.interval
        rows = slice(i, i + min(posterior.size, due))
        own = likelihood.subset(rows)
        posterior, found = _step(rule, own, options, posterior, X[rows], y[rows])
        log_prob[i : i + len(found)] = found
        i += len(found)
        posterior = _upkeep(options, posterior)
    return posterior, log_prob


def repeat(
    rule: KernelRule,
    likelihood: Likelihood,
    options: Options,
    posterior: OnlinePosterior,
    x: Array,
    y: Array,
    copies: float,
) -> OnlinePosterior:
    """Learn further copies of an example that was presented `SINGLY` times already.

    The basis stays as it is. What all copies learn together is one site, whose cost hardly depends
    on their number; no copy has to gain anything, which would add up. With forgetting, each copy
    fades what came before it, earlier copies as well.
    """
    kept = options.forget**copies
    effective = copies
    if options.forget < 1.0:
        posterior, effective = fade(posterior, kept), (1.0 - kept) / (1.0 - options.forget)
    seen = features(rule, posterior, x)
    M = posterior.cov @ seen.phi
    c = Marginals(seen.phi.T @ posterior.mean, clip(np.sum(seen.phi * M, axis=0), low=0.0))

    def site_at(q: Marginals) -> Matched:
        whole = Marginals(q.mean, q.variance + seen.residual)
        return site_through_noise(likelihood, y, whole, seen.noise, least=0.0)

    site, log_z = presented(site_at, c, effective, SINGLY)
    grown = 1.0 + site.tau * c.variance
    learned = posterior._replace(
        mean=posterior.mean + M @ ((site.nu - site.tau * c.mean) / grown),
        cov=posterior.cov - (M * (site.tau / grown)) @ M.T,
        log_evidence=posterior.log_evidence + log_z,
        seen=posterior.seen + round(copies),
    )
    return _with_floor(options, proper(learned))


def _step(
    rule: KernelRule,
    likelihood: Likelihood,
    options: Options,
    posterior: OnlinePosterior,
    X: Array,
    y: Array,
) -> tuple[OnlinePosterior, Array]:
    """Learn the examples before the first that changes the basis, or that one alone."""
    seen = features(rule, posterior, X)
    novel = seen.residual > options.novelty * seen.prior
    full = len(posterior.mean) >= options.budget
    count = len(y) if full or not np.any(novel) else int(np.argmax(novel))
    if count:
        some = slice(0, count)
        posterior, block = _solved(posterior, likelihood.subset(some), y[some], seen.part(some))
        count = len(block.moments.log_z)
        if full:
            some = slice(0, count)
            enters = novel[some] & (_entry_score(block, seen.part(some)) > posterior.floor)
            count = int(np.argmax(enters)) if np.any(enters) else count
    if count:
        size = _next_size(posterior.size, block.rounds, count)
        return block.learn(posterior, count)._replace(size=size), block.moments.log_z[:count]
    grown = grow(posterior, X[_FIRST], seen.part(_FIRST))
    found, log_prob = _learn_last(grown, likelihood.subset(_FIRST), y[_FIRST], seen.part(_FIRST))
    if len(found.mean) > options.budget:
        found = delete(found, int(np.argmin(scores(found))))
    return _with_floor(options, mend(rule, found)), log_prob


def _solved(
    posterior: OnlinePosterior, likelihood: Likelihood, y: Array, seen: BasisFeatures
) -> tuple[OnlinePosterior, Block]:
    """Return the block, or its first example if rounding has made the covariance indefinite."""
    try:
        return posterior, solve_block(posterior, likelihood, y, seen)
    except NotPositiveDefiniteError:
        posterior, own = proper(posterior), likelihood.subset(_FIRST)
        return posterior, solve_block(posterior, own, y[_FIRST], seen.part(_FIRST))


def _entry_score(block: Block, seen: BasisFeatures) -> Array:
    """Return ε = α²/(Q + C) that each example would have as a basis point: q² γ/(1 + γ r)."""
    _, d1, d2 = block.moments
    return d1**2 * seen.residual / np.maximum(1.0 + seen.residual * d2, np.finfo(float).eps)


def _next_size(size: int, rounds: int, count: int) -> int:
    if rounds > _MANY:
        return max(1, count // 2)
    return min(BLOCK, 2 * size) if rounds <= _FEW else size


def _learn_last(
    posterior: OnlinePosterior, likelihood: Likelihood, y: Array, seen: BasisFeatures
) -> tuple[OnlinePosterior, Array]:
    """Learn the example whose input has just become the last basis point."""
    inside = seen._replace(phi=posterior.L[-1][:, None], residual=np.zeros(1))
    block = solve_block(posterior, likelihood, y, inside)
    # If one input is new, the next may be too, and most of a large block would be wasted.
    size = max(1, posterior.size // 2)
    return block.learn(posterior, 1)._replace(size=size), block.moments.log_z


def _with_floor(options: Options, posterior: OnlinePosterior) -> OnlinePosterior:
    """Return the posterior with its lowest score up to date."""
    if len(posterior.mean) < options.budget:
        return posterior
    return posterior._replace(floor=float(np.min(scores(posterior))))


def _upkeep(options: Options, posterior: OnlinePosterior) -> OnlinePosterior:
    """Do what is due: fade old evidence, check the covariance, update the lowest score."""
    if posterior.seen % options.interval:
        return posterior
    if options.forget < 1.0:
        posterior = fade(posterior, options.forget**options.interval)
    if posterior.seen % _CHECKUP < options.interval:
        posterior = proper(posterior)
    return _with_floor(options, posterior)
