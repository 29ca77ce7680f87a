"""Text in columns, for whatever prints as a table."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

CONTROL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)
"""What a terminal obeys instead of showing it, or what turns the text around it; but line feeds."""
Row = TypeVar("Row")


@dataclass(frozen=True, repr=False)
class RowTable(ABC, Generic[Row]):
    """Rows that are data classes of one kind; prints as a table."""

    rows: tuple[Row, ...]
    header: ClassVar[Sequence[str]]

    @abstractmethod
    def cells(self, row: Row) -> list[Any]:
        """Return a row as it is printed."""

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> Row:
        return self.rows[place]

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame, with the first field as its index."""
        import pandas as pd

        rows: Any = self.rows
        return pd.DataFrame([asdict(row) for row in rows]).set_index(fields(rows[0])[0].name)

    def __repr__(self) -> str:
        return "\n".join(columns(self.header, [self.cells(row) for row in self.rows]))


def columns(header: Sequence[str], lines: Sequence[Sequence[Any]]) -> list[str]:
    """Return right-aligned columns of text, one line for each row.

    Text is printed as it is, floats with four digits, booleans as yes or no.
    """
    rows = [list(map(visible, header)), *([_cell(value) for value in line] for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in rows
    ]


def visible(text: str) -> str:
    r"""Return text whose control characters, except the ends of lines, are written as escapes.

    >>> print(visible("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    return CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def _cell(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else visible(str(value))
