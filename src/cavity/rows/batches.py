"""Rows that a function of the user's yields in batches."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from cavity.rows.base import ENGINES
from cavity.rows.batch import Batch, check_batch, converted, kind_of_targets
from cavity.rows.streamed import BATCH_ROWS, KEPT, StreamedRows
from cavity.sites import Rows

_FRESH = (
    "make_batches has to return a new iterator every time it is called, because the rows are "
    "read many times. Write it as a generator function, or as `lambda: iter(list_of_batches)`."
)


class BatchRows(StreamedRows):
    """Rows from a function that returns a new iterator of batches whenever it is called.

    For rows in a database, in a format of your own, or made by a program.

    Parameters
    ----------
    make_batches : callable
        Called without arguments before every pass. It returns an iterator of batches ``X``,
        ``(X, y)`` or ``(X, y, weight)``, which must be the same rows in the same order each time.
        Batches may have any number of rows; empty ones are skipped.
    feature_names : list of str, optional
        Names of the columns of X.
    batch_rows : int, default 4096
        Rows of the blocks that the batches are made into. Memory grows with them: a block takes
        8 bytes for each row and inducing point, several times.
    kept : float, default 1073741824
        Bytes of memory for what a prior makes of the rows between visits; if it is not enough for
        all rows, that is made again in every pass.
    progress : callable, optional
        Called as ``progress(rows_done, n_rows)`` after every block; ``n_rows`` is None in the
        first pass.

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.rows import BatchRows
    >>> def batches():
    ...     rng = np.random.default_rng(0)
    ...     for _ in range(3):
    ...         X = rng.normal(size=(1000, 2))
    ...         yield X, np.sign(X[:, 0])
    >>> rows = BatchRows(batches)
    >>> rows.n_rows, rows.n_features
    (3000, 2)
    """

    def __init__(
        self,
        make_batches: Callable[[], Iterable[Any]],
        *,
        feature_names: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
        kept: float = KEPT,
        progress: Callable[[int, int | None], Any] | None = None,
    ) -> None:
        super().__init__(batch_rows, kept, progress)
        if not callable(make_batches):
            raise TypeError(f"Expected a function, but got {type(make_batches).__name__}. {_FRESH}")
        self._make = make_batches
        self._names = None if feature_names is None else [str(name) for name in feature_names]
        self._first: Batch | None = None
        self._last: Any = None

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the columns of X, if they were given."""
        return self._names

    @property
    def n_features(self) -> int:
        """The number of columns of X; if nothing was read yet, the first batch is."""
        if self._first is None:
            next(self._batches(), None)
        if self._first is None:
            raise ValueError("make_batches yields no rows.")
        return int(self._first.X.shape[1])

    def with_targets(self, y: Any) -> "BatchRows":
        """Return the same table with other targets.

        Parameters
        ----------
        y : array of shape (n_rows,) or (n_rows, n_targets)
        """
        if isinstance(y, str):
            raise TypeError(
                f"The batches have no column {y!r} to take targets from: let make_batches yield "
                "(X, y), or give the targets as an array."
            )
        return super().with_targets(y)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_last": None}

    def _batches(self) -> Iterator[Batch]:
        done, size = 0, self.batch_rows
        for k, given in enumerate(self._fresh()):
            whole = _batch_of(given, k)
            for begin in range(0, whole.n, size):
                batch = _float64(whole.part(begin, begin + size))
                self._agree(batch, not done)
                check_batch(batch, done, self._names)
                done += batch.n
                yield batch
        if not done and self._first is not None:
            raise ValueError(f"make_batches has yielded rows before, and now yields none. {_FRESH}")

    def _fresh(self) -> Iterator[Any]:
        """Return a new iterator."""
        made = self._make()
        if isinstance(made, Iterator):
            if made is self._last:
                raise ValueError(f"make_batches has returned the same iterator twice. {_FRESH}")
            self._last = made
        try:
            return iter(made)
        except TypeError as error:
            raise TypeError(
                f"make_batches has returned {type(made).__name__}, which is no iterator of "
                f"batches. {_FRESH}"
            ) from error

    def _agree(self, batch: Batch, begins: bool) -> None:
        """Check that a batch has the columns of the first one."""
        if self._first is None:
            self._first = batch.part(0, 1)._replace(X=batch.X[:1].copy())
        first, d = self._first, self._first.X.shape[1]
        if self._names is not None and len(self._names) != d:
            raise ValueError(f"There are {len(self._names)} feature_names for {d} columns.")
        if batch.X.shape[1] != d:
            raise ValueError(
                f"{batch.source} has {batch.X.shape[1]} columns and {first.source} has {d}. All "
                "batches must have the same columns."
            )
        if (batch.y is None) != (first.y is None):
            without, others = (batch, first) if batch.y is None else (first, batch)
            raise ValueError(f"{without.source} has no targets, but {others.source} has.")
        if batch.y is not None:
            _same_targets(batch, first)
        if begins and not np.allclose(batch.X[0], first.X[0], rtol=1e-9, atol=0.0):
            raise ValueError(f"make_batches begins with another row than before. {_FRESH}")


def _batch_of(given: Any, k: int) -> Batch:
    """Return what make_batches yields as a batch, not yet converted."""
    parts = given if isinstance(given, tuple) else (given,)
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"batch {k} has {len(parts)} parts, not X, (X, y) or (X, y, weight).")
    X, y, weight = (*parts, None, None)[:3]
    X, n = np.asarray(X), len(X)
    if X.ndim != 2 and n:
        raise ValueError(f"batch {k} has inputs of shape {X.shape}, not (rows, columns).")
    y = None if y is None else np.asarray(y)
    weight = np.ones(n) if weight is None else np.asarray(weight)
    for name, part in (("targets", y), ("weights", weight)):
        if part is not None and (part.ndim < 1 or len(part) != n):
            raise ValueError(f"batch {k} has {n} rows, but {name} of shape {part.shape}.")
    return Batch(X, y, weight, f"batch {k}", 0)


def _float64(batch: Batch) -> Batch:
    X = converted(batch.X, f"The input of {batch.source}")
    return batch._replace(X=X, weight=converted(batch.weight, f"The weight of {batch.source}"))


def _same_targets(batch: Batch, first: Batch) -> None:
    if batch.y.shape[1:] != first.y.shape[1:]:
        raise ValueError(
            f"{batch.source} has targets of shape {batch.y.shape[1:]} for each row, and "
            f"{first.source} of {first.y.shape[1:]}."
        )
    kinds = kind_of_targets(batch.y), kind_of_targets(first.y)
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"The targets of {batch.source} are {kinds[0]}, and those of {first.source} {kinds[1]}."
        )


def _of_rows(rows: Rows, size: int) -> BatchRows:
    """Return rows in memory, in batches of another size than the blocks."""
    cuts = range(0, len(rows.weight), size + 1)
    whole = Batch(rows.X, rows.y, rows.weight, "", 0)
    batches = [whole.part(cut, cut + size + 1)[:3] for cut in cuts]
    return BatchRows(lambda: iter(batches), batch_rows=size)


ENGINES["batches"] = _of_rows
