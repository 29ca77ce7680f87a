"""Scores of rows in blocks, from the averages that stay with them."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import Array, row_blocks
from cavity.likelihoods import Likelihood
from cavity.resampling.block_sizes import BlockSolution
from cavity.resampling.blocks import BlockPool, examples_of, part_of_averages, share_of
from cavity.resampling.laws import LAWS, most_draws
from cavity.resampling.pool import Averages, Examples
from cavity.resampling.scores import Losses, Scores
from cavity.rows import added
from cavity.sites import Marginals, Rows

_CHUNK = 1024
"""Rows that are scored together: averages over fields take forty nodes a row."""

Score = Callable[[Sequence[Examples]], Scores]
"""Makes the scores of some examples, given once for each latent function."""


class Scoring(NamedTuple):
    """How rows are scored at one size, in any block."""

    make: Score
    likelihoods: Sequence[Likelihood]
    tunings: Sequence[Any]
    law: str
    size: float
    share: Array | float

    @classmethod
    def of(
        cls, make: Score, pools: Sequence[BlockPool], solutions: Sequence[BlockSolution]
    ) -> "Scoring":
        """Return the scoring of one size's averages, of every latent function."""
        about, first = solutions[0].equations, pools[0]
        likelihoods = [pool.likelihood for pool in pools]
        tunings = [pool.tuning for pool in pools]
        return cls(make, likelihoods, tunings, about.law, about.size, first.share)

    def chunks(self, blocks: "Answers") -> Iterator["Chunk"]:
        """Yield the scores of a block, some rows at a time."""
        rows = blocks[0].rows
        share = share_of(self.share, rows)
        for i, j in row_blocks(len(share), _CHUNK):
            yield self._chunk(blocks, share[i:j], slice(i, j))

    def _chunk(self, blocks: "Answers", share: Array, part: slice) -> "Chunk":
        pairs = zip(self.likelihoods, blocks, strict=True)
        scores = self.make([examples_of(lik, block.rows, part) for lik, block in pairs])
        rate = self.size * np.asarray(self.share)
        occupancy = LAWS[self.law](self.size * share, most_draws(rate))
        place = blocks[0].rows.place.start or 0
        here = slice(place + part.start, place + part.stop)
        held_out = [
            _tuned(part_of_averages(block.kept.held_out, part), tuning, here, np.max(rate))
            for block, tuning in zip(blocks, self.tunings, strict=True)
        ]
        pool = [part_of_averages(block.kept.pool, part) for block in blocks]
        return Chunk(scores, share, held_out, pool, occupancy, here)


class Chunk(NamedTuple):
    """Some rows, and the averages of all their latent functions."""

    scores: Scores
    share: Array
    held_out: list[Averages]
    pool: list[Averages]
    occupancy: Any
    place: slice
    """Their numbers in the whole table."""


class BlockAnswer(NamedTuple):
    """A block without its inputs, and the averages that stay with it."""

    rows: Rows
    kept: Any


Answers = Sequence[BlockAnswer]
"""The same block of rows once for each latent function."""


class Tally(NamedTuple):
    """Sums over rows, each with its share."""

    error: float
    log_loss: float
    pool_error: float
    variance: float
    brier: float | None
    squares: tuple[float, float]
    """Of error and log loss."""


class RowScores(NamedTuple):
    """Scores of single rows at one size."""

    losses: Losses
    doubt: Array
    mean: Array
    variance: Array
    """Of the prediction, from training set to training set."""
    place: Array
    """Numbers of the rows in the whole table."""
    truth: Array


def tally(make: Score, pools: Sequence[BlockPool], solutions: Sequence[BlockSolution]) -> Tally:
    """Return what the scores of all rows add up to, at one size."""
    scoring = Scoring.of(make, pools, solutions)
    if len(pools) == 1:
        # Where the rows are: nothing but the sums has to travel.
        found: Tally = pools[0].blocks.reduce(_tally, scoring, solutions[0].state.name)
        return found
    return reduce(added, (_tally_of(scoring, blocks) for blocks in _visited(pools, solutions)))


def row_scores(
    make: Score,
    pools: Sequence[BlockPool],
    solutions: Sequence[BlockSolution],
    most: int | None = None,
) -> RowScores:
    """Return the scores of all rows, in their order, or of the most doubtful of each block."""
    scoring = Scoring.of(make, pools, solutions)
    look = partial(_scores_of, scoring, most=most)
    if len(pools) == 1:
        each = pools[0].blocks.collect(_look, look, solutions[0].state.name)
    else:
        each = map(look, _visited(pools, solutions))
    return _joined(list(each))


def row_averages(
    make: Score, pools: Sequence[BlockPool], solutions: Sequence[BlockSolution]
) -> Iterator[Chunk]:
    """Yield all rows with their averages, some at a time, in their order."""
    scoring = Scoring.of(make, pools, solutions)
    for blocks in _visited(pools, solutions):
        yield from scoring.chunks(blocks)


def apparent_tally(make: Score, pools: Sequence[BlockPool]) -> tuple[float, float]:
    """Return error and log loss of the fit to all rows, on these rows."""
    job = [(pool.likelihood, pool.noise, pool.posterior) for pool in pools]
    each = [
        pool.blocks.collect(_predicted, (posterior, noise), "")
        for pool, (_, noise, posterior) in zip(pools, job, strict=True)
    ]
    total = np.zeros(2)
    for blocks in zip(*each, strict=True):
        rows = blocks[0][0]
        share = share_of(pools[0].share, rows)
        for i, j in row_blocks(len(share), _CHUNK):
            part = slice(i, j)
            examples = [
                examples_of(pool.likelihood, own, part)
                for pool, (own, _) in zip(pools, blocks, strict=True)
            ]
            latent = [Marginals(*(x[part] for x in q)) for _, q in blocks]
            losses = make(examples).losses(latent)
            total += np.array([losses.error @ share[part], losses.log_loss @ share[part]])
    return float(total[0]), float(total[1])


def _predicted(rows: Rows, kept: Any, now: tuple[Any, float]) -> tuple[Rows, Marginals]:
    posterior, noise = now
    seen = posterior.prior.features(rows)
    return rows._replace(X=None, memo=None), posterior.predict(seen.P, seen.prior - noise)


def _visited(pools: Sequence[BlockPool], solutions: Sequence[BlockSolution]) -> Iterator[Answers]:
    """Yield every block with the averages of all latent functions."""
    each = zip(pools, solutions, strict=True)
    return zip(
        *(pool.blocks.collect(_kept, None, found.state.name) for pool, found in each), strict=True
    )


def _kept(rows: Rows, kept: Any, shared: None) -> BlockAnswer:
    if kept is None:
        raise RuntimeError(
            "A block of rows was lost after its averages had been computed: compute the learning "
            "curve again."
        )
    return BlockAnswer(rows._replace(X=None, memo=None), kept)


def _tally(rows: Rows, kept: Any, scoring: Scoring) -> tuple[Any, Tally]:
    return kept, _tally_of(scoring, [_kept(rows, kept, None)])


def _look(rows: Rows, kept: Any, look: Callable[[Answers], RowScores]) -> RowScores:
    return look([_kept(rows, kept, None)])


def _tally_of(scoring: Scoring, blocks: Answers) -> Tally:
    return reduce(added, map(_tally_chunk, scoring.chunks(blocks)))


def _tally_chunk(chunk: Chunk) -> Tally:
    scores, share, held_out, pool, occupancy, _ = chunk
    error, log_loss, brier, _ = scores.held_out(held_out)
    wrong = scores.pool_error(pool, held_out, occupancy)
    G = np.mean([c.G for c in pool], axis=0) * scores.scale**2
    squares = float(error**2 @ share), float(log_loss**2 @ share)
    known = [float(x @ share) for x in (error, log_loss, wrong, G)]
    return Tally(
        known[0],
        known[1],
        known[2],
        known[3],
        None if brier is None else float(brier @ share),
        squares,
    )


def _scores_of(scoring: Scoring, blocks: Answers, most: int | None) -> RowScores:
    found = _joined([_score_chunk(chunk) for chunk in scoring.chunks(blocks)])
    if most is None or len(found.doubt) <= most:
        return found
    return _rows_of(found, np.sort(np.argsort(-found.doubt, kind="stable")[:most]))


def _score_chunk(chunk: Chunk) -> RowScores:
    scores, held_out = chunk.scores, chunk.held_out
    losses = scores.held_out(held_out)
    mean, variance = scores.predicted([held_out])
    place = np.arange(chunk.place.start, chunk.place.stop)
    doubt = scores.doubt(held_out, losses.support)
    return RowScores(losses, doubt, mean[0], variance[0], place, scores.truth)


def _joined(parts: Sequence[RowScores]) -> RowScores:
    columns = zip(*(part[1:] for part in parts), strict=True)
    each = zip(*(part.losses for part in parts), strict=True)
    losses = Losses(*(None if x[0] is None else np.concatenate(x) for x in each))
    return RowScores(losses, *map(np.concatenate, columns))


def _rows_of(found: RowScores, index: Array) -> RowScores:
    losses = Losses(*(None if x is None else x[index] for x in found.losses))
    return RowScores(losses, *(x[index] for x in found[1:]))


def _tuned(c: Averages, tuning: Any, place: slice, drawn: float) -> Averages:
    return c if tuning is None else tuning.part(place)(c, drawn)
