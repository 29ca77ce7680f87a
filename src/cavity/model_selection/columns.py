"""Text in columns, for whatever prints as a table."""

from collections.abc import Sequence

__all__ = ["columns"]


def columns(header: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    r"""Return right-aligned columns of text, a line of it for each row.

    Examples
    --------
    >>> from cavity.model_selection.columns import columns
    >>> print("\n".join(columns(["a", "bb"], [["1", "2"], ["10", "20"]])))
     a  bb
     1   2
    10  20
    """
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in [header, *lines]
    ]
