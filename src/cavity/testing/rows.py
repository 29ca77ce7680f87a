"""What has to hold for a place where rows are kept."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.testing import assert_array_equal

from cavity.sites import Rows


def check_rows(make: Callable[[Rows, int], Any]) -> None:
    """Check an engine on seven rows in blocks of three.

    A visit sees every row once, in its place; what it returns for keeping is stored under its name,
    can be the start of another name, and is forgotten when dropped; sums and maxima are right.

    Parameters
    ----------
    make : callable
        Makes the engine from rows and the number of rows in a block.

    Examples
    --------
    >>> from cavity.rows import MemoryBlocks
    >>> from cavity.testing import check_rows
    >>> check_rows(MemoryBlocks)
    """
    y = np.arange(7.0)
    blocks = make(Rows(y, 1.0 + y, y[:, None] ** 2), 3)
    found = blocks.reduce(_visit, 2.0, "a")
    assert found == (2.0 * y.sum(), 6.0, 3), f"the sum of the parts is {found}"
    assert blocks.reduce(_visit, 2.0, "b", "a").new == 0, "a start was not found"
    assert blocks.reduce(_visit, 2.0, "a").new == 0, "a state was not kept"
    rows = list(blocks.collect(_look, None, "a"))
    columns = (np.concatenate(column) for column in zip(*rows, strict=True))
    for got, want in zip(columns, (y, 1.0 + y, y**2, y, y), strict=True):
        assert_array_equal(got, want, err_msg="rows, places or states are out of order")
    blocks.drop("a")
    assert blocks.reduce(_visit, 2.0, "a").new == 3, "a dropped state is still there"


class Seen(NamedTuple):
    """What a block answers: a sum, a maximum, and whether it began anew."""

    total: float
    largest: float
    new: int


def _visit(rows: Rows, kept: Any, shared: float) -> tuple[Any, Seen]:
    return rows.y, Seen(shared * float(rows.y.sum()), float(rows.y.max()), int(kept is None))


def _look(rows: Rows, kept: Any, shared: None) -> tuple[Any, ...]:
    return rows.y, rows.weight, rows.X[:, 0], np.arange(7.0)[rows.place], kept
