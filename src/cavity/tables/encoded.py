"""The inputs of a large table, encoded in batches whenever they are read."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from cavity.arrays import Array
from cavity.rows import BatchRows
from cavity.tables.encoding import Column, Encoder, Role, category_of, learned, raw_of
from cavity.tables.table import StoredTable, Table, fits_in_memory


class EncodedRows:
    """Chosen rows of a table as inputs and targets; each call reads them again in batches.

    Parameters
    ----------
    table : StoredTable
    encoder : Encoder
    chosen : array of int
        Numbers of the rows, counted from zero and increasing.
    y : array
        The target of each.
    """

    def __init__(self, table: StoredTable, encoder: Encoder, chosen: Array, y: Array) -> None:
        self._table, self._encoder, self._chosen, self._y = table, encoder, chosen, y

    def __call__(self) -> Iterator[tuple[Array, Array]]:
        """Yield inputs and targets in batches."""
        names = [column.name for column in self._encoder.columns]
        done = 0
        for frame in chosen_rows(self._table, names, self._chosen, ""):
            X = self._encoder.transform(frame, self._table.source)
            yield X, self._y[done : done + len(X)]
            done += len(X)

    def __len__(self) -> int:
        return len(self._chosen)

    def at(self, places: Array) -> Array:
        """Return the inputs of a few of the rows, given their places among those chosen."""
        few, order = np.unique(places, return_inverse=True)
        some = EncodedRows(self._table, self._encoder, self._chosen[few], self._y[few])
        return some.whole()[order]

    def whole(self) -> Array:
        """Return all inputs at once."""
        none = np.empty((0, len(self._encoder.feature_names)))
        return np.concatenate([none, *(X for X, _ in self())])


def chosen_rows(
    table: Table | StoredTable, names: list[str], chosen: Array, doing: str
) -> Iterator[pl.DataFrame]:
    """Yield some columns of some rows, whose numbers increase, in batches."""
    first = begin = 0
    for frame in table.batches(names, doing):
        end = int(np.searchsorted(chosen, first + frame.height))
        if end - begin == frame.height:
            yield frame
        elif end > begin:
            yield frame[chosen[begin:end] - first]
        first, begin = first + frame.height, end
        if end == len(chosen):
            return


def learn_encoder(table: StoredTable, roles: Mapping[str, Role], chosen: Array) -> Encoder:
    """Learn how to encode from the training rows, as `Encoder.learn` does."""
    used = {name: role for name, role in roles.items() if role.kind != "dropped"}
    columns = tuple(_learned(table, name, role, chosen) for name, role in used.items())
    n, mean, square = 0, np.zeros(()), np.zeros(())
    for frame in chosen_rows(table, list(used), chosen, "standardising the inputs"):
        raw = raw_of(columns, frame, table.source)
        own = raw.mean(axis=0)
        share = len(raw) / (n + len(raw))
        # Chan, Golub and LeVeque (1983): the moments of two parts make those of both.
        square = square + ((raw - own) ** 2).sum(axis=0) + n * share * (own - mean) ** 2
        mean, n = mean + share * (own - mean), n + len(raw)
    return Encoder.of(columns, mean, np.sqrt(square / n))


def _learned(table: StoredTable, name: str, role: Role, chosen: Array) -> Column:
    """Return how a column is encoded; it is read as a whole, because a median needs all of it."""
    parts = chosen_rows(table, [name], chosen, f"reading column {name}")
    if role.kind == "category":
        # Of categories, the different ones are enough.
        return category_of(pl.concat([part[name].cast(pl.String).unique() for part in parts]))
    column = pl.concat(part[name] for part in parts)
    return learned(column, role, table.source, table.notations.get(name))


class Inputs(NamedTuple):
    """The inputs of training and test rows, and how they were made."""

    encoder: Encoder
    X: Any
    X_test: Array
    stored: EncodedRows | None = None


Targets = tuple[Array, Array]
"""Numbers of rows, counted from zero, and the target of each."""


def encoded(table: Table, roles: Mapping[str, Role], train: Targets, test: Targets) -> Inputs:
    """Return the inputs of a table in memory."""
    frame, held_out = table.frame[train[0]], table.frame[test[0]]
    encoder = Encoder.learn(frame, roles, table.source, table.notations)
    X, X_test = (encoder.transform(part, table.source) for part in (frame, held_out))
    return Inputs(encoder, X, X_test)


def encoded_in_batches(
    table: StoredTable, roles: Mapping[str, Role], train: Targets, test: Targets
) -> Inputs:
    """Return the inputs of a large table, which are read in batches if they are many."""
    encoder = learn_encoder(table, roles, train[0])
    stored, held_out = (EncodedRows(table, encoder, *part) for part in (train, test))
    X_test = held_out.whole() if len(held_out) else np.empty((0, len(encoder.feature_names)))
    if fits_in_memory(8 * len(stored) * len(encoder.feature_names)):
        return Inputs(encoder, stored.whole(), X_test)
    X = BatchRows(stored, progress=table.progress.passing)
    return Inputs(encoder, X, X_test, stored)
