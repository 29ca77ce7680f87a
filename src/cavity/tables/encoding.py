"""Columns become standardised inputs, the same way for training rows and for new tables."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from cavity.arrays import Array
from cavity.storage import stored_number, stored_text
from cavity.tables.dates import FARTHEST, PARTS, Moment
from cavity.tables.notation import DATES, Notation
from cavity.tables.output import TableError, near_miss

LARGEST = 1e100
"""Sums of the squares of such numbers are far from overflowing."""


class Role(NamedTuple):
    """How a column is used: as "number", "category" or "date", or not ("dropped"), and why."""

    kind: str
    reason: str = ""


@dataclass(frozen=True)
class Number:
    """A numeric column, in which the training median replaces missing values."""

    name: str
    median: float
    notation: Notation | None = None

    @property
    def feature_names(self) -> list[str]:
        """The column itself."""
        return [self.name]

    def encode(self, column: pl.Series, source: str, first: int = 0) -> Array:
        """Return one column of numbers."""
        values = numbers_of(column, source, first)
        return np.where(np.isnan(values), self.median, values)[:, None]

    def decode(self, raw: Array) -> str:
        """Return a row's value; standardising and undoing it leaves six digits safe."""
        return f"{float(raw[0]):.6g}"

    def values(self, raw: Array, most: int) -> tuple[list[Any], Array]:
        """Return values to try, as people write them and as inputs: all, or an even range."""
        found = np.unique([float(self.decode(row)) for row in raw])
        if len(found) > most:
            found = np.linspace(found[0], found[-1], most)
        return found.tolist(), found[:, None]


@dataclass(frozen=True)
class Category:
    """A column of categories, with a 0/1 input for each level, or a single one for two levels.

    If values are missing in the training rows, None is one of the levels.
    """

    name: str
    levels: tuple[str | None, ...]

    @property
    def feature_names(self) -> list[str]:
        """One name per 0/1 input."""
        return [f"{self.name}={'missing' if x is None else x}" for x in self.levels[self._hidden :]]

    @property
    def _hidden(self) -> int:
        """Of two levels the first has no input."""
        return int(len(self.levels) == 2)

    def encode(self, column: pl.Series, source: str, first: int = 0) -> Array:
        """Return 0/1 columns, with NaN in rows whose level was not in the training rows."""
        text = column.cast(pl.String)
        found = [text.is_null() if x is None else text.eq_missing(x) for x in self.levels]
        is_level = np.column_stack(found)
        encoded = is_level[:, self._hidden :].astype(np.float64)
        encoded[~is_level.any(axis=1)] = np.nan
        return encoded

    def decode(self, raw: Array) -> str:
        """Return a row's level."""
        level = self.levels[int(np.argmax(raw)) + self._hidden if raw.max() > 0.5 else 0]
        return "missing" if level is None else level

    def values(self, raw: Array, most: int) -> tuple[list[Any], Array]:
        """Return the levels, as people write them and as inputs; however many there are."""
        inputs = np.eye(len(self.levels))[:, self._hidden :]
        return [self.decode(row) for row in inputs], inputs


def numbers_of(column: pl.Series, source: str, first: int = 0, largest: float = LARGEST) -> Array:
    """Return a column as floats with NaN where it is missing or infinite; refuse what is neither.

    The column begins in this row of its table, counted from zero. A number beyond the largest is
    refused, too.
    """
    floats = column.cast(pl.Float64, strict=False)
    stray = floats.is_null() & column.is_not_null()
    if stray.any():
        row = stray.arg_true()[0]
        problem = f"'{column[row]}' is not a number."
        raise TableError(source, problem, column=column.name, row=first + row + 1)
    values = floats.to_numpy().astype(np.float64)
    values[~np.isfinite(values)] = np.nan
    beyond = np.flatnonzero(np.abs(values) > largest)
    if len(beyond):
        raise too_large(values[beyond[0]], source, column.name, first + beyond[0] + 1, largest)
    return values


def too_large(
    value: float, source: str, name: str, row: int, largest: float = LARGEST
) -> TableError:
    """Return the error that a number of a table is too large."""
    remedy = "leave the column out with --drop" if largest == LARGEST else "write it in other units"
    problem = (
        f"{value:g} is beyond ±{largest:g}, too large to compute with: correct it, leave it empty, "
        f"or {remedy}."
    )
    return TableError(source, problem, column=name, row=row)


Column = Number | Category | Moment
"""How a column becomes inputs."""


@dataclass(frozen=True)
class Encoder:
    """How columns become inputs of zero mean and unit variance over the training rows."""

    columns: tuple[Column, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]

    @classmethod
    def learn(
        cls,
        frame: pl.DataFrame,
        roles: Mapping[str, Role],
        source: str,
        notations: Mapping[str, Notation] | None = None,
    ) -> "Encoder":
        """Learn from training rows, given the role of each column and how it was written."""
        notations = notations or {}
        columns = tuple(
            learned(frame[name], role, source, notations.get(name))
            for name, role in roles.items()
            if role.kind != "dropped"
        )
        raw = raw_of(columns, frame, source)
        return cls.of(columns, raw.mean(axis=0), raw.std(axis=0))

    @classmethod
    def of(cls, columns: Sequence[Column], mean: Array, scale: Array) -> "Encoder":
        """Return the encoder that standardises by these means and standard deviations."""
        # A constant column becomes zero instead of NaN.
        scale = np.where(scale > 0.0, scale, 1.0)
        return cls(tuple(columns), tuple(mean.tolist()), tuple(scale.tolist()))

    @property
    def feature_names(self) -> list[str]:
        """One name per input."""
        return [name for column in self.columns for name in column.feature_names]

    def check(self, names: Collection[str], source: str) -> None:
        """Raise an error if a column is missing from those of a table."""
        for column in self.columns:
            if column.name not in names:
                near = near_miss(column.name, names) or "."
                problem = f"the model needs this column, and the table does not have it{near}"
                raise TableError(source, problem, column=column.name)

    def transform(self, frame: pl.DataFrame, source: str, first: int = 0) -> Array:
        """Return the inputs of every row; an unknown category is encoded as zeros, the average.

        The frame begins in this row of its table, counted from zero.
        """
        self.check(frame.columns, source)
        X = (raw_of(self.columns, frame, source, first) - self.mean) / self.scale
        return np.nan_to_num(X, copy=False, nan=0.0)

    def decode(self, x: Array) -> dict[str, str]:
        """Return a training row's values by column, with missing ones filled in."""
        parts = np.split(self._unscaled(x), np.cumsum(self._widths)[:-1])
        return {c.name: c.decode(part) for c, part in zip(self.columns, parts, strict=True)}

    @property
    def _widths(self) -> list[int]:
        return [len(column.feature_names) for column in self.columns]

    def _unscaled(self, X: Array) -> Array:
        scale = np.array(self.scale)
        raw = X * scale + np.array(self.mean)
        # Undoing the standardisation turns a zero into rounding error.
        return np.where(np.abs(raw) < 1e-9 * scale, 0.0, raw)

    @property
    def groups(self) -> list[list[int]]:
        """The places of each column's inputs."""
        ends = np.cumsum(self._widths).tolist()
        return [[*range(end - k, end)] for end, k in zip(ends, self._widths, strict=True)]

    def values(self, X: Array, place: int, most: int) -> tuple[list[Any], Array]:
        """Return values of a column to try, at most so many numbers, and their inputs."""
        group = self.groups[place]
        shown, raw = self.columns[place].values(self._unscaled(X)[:, group], most)
        return shown, (raw - np.array(self.mean)[group]) / np.array(self.scale)[group]

    def unseen(self, frame: pl.DataFrame) -> dict[str, int]:
        """Count, for each column, the rows whose category was not in the training rows."""
        categories = [c for c in self.columns if isinstance(c, Category)]
        encoded = {c.name: c.encode(frame[c.name], "")[:, 0] for c in categories}
        counts = {name: int(np.isnan(column).sum()) for name, column in encoded.items()}
        return {name: count for name, count in counts.items() if count}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Encoder":
        """Return the encoder that was stored as a dict of its fields."""
        columns = tuple(map(_column_from_json, stored["columns"]))
        mean, scale = (
            tuple(stored_number(value, float) for value in stored[name])
            for name in ("mean", "scale")
        )
        if min(scale, default=1.0) <= 0.0:
            raise ValueError("a scale of the encoder is not positive")
        encoder = cls(columns, mean, scale)
        if not len(encoder.feature_names) == len(encoder.mean) == len(encoder.scale):
            raise ValueError("the encoder's parts do not fit together")
        return encoder


def learned(column: pl.Series, role: Role, source: str, notation: Notation | None) -> Column:
    """Return how to encode values like these."""
    if role.kind == "category":
        return category_of(column)
    if role.kind == "date":
        return Moment.of(column, notation)
    values = numbers_of(column, source)
    known = values[~np.isnan(values)]
    return Number(column.name, float(np.median(known)) if len(known) else 0.0, notation)


def ways_of(column: Column) -> Sequence[Notation]:
    """Return the notations that the values of a model's column may have in another table."""
    if isinstance(column, Category):
        return ()
    if column.notation is not None:
        return column.notation.alike()
    return DATES if isinstance(column, Moment) else ()


def _column_from_json(c: Mapping[str, Any]) -> Column:
    name, notation = stored_text(c["name"]), Notation.from_json(c.get("notation"))
    if "origin" in c:
        first, middle = (stored_number(c[part], float, FARTHEST) for part in ("origin", "middle"))
        parts = tuple(c["parts"])
        if "days" not in parts or not set(parts) <= set(PARTS) or len(set(parts)) < len(parts):
            raise ValueError("the parts of its dates are unknown")
        return Moment(name, first, middle, parts, notation)
    if "median" in c:
        return Number(name, stored_number(c["median"], float, LARGEST), notation)
    levels = tuple(None if x is None else stored_text(x) for x in c["levels"])
    if not isinstance(c["levels"], list) or not levels or len(set(levels)) < len(levels):
        raise ValueError("the levels of a column are not a list of different ones")
    return Category(name, levels)


def category_of(column: pl.Series) -> Category:
    """Return how to encode categories like these."""
    text = column.cast(pl.String)
    levels: list[str | None] = sorted(text.drop_nulls().unique().to_list())
    return Category(column.name, (*levels, *([None] if text.null_count() else [])))


def raw_of(columns: Sequence[Column], frame: pl.DataFrame, source: str, first: int = 0) -> Array:
    """Return the inputs before they are standardised, with NaN for an unknown category."""
    none = np.empty((frame.height, 0))
    return np.hstack([none, *(c.encode(frame[c.name], source, first) for c in columns)])
