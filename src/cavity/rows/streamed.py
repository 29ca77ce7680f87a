"""Tables that are read in batches, over and over, and never held whole."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar

import numpy as np

from cavity.arrays import side_by_side
from cavity.rows.base import Memo, added
from cavity.rows.batch import Batch, fingerprint, merged
from cavity.rows.states import Writing
from cavity.sites import Rows

T = TypeVar("T")

BATCH_ROWS = 2**12
"""Rows of a block: the features of a thousand inducing points take 33 MB, for each thread."""
KEPT = 2**30
"""Bytes that may be kept of what a prior has made of the rows."""


_SMALLEST = 2**10
"""Bytes below which a block's share of what is kept holds nothing."""
_ROUNDING = 1e-9
"""Sums of the same numbers differ by less than this share."""


class StreamedRows(ABC):
    """Rows that are read from somewhere else in every pass.

    A pass sees blocks of ``batch_rows`` rows, in the same order each time; the last may be
    smaller. What visits keep of the rows is in temporary files.

    Parameters
    ----------
    batch_rows : int
        Rows of a block.
    kept : float
        Bytes of memory for what a prior makes of the rows between visits.
    progress : callable, optional
        Called as ``progress(rows_done, n_rows)`` after every block; ``n_rows`` is None as long as
        it is not known.
    """

    def __init__(
        self, batch_rows: int, kept: float, progress: Callable[[int, int | None], Any] | None
    ) -> None:
        if isinstance(batch_rows, bool) or int(batch_rows) != batch_rows or batch_rows < 1:
            raise ValueError(f"batch_rows must be a whole number of at least 1, not {batch_rows!r}")
        self.batch_rows, self.progress = int(batch_rows), progress
        self._kept = kept
        self._targets: Any = None
        self._n: int | None = None
        self._memos: list[Memo] = []
        self._marks: dict[int, tuple[float, float]] = {}
        self._states: dict[str, Sequence[Any]] = {}

    @property
    @abstractmethod
    def feature_names(self) -> list[str] | None:
        """The names of the columns of X, if they have any."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number of columns of X."""

    @property
    def n_rows(self) -> int:
        """The number of rows; it may take a pass to count them."""
        if self._n is None:
            for _ in self._blocks():
                pass
        return self._n  # type: ignore[return-value]

    @abstractmethod
    def _batches(self) -> Iterator[Batch]:
        """Yield the rows in batches of at most ``batch_rows``, checked."""

    def with_targets(self, y: Any) -> Self:
        """Return the same table with other targets.

        Parameters
        ----------
        y : array of shape (n_rows,) or (n_rows, n_targets)
        """
        return self._with(np.asarray(y))

    def _with(self, targets: Any, same: bool = True) -> Self:
        """Return this table with other targets; and with other features, if not the same."""
        other = copy.copy(self)
        other._states, other._targets = {}, targets
        other._marks = dict(self._marks) if same else {}
        other._n = self._n if same else None
        other._expect(other._n)
        return other

    def reduce(
        self,
        visit: Callable[[Rows, Any, Any], tuple[Any, T]],
        shared: Any,
        state: str,
        start: str | None = None,
    ) -> T:
        """As in `RowBlocks`."""
        kept = self._states.get(state, self._states.get(start or state, ()))
        writing, total, done = Writing(), None, 0
        sizes: list[int] = []
        for own, parts in side_by_side(visit, self._jobs(kept, shared, sizes)):
            size = sizes[len(writing)]
            writing.add(own, size / self._n if self._n else None)
            total = parts if total is None else added(total, parts)
            done = self._tell(done + size)
        self._states[state] = writing.done()
        return total  # type: ignore[return-value]

    def collect(self, look: Callable[[Rows, Any, Any], T], shared: Any, state: str) -> Iterator[T]:
        """As in `RowBlocks`."""
        kept = self._states.get(state, ())
        return self._looks(look, kept, shared)

    def _jobs(
        self, kept: Sequence[Any], shared: Any, sizes: list[int]
    ) -> Iterator[tuple[Rows, Any, Any]]:
        """Yield what visits are called with; blocks are read while others are visited."""
        for k, rows in enumerate(self._blocks()):
            sizes.append(len(rows.weight))
            yield rows, kept[k] if kept else None, shared

    def _looks(
        self, look: Callable[[Rows, Any, Any], T], kept: Sequence[Any], shared: Any
    ) -> Iterator[T]:
        done, sizes = 0, list[int]()
        for job in self._jobs(kept, shared, sizes):
            yield look(*job)
            done = self._tell(done + sizes[-1])

    def _tell(self, done: int) -> int:
        """Report how many rows are done."""
        if self.progress is not None:
            self.progress(done, self._n)
        return done

    def drop(self, state: str) -> None:
        """As in `RowBlocks`."""
        self._states.pop(state, None)

    def __getstate__(self) -> dict[str, Any]:
        # A bar on this screen is of no use to others, and seldom can be sent.
        return self.__dict__ | {"progress": None}

    def _blocks(self) -> Iterator[Rows]:
        """Yield all rows, in blocks of ``batch_rows``."""
        done = 0
        for k, batch in enumerate(merged(self._batches(), self.batch_rows)):
            place = slice(done, done + batch.n)
            self._compare(k, batch.X, place)
            self._expect(place.stop, exactly=False)
            y = batch.y if self._targets is None else self._targets[place]
            memo = self._memos[k] if k < len(self._memos) else None
            yield Rows(y, batch.weight, batch.X, place, memo)
            done = place.stop
        self._known(done)

    def _compare(self, k: int, X: Any, place: slice) -> None:
        """Check that a block is the same as in earlier passes."""
        mark, size = fingerprint(X)
        before, its_size = self._marks.setdefault(k, (mark, size))
        if abs(mark - before) > _ROUNDING * (size + its_size):
            raise ValueError(
                f"Rows {place.start:,} to {place.stop - 1:,} are not the same as in an earlier "
                "pass. Every pass must see the same rows in the same order, without shuffling; if "
                "the table has changed, open it again and fit anew."
            )

    def _known(self, n: int) -> None:
        """Remember the number of rows, which decides whether there is memory for features."""
        # A damaged file may declare any number of them.
        if n < 1:
            raise ValueError("The table has no rows.")
        self._expect(n)
        if self._n is None:
            self._n, blocks = n, -(-n // self.batch_rows)
            share = self._kept / blocks
            self._memos = [Memo(share) for _ in range(blocks)] if share > _SMALLEST else []
        if self._n != n:
            raise ValueError(
                f"The table has had {self._n:,} rows and now has {n:,}. Every pass must see the "
                "same rows; if the table has changed, open it again and fit anew."
            )

    def _expect(self, n: int | None, exactly: bool = True) -> None:
        """Check that there is a target for every row."""
        if self._targets is None or n is None:
            return
        given = len(self._targets)
        if given != n if exactly else given < n:
            rows = f"{n:,} rows" if exactly else f"at least {n:,} rows"
            raise ValueError(f"There are {given:,} targets for a table of {rows}.")
