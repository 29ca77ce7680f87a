"""From Arrow's tables to arrays: which columns, of which type, and in which file."""

import contextlib
import importlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cavity.rows.batch import ENCODE, Batch

_BUFFER = 2**20
"""Bytes of a column that are read at a time."""
_SHOWN = 20
"""Column names that an error message lists."""


def pyarrow(module: str) -> Any:
    """Return a module of pyarrow, which is installed with an extra."""
    try:
        return importlib.import_module(f"pyarrow{module}")
    except ImportError as error:
        raise ImportError(
            'Reading Parquet files needs pyarrow: pip install "cavity[arrow]".'
        ) from error


class Columns(NamedTuple):
    """Which columns of a table are what."""

    features: tuple[str, ...]
    targets: tuple[str, ...]
    single: bool
    """Whether y has one dimension."""
    weight: str | None

    @classmethod
    def of(cls, schema: Any, target: Any, features: Any, weight: str | None) -> "Columns":
        """Return the columns that were asked for, checked; by default all others are features."""
        if isinstance(features, str):
            features = [features]
        targets = () if target is None else (target,) if isinstance(target, str) else tuple(target)
        others = {*targets, weight}
        chosen = tuple(c for c in schema.names if c not in others) if features is None else features
        for name in (*chosen, *targets, *(() if weight is None else (weight,))):
            _check_known(schema, name)
        if twice := others & set(chosen):
            raise ValueError(
                f"Column {twice.pop()!r} is target or weight and cannot be a feature as well."
            )
        if not chosen:
            raise ValueError("The table has no columns that could be features.")
        return cls(tuple(chosen), targets, target is None or isinstance(target, str), weight)

    def with_target(self, schema: Any, name: str | None) -> "Columns":
        """Return the same columns with another target, which is no feature."""
        if name is None:
            return self._replace(targets=(), single=True)
        features = tuple(c for c in self.features if c != name)
        return Columns.of(schema, name, features, self.weight)

    @property
    def all(self) -> list[str]:
        """Every column that is read."""
        return list(dict.fromkeys([*self.features, *self.targets, self.weight or self.features[0]]))


def _check_known(schema: Any, name: str) -> None:
    if name not in schema.names:
        more = ", …" if len(schema.names) > _SHOWN else ""
        names = ", ".join(map(repr, schema.names[:_SHOWN])) + more
        raise ValueError(f"The table has no column {name!r}. It has {names}.")


class Piece(NamedTuple):
    """A file of a dataset."""

    name: str
    schema: Any
    batches: Callable[[list[str], int], Iterator[Any]]
    """From the names of columns and the largest number of rows to Arrow's batches."""


def pieces(data: Any) -> Iterator[Piece]:
    """Yield the files of a dataset in order."""
    try:
        fragments = list(data.get_fragments())
    except ValueError:
        # A filtered dataset does not tell its files.
        yield Piece("the dataset", data.schema, partial(_scan, data, None))
        return
    dataset = pyarrow(".dataset")
    for k, fragment in enumerate(fragments):
        name = getattr(fragment, "path", None) or f"part {k}"
        with reading(name):
            schema = fragment.physical_schema
        keys = dataset.get_partition_keys(fragment.partition_expression)
        for key in (key for key in keys if key not in schema.names):
            schema = schema.append(data.schema.field(key))
        if isinstance(fragment, dataset.ParquetFileFragment):
            yield Piece(name, schema, partial(_parquet, fragment, keys))
        else:
            yield Piece(name, schema, partial(_scan, fragment, schema))


def _scan(source: Any, schema: Any, columns: list[str], size: int) -> Iterator[Any]:
    options: dict[str, Any] = {"batch_readahead": 1, "fragment_readahead": 1}
    if schema is not None:
        options["schema"] = pyarrow("").schema([schema.field(name) for name in columns])
    return iter(source.to_batches(columns=columns, batch_size=size, **options))


def _parquet(fragment: Any, keys: dict[str, Any], columns: list[str], size: int) -> Iterator[Any]:
    # Of 4 million rows a scan of the fragment holds 510 MB at once and takes three times as long.
    parquet, repeat = pyarrow(".parquet"), pyarrow("").repeat
    groups = [group.id for group in fragment.row_groups]
    with fragment.open() as file:
        opened = parquet.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
        stored = [name for name in columns if name in opened.schema_arrow.names]
        options = {"batch_size": size, "row_groups": groups, "use_threads": False}
        for batch in opened.iter_batches(columns=stored, **options):
            # What the names of folders say is not in the file.
            for name in (name for name in columns if name not in stored):
                batch = batch.append_column(name, repeat(keys[name], batch.num_rows))
            yield batch


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn Arrow's errors into one that names the file."""
    try:
        yield
    except (pyarrow("").ArrowException, OSError) as error:
        # Arrow explains in several lines.
        raise ValueError(f"{name} cannot be read: {' '.join(str(error).split())}") from error


def check_pieces(data: Any, columns: Columns) -> None:
    """Check that every file has the columns, and that they are of one type throughout."""
    first: dict[str, tuple[str, Any, str]] = {}
    for piece in pieces(data):
        for name in columns.all:
            if name not in piece.schema.names:
                raise ValueError(f"{piece.name} has no column {name!r}, which other files have.")
            kind, of_type = _kind(piece.schema.field(name).type), piece.schema.field(name).type
            if name not in columns.targets and kind not in ("number", "boolean", "null"):
                raise ValueError(
                    f"Column {name!r} of {piece.name} is {of_type}, not a number. {ENCODE} Or leave"
                    " it out: features= takes the names of the columns to use."
                )
            before = first.setdefault(name, (kind, of_type, piece.name))
            if name in columns.targets and kind != before[0]:
                raise ValueError(
                    f"Column {name!r} is {of_type} in {piece.name} and {before[1]} in {before[2]}."
                )


def _kind(of_type: Any) -> str:
    types = pyarrow("").types
    if types.is_integer(of_type) or types.is_floating(of_type) or types.is_decimal(of_type):
        return "number"
    if types.is_dictionary(of_type):
        return "category" if _kind(of_type.value_type) != "text" else "text"
    if types.is_string(of_type) or types.is_large_string(of_type):
        return "text"
    if types.is_boolean(of_type):
        return "boolean"
    return str(of_type)


def scanned(piece: Piece, columns: Columns, size: int) -> Iterator[Batch]:
    """Yield the rows of a file in batches of at most this size."""
    batches, first = piece.batches(columns.all, size), 0
    while True:
        with reading(piece.name):
            found = next(batches, None)
            if found is None:
                return
            batch = _batch_of(found, columns, piece.name, first)
        first += batch.n
        yield batch


def _batch_of(found: Any, columns: Columns, source: str, first: int) -> Batch:
    X = np.empty((found.num_rows, len(columns.features)))
    for j, name in enumerate(columns.features):
        X[:, j] = _numbers(found.column(name))
    y = [_target(found.column(name)) for name in columns.targets]
    target = None if not y else y[0] if columns.single else np.stack(y, axis=1)
    weight = np.ones(found.num_rows)
    if columns.weight is not None:
        weight = _numbers(found.column(columns.weight))
    return Batch(X, target, weight, source, first)


def _numbers(column: Any) -> Any:
    """Return a column as float64, NaN where there is nothing."""
    double = pyarrow("").float64()
    if column.type != double:
        column = column.cast(double, safe=False)
    return column.to_numpy(zero_copy_only=False)


def _target(column: Any) -> Any:
    """Return a column of any type, text as objects, of which equal ones are the same."""
    types = pyarrow("").types
    if _kind(column.type) == "text" and not types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if types.is_decimal(column.type):
        return _numbers(column)
    if not types.is_dictionary(column.type):
        return column.to_numpy(zero_copy_only=False)
    values = np.array([*column.dictionary.to_pylist(), None], dtype=object)
    return values[column.indices.fill_null(len(values) - 1).to_numpy()]
