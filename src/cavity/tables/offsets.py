"""A column that is added to the latent function instead of being one of its inputs."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from cavity.arrays import Array
from cavity.tables.encoding import numbers_of
from cavity.tables.output import TableError
from cavity.tables.table import StoredTable, Table


@dataclass(frozen=True)
class Offset:
    """The column, and whether it is an exposure, whose logarithm is added."""

    column: str
    is_exposure: bool

    def of(self, column: pl.Series, source: str, first: int = 0) -> Array:
        """Return what is added in each row; the column begins in this row, counted from zero."""
        values = numbers_of(column, source, first)
        return np.log(np.where(values > 0.0, values, np.nan)) if self.is_exposure else values

    def checked(self, added: Array, source: str, rows: Array) -> Array:
        """Return what is added in rows of these numbers; raise an error if one has nothing."""
        wrong = np.flatnonzero(np.isnan(added))
        if len(wrong):
            problem = (
                "is missing" if not self.is_exposure else "an exposure must be a positive number"
            )
            problem = f"{problem}: correct it, or leave the row out."
            raise TableError(source, problem, column=self.column, row=int(rows[wrong[0]]))
        return added

    def of_column(self, table: Table | StoredTable) -> Array:
        """Return what is added in every row of a table; raise an error if a row has nothing."""
        if self.column not in table.schema:
            problem = "the model needs this column, and the table does not have it."
            raise TableError(table.source, problem, column=self.column)
        added = self.of(table.column(self.column), table.source)
        return self.checked(added, table.source, np.arange(len(added)) + 1)

    def of_frame(self, frame: pl.DataFrame, source: str, first: int) -> Array:
        """Return what is added in every row of another table, or a part that begins there."""
        added = self.of(frame[self.column], source, first)
        return self.checked(added, source, np.arange(first, first + len(added)) + 1)

    @property
    def note(self) -> str:
        """What the column does, in a sentence."""
        if self.is_exposure:
            return (
                f"Column '{self.column}' is the exposure: predictions are in proportion to it, and "
                "what is said of the inputs is for an exposure of one."
            )
        return f"Column '{self.column}' is an offset: it is added to the latent function as it is."
