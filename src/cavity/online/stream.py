"""A stream's examples, learned one after the other: which of them become basis points."""

from typing import NamedTuple

import numpy as np

from cavity.arrays import Array, NotPositiveDefiniteError
from cavity.likelihoods import Likelihood
from cavity.online.block import Block, solve_block
from cavity.online.state import BLOCK, Covariance, Features, Options, State, features
from cavity.online.updates import delete, fade, grow, mend, proper, worth

__all__ = ["Learned", "learn"]

_MANY, _FEW = 12, 6
"""Rounds after which the next block is made smaller, or larger."""
_CHECKUP = 64 * BLOCK
"""Examples between looks at whether rounding has made the covariance indefinite."""


class Learned(NamedTuple):
    """A state, and what the examples on the way to it said of the predictions before it."""

    state: State
    log_prob: Array
    """Log predictive probability of each example's label, before it was learned."""


def learn(
    kernel: Covariance,
    likelihood: Likelihood,
    options: Options,
    state: State,
    X: Array,
    y: Array,
) -> Learned:
    """Learn examples one after the other.

    An input becomes a basis point if its own share of variance exceeds the tolerance and the budget
    has room. Once it is full, a new one comes in only if its score exceeds that of the least basis
    point, whose place it takes; else the example is learned by projection, which is the same as
    letting it in and taking it out again. Nothing depends on how the stream is cut into calls.

    Parameters
    ----------
    kernel : Covariance
    likelihood : Likelihood
    options : Options
    state : State
    X : array of shape (n, d)
    y : array of shape (n,)
    """
    log_prob = np.empty(len(y))
    i = 0
    while i < len(y):
        rows = slice(i, i + min(state.size, options.rhythm - state.seen % options.rhythm))
        own = likelihood.subset(rows)
        state, found = _step(kernel, own, options, state, X[rows], y[rows])
        log_prob[i : i + len(found)] = found
        i += len(found)
        state = _keep(kernel, options, state)
    return Learned(state, log_prob)


def _step(
    kernel: Covariance, likelihood: Likelihood, options: Options, state: State, X: Array, y: Array
) -> tuple[State, Array]:
    """Learn the examples up to the first that changes the basis, or that one."""
    seen = features(kernel, state.Z, state.L, X)
    novel = seen.own > options.tol * seen.prior
    full = len(state.mean) >= options.budget
    count = len(y) if full or not np.any(novel) else int(np.argmax(novel))
    if count:
        some = slice(0, count)
        state, block = _solved(state, likelihood.subset(some), y[some], seen.part(some))
        count = len(block.moments.log_z)
        if full:
            some = slice(0, count)
            enters = novel[some] & (_entry_score(block, seen.part(some)) > state.floor)
            count = int(np.argmax(enters)) if np.any(enters) else count
    if count:
        size = _next_size(state.size, block.rounds, count)
        return block.learn(state, count)._replace(size=size), block.moments.log_z[:count]
    first = slice(0, 1)
    return _enter(kernel, likelihood.subset(first), options, state, X[first], y[first], seen)


def _solved(state: State, likelihood: Likelihood, y: Array, seen: Features) -> tuple[State, Block]:
    """Return the block, or its first example if rounding has made the covariance indefinite."""
    try:
        return state, solve_block(state, likelihood, y, seen)
    except NotPositiveDefiniteError:
        one, state = slice(0, 1), proper(state)
        return state, solve_block(state, likelihood.subset(one), y[one], seen.part(one))


def _entry_score(block: Block, seen: Features) -> Array:
    """Return ε = α²/(Q + C) that each example would have as a basis point: q² γ/(1 + γ r)."""
    _, d1, d2 = block.moments
    return d1**2 * seen.own / np.maximum(1.0 + seen.own * d2, np.finfo(float).eps)


def _next_size(size: int, rounds: int, count: int) -> int:
    if rounds > _MANY:
        return max(1, count // 2)
    return min(BLOCK, 2 * size) if rounds <= _FEW else size


def _enter(
    kernel: Covariance,
    likelihood: Likelihood,
    options: Options,
    state: State,
    x: Array,
    y: Array,
    seen: Features,
) -> tuple[State, Array]:
    """Learn an example as a basis point; over the budget, the least one leaves."""
    state = grow(state, x, seen.part(slice(0, 1)))
    inside = Features(state.L[-1][:, None], np.zeros(1), seen.prior[:1], seen.noise[:1])
    block = solve_block(state, likelihood, y, inside)
    # Where one input is new the next may be: a block that ends early was worked out in vain.
    state = block.learn(state, 1)._replace(size=max(1, state.size // 2))
    if len(state.mean) > options.budget:
        state = delete(state, int(np.argmin(worth(state))))
    return _look(options, mend(kernel, state)), block.moments.log_z


def _look(options: Options, state: State) -> State:
    """Return the state with the worth of its least basis point up to date."""
    if len(state.mean) < options.budget:
        return state
    return state._replace(floor=float(np.min(worth(state))))


def _keep(kernel: Covariance, options: Options, state: State) -> State:
    """Do what falls due: let old evidence fade, look at the basis, check the numbers."""
    if state.seen % options.rhythm:
        return state
    if options.forget < 1.0:
        state = fade(state, options.forget**options.rhythm)
    if state.seen % _CHECKUP < options.rhythm:
        state = proper(state)
    return _look(options, state)
