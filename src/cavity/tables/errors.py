"""Errors about a table, a file or a column, in one line."""


class TableError(ValueError):
    """A problem with the data or a file; the message is one line that says where and why.

    >>> print(TableError("a.csv", "'x' is not a number.", column="age", row=3))
    a.csv: column 'age', row 3: 'x' is not a number.
    """

    def __init__(
        self, source: str, problem: str, *, column: str | None = None, row: int | None = None
    ) -> None:
        place = f": column '{column}'" if column is not None else ""
        # The first row below the header is row 1.
        place += f", row {row}" if row is not None else ""
        super().__init__(" ".join(f"{source}{place}: {problem}".split()))


class NoTargetError(TableError):
    """No column to predict was given."""
