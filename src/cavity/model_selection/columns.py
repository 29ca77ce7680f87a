"""Text in columns, for whatever prints as a table."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def columns(
    header: Sequence[str], lines: Sequence[Sequence[Any]], number: str = ".4g"
) -> list[str]:
    r"""Return right-aligned columns of text, a line of it for each row.

    Parameters
    ----------
    header : sequence of str
    lines : sequence of sequences
        Texts as they are, floats in the given format, whether something holds as yes or no.
    number : str
        Format of a float.

    Examples
    --------
    >>> from cavity.model_selection.columns import columns
    >>> print("\n".join(columns(["a", "bb"], [["1", 2.0], ["10", True]])))
     a   bb
     1    2
    10  yes
    """
    rows = [header, *([_cell(value, number) for value in line] for line in lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in rows
    ]


def _cell(value: Any, number: str) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return format(value, number) if isinstance(value, float) else str(value)
