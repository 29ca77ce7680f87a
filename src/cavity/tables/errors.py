"""Errors about a table, a file or a column, in one line."""


class TableError(ValueError):
    """A problem with the data or a file; the message is one line that says where and why.

    Parameters
    ----------
    source : str
        The file or data set.
    problem : str
        What is wrong, and what to do about it.
    column : str, optional
    row : int, optional
        Row of the table, the first below the header being 1.

    Examples
    --------
    >>> from cavity.tables.errors import TableError
    >>> print(TableError("a.csv", "'x' is not a number.", column="age", row=3))
    a.csv: column 'age', row 3: 'x' is not a number.
    """

    def __init__(
        self, source: str, problem: str, *, column: str | None = None, row: int | None = None
    ) -> None:
        place = [f"column '{column}'"] if column is not None else []
        place += [f"row {row}"] if row is not None else []
        parts = [source, ", ".join(place), problem] if place else [source, problem]
        super().__init__(" ".join(": ".join(parts).split()))


class NoTargetError(TableError):
    """No column to predict was given."""
