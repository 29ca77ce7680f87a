"""A table's partitions: what arrives of them on a worker, and what is wrong with them."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.rows.base import Memo
from cavity.sites import Rows

_ABSENT = {"None", "nan", "<NA>", "NaT"}


class Wrong(NamedTuple):
    """Why a partition cannot be used, and the first row of it that shows why."""

    what: str
    row: int | None = None


class PartitionFacts(NamedTuple):
    """What has to be known about a partition to plan the work."""

    n: int
    n_features: int
    nbytes: int
    wrong: Wrong | None = None


def load(X: Any, y: Any, weight: Any, kept: float) -> Rows | Wrong:
    """Return a partition's rows, or what is wrong with them.

    An error would not say where in the table the partition begins.
    """
    if hasattr(X, "toarray"):
        return Wrong("X is sparse here; make its chunks dense arrays")
    try:
        X = np.ascontiguousarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        return Wrong(f"X has entries that are not numbers ({error}); encode or drop them")
    y = None if y is None else np.asarray(y)
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)
    for name, column in (("y", y), ("sample_weight", weight)):
        if column is not None and len(column) != len(X):
            return Wrong(f"X has {len(X)} rows here, but {name} has {len(column)}")
    for name, column in (("X", X), ("y", y), ("sample_weight", weight)):
        bad = _unusable(column)
        if bad.any():
            return Wrong(f"{name} has an entry that is missing or infinite", int(np.argmax(bad)))
    return Rows(y, weight, X, memo=Memo(kept))


def facts_of(rows: Rows | Wrong) -> PartitionFacts:
    """Return what has to be known about a partition."""
    if isinstance(rows, Wrong):
        return PartitionFacts(0, 0, 0, rows)
    n, d = rows.X.shape
    return PartitionFacts(n, d, rows.X.nbytes)


def check_facts(facts: Iterable[PartitionFacts]) -> None:
    """Raise an error that names the first row that is wrong, counted through the whole table."""
    n, widths = 0, set()
    for k, fact in enumerate(facts):
        if fact.wrong is not None:
            what, row = fact.wrong
            where = "" if row is None else f"row {n + row} of the table, row {row} of "
            raise ValueError(f"{what}: {where}partition {k}, both counted from 0.")
        n += fact.n
        widths |= {fact.n_features} if fact.n else set()
    if len(widths) > 1:
        raise ValueError(f"X has partitions of {sorted(widths)} columns; all need the same.")
    if not n:
        raise ValueError("There are no rows: every partition is empty.")


def check_columns(frame: Any) -> None:
    """Raise an error that names the columns of a data frame that hold no numbers."""
    wrong = [str(name) for name, dtype in frame.dtypes.items() if not _is_number(dtype)]
    if wrong:
        raise ValueError(
            f"The columns {wrong} hold no numbers. Encode them first, for example with "
            "dask.dataframe.get_dummies, or drop them."
        )


def _is_number(dtype: Any) -> bool:
    """Whether a column of this type, pandas' own types included, can become float64."""
    kind = getattr(dtype, "kind", "O")
    return kind in "biuf" and not str(dtype).startswith(("category", "interval"))


def _unusable(column: Array) -> Array:
    """Return which rows have an entry that is missing or infinite."""
    if column is None or column.dtype.kind in "biuSU":
        return np.zeros(1, dtype=bool)
    if column.dtype.kind in "fc":
        bad = ~np.isfinite(column)
    else:
        flat = [not isinstance(v, str) and str(v) in _ABSENT for v in column.ravel()]
        bad = np.array(flat, dtype=bool).reshape(column.shape)
    return bad if bad.ndim == 1 else bad.any(axis=1)


def without_columns(X: Any, given: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """Return X without the columns that are given by name, and these columns."""
    names = [name for name in given if isinstance(name, str)]
    if names and not (hasattr(X, "columns") and set(names) <= set(X.columns)):
        raise ValueError(f"Expected a data frame X with the columns {names}.")
    taken = [X[a] if isinstance(a, str) else a for a in given]
    return X.drop(columns=names) if names else X, taken


def table_of(X: Any) -> Any:
    """Return a two-dimensional Dask array, whose columns are in one chunk."""
    if not hasattr(X, "to_delayed"):
        raise ValueError(
            f"Expected a Dask array or data frame for X, got {type(X).__name__}. Make one with "
            "dask.array.from_array(X, chunks=(100_000, -1)), or use the estimator of cavity itself."
        )
    if hasattr(X, "columns"):
        check_columns(X)
        return X.astype(np.float64).to_dask_array()
    if X.ndim != 2:
        raise ValueError(f"Expected X of two dimensions, got {X.ndim}.")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def aligned(X: Any, *columns: Any) -> list[Any]:
    """Return X and columns of targets or weights as arrays in the same chunks."""
    X, arrays = table_of(X), [None if a is None else _array_of(a) for a in columns]
    if any(isinstance(a, np.ndarray) for a in arrays):
        X = _measured(X)
    return [X, *(None if a is None else _aligned(a, X) for a in arrays)]


def partitions(X: Any, *columns: Any) -> list[tuple[Any, ...]]:
    """Return what belongs together of arrays in the same chunks, as delayed objects."""
    parts = [X.to_delayed(optimize_graph=False).ravel()]
    for column in columns:
        if hasattr(column, "to_delayed"):
            parts.append(column.to_delayed(optimize_graph=False).ravel())
        elif column is None:
            parts.append([None] * len(parts[0]))
        else:
            parts.append(np.split(column, np.cumsum(X.chunks[0])[:-1]))
    return list(zip(*parts, strict=True))


def _array_of(column: Any) -> Any:
    """Return targets or weights as a Dask array, or as an array of NumPy."""
    if not hasattr(column, "to_delayed"):
        return np.asarray(column)
    if hasattr(column, "to_dask_array"):
        types = np.atleast_1d(np.asarray(column.dtypes, dtype=object))
        plain = all(isinstance(each, np.dtype) for each in types)
        column = (column if plain else column.astype(object)).to_dask_array()
    return column if column.ndim == 1 else column.rechunk({1: -1})


def _aligned(column: Any, X: Any) -> Any:
    """Return targets or weights in the chunks of X.

    As many chunks of unknown sizes are taken to be the same chunks; workers check it.
    """
    lazy = hasattr(column, "rechunk")
    if lazy:
        unknown = np.isnan(column.shape[0]) or np.isnan(X.shape[0])
        if unknown and column.numblocks[0] == X.numblocks[0]:
            return column
        column = _measured(column)
    X = _measured(X)
    if len(column) != len(X):
        raise ValueError(f"X has {len(X)} rows, but y or sample_weight has {len(column)}.")
    return column.rechunk({0: X.chunks[0]}) if lazy else column


def _measured(array: Any) -> Any:
    """Return the same array with chunks of known sizes."""
    return array.copy().compute_chunk_sizes() if np.isnan(array.shape[0]) else array


class RowsElsewhere:
    """What is left of `DaskBlocks` in a copy that has no cluster.

    Parameters
    ----------
    n_rows, n_features : int
    feature_names : list of str, or None
    """

    def __init__(self, n_rows: int, n_features: int, feature_names: list[str] | None) -> None:
        self.n_rows, self.n_features, self.feature_names = n_rows, n_features, feature_names

    def reduce(self, *_: Any, **__: Any) -> Any:
        """Say that there are no rows."""
        raise RuntimeError(
            "The training rows stayed on the Dask cluster. A model that was pickled or copied "
            "predicts without them; ask the estimator that was fitted for anything else."
        )

    collect = with_targets = reduce

    def drop(self, state: str) -> None:
        """Nothing is kept here."""
