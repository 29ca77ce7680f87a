"""Dates as inputs: year, month, weekday and elapsed days."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from cavity.arrays import Array
from cavity.tables.notation import Notation

_DAY = 86_400e6
"""Microseconds."""
FARTHEST = 1e8
"""Days from 1970 that dates with microseconds reach, in either direction."""
PARTS = ("year", "month", "weekday", "days")


@dataclass(frozen=True)
class Moment:
    """A column of dates, in which the training median replaces missing ones.

    ``origin`` is the earliest date of the training rows, in days since 1970; ``middle`` their
    median, in days since the origin. Of year, month (1 to 12), weekday (Monday is 1) and days since
    the origin, ``parts`` are those that vary.
    """

    name: str
    origin: float
    middle: float
    parts: tuple[str, ...]
    notation: Notation | None = None

    @classmethod
    def of(cls, column: pl.Series, notation: Notation | None) -> "Moment":
        """Return how to encode dates like these."""
        days = _days(column)
        known = days[~np.isnan(days)]
        if not len(known):
            return cls(column.name, 0.0, 0.0, ("days",), notation)
        origin = float(known.min())
        parts = {part: np.ptp(values) > 0.0 for part, values in _parts(known, origin).items()}
        varying = tuple(part for part in PARTS if parts[part] or part == "days")
        return cls(column.name, origin, float(np.median(known)) - origin, varying, notation)

    @property
    def feature_names(self) -> list[str]:
        """One name for each part."""
        return [f"{self.name} ({part})" for part in self.parts]

    def encode(self, column: pl.Series, source: str, first: int = 0) -> Array:
        """Return a column of numbers for each part."""
        days = _days(column)
        return self._inputs(np.where(np.isnan(days), self.origin + self.middle, days))

    def _inputs(self, days: Array) -> Array:
        found = _parts(days, self.origin)
        return np.column_stack([found[part] for part in self.parts])

    def decode(self, raw: Array) -> str:
        """Return a row's date, with its time unless that is midnight."""
        minutes = round((self.origin + float(raw[self.parts.index("days")])) * 1440.0)
        return _written(minutes)

    def values(self, raw: Array, most: int) -> tuple[list[Any], Array]:
        """Return dates to try, as people write them and as inputs: all, or an even range."""
        days = np.unique(np.round(raw[:, self.parts.index("days")], 6))
        if len(days) > most:
            days = np.unique(np.round(np.linspace(days[0], days[-1], most)))
        shown = [_written(round(day * 1440.0)) for day in self.origin + days]
        return shown, self._inputs(self.origin + days)

    def note(self) -> str:
        """Return what became of the dates, in a sentence."""
        parts: Sequence[str] = [part for part in self.parts if part != "days"]
        written = f" (read as {self.notation.words()})" if self.notation else ""
        became = ", ".join([*parts, f"days since {_written(round(self.origin * 1440.0))}"])
        return f"Column '{self.name}': dates{written} became {became}."


def _days(column: pl.Series) -> Array:
    """Return days since 1970, NaN where a date is missing."""
    if not column.dtype.is_temporal():
        # A column without any value has no type of its own.
        return np.full(len(column), np.nan)
    epoch = column.cast(pl.Datetime("us")).dt.epoch("us")
    return np.asarray(epoch.cast(pl.Float64).fill_null(np.nan).to_numpy() / _DAY)


def _parts(days: Array, origin: float) -> dict[str, Array]:
    whole = np.floor(days).astype("datetime64[D]")
    return {
        "year": whole.astype("datetime64[Y]").astype(float) + 1970.0,
        "month": whole.astype("datetime64[M]").astype(int) % 12 + 1.0,
        # 1970 began on a Thursday.
        "weekday": (whole.astype(int) + 3) % 7 + 1.0,
        "days": days - origin,
    }


def _written(minutes: int) -> str:
    text = str(np.datetime64(minutes, "m")).replace("T", " ")
    return text.removesuffix(" 00:00")
