"""The data door: a table and a target become arrays, with a plain sentence about each decision."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from cavity.arrays import Array
from cavity.tables.columns import Role, role_of
from cavity.tables.encoding import Encoder
from cavity.tables.errors import TableError
from cavity.tables.read import Table
from cavity.tables.rows import MOST_TEST_ROWS, Chosen, choose_rows
from cavity.tables.target import Labels, find_target, labels_of

__all__ = ["MAX_ROWS", "Prepared", "prepare"]

MAX_ROWS = 2000
"""A dense fit takes time in proportion to the cube of its rows: beyond this, minutes."""


@dataclass(frozen=True)
class Prepared:
    """A table, ready to fit.

    Attributes
    ----------
    X : array of shape (n, d)
        Standardised inputs of the training rows.
    y : array of shape (n,)
        Class codes, entry k of ``classes`` being code k; the target itself in regression.
    rows : array of int of shape (n,)
        Where the training rows stand in the table, the first row being 1.
    X_test, y_test, test_rows
        The same for the held-out rows; empty if there are none.
    task : {"classification", "regression"}
    target : str
    classes : tuple
        The target's values as the table has them, sorted; empty in regression.
    feature_names : list of str
    encoder : Encoder
        Encodes any other table in the same way.
    notes : list of str
        A sentence for each thing that was decided about the data.
    counts : dict of str to int
        Rows, columns and missing values: read, used, dropped.
    source : str
    """

    X: Array
    y: Array
    rows: Array
    X_test: Array
    y_test: Array
    test_rows: Array
    task: str
    target: str
    classes: tuple[Any, ...]
    feature_names: list[str]
    encoder: Encoder
    notes: list[str]
    counts: dict[str, int]
    source: str


def prepare(
    table: Table,
    target: str | None = None,
    task: str | None = None,
    *,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    max_rows: int = MAX_ROWS,
    test_size: float = 0.0,
    seed: int = 0,
) -> Prepared:
    """Turn a table into inputs and targets.

    Parameters
    ----------
    table : Table
    target : str, optional
        The column to predict; a shipped data set knows its own.
    task : {"classification", "regression"}, optional
        By default regression if the target is numeric and has a fractional value or more than
        20 different ones, else classification.
    drop, keep : sequences of str
        Columns not to use, and columns to use although a rule would drop them.
    max_rows : int
        The most training rows; of a larger table they are drawn at random, classes in
        proportion, and the other rows are held out.
    test_size : float
        Share (or, from one on, number) of rows to hold out.
    seed : int

    Returns
    -------
    Prepared

    Raises
    ------
    TableError

    Examples
    --------
    >>> from cavity.tables.prepare import prepare
    >>> from cavity.tables.read import read_table
    >>> data = prepare(read_table("crabs"))
    >>> data.X.shape, data.classes, data.task
    ((200, 6), ('F', 'M'), 'classification')
    """
    target = find_target(table, target, (*drop, *keep))
    known, y, classes, task = labels = labels_of(table, target, task)
    roles = _roles(table.frame.drop(target), table, drop, keep)
    kinds = {name: role.kind for name, role in roles.items() if role.kind != "dropped"}
    _refuse_no_input(kinds, roles, table.source)
    chosen = _chosen(table, labels, max_rows, test_size, seed)
    frame, numbers = table.frame.filter(known), np.flatnonzero(known) + 1
    encoder = Encoder.learn(frame[chosen.train], kinds, table.source)
    counts = _counts(table, frame, chosen, encoder, kinds)
    return Prepared(
        X=encoder.transform(frame[chosen.train], table.source),
        y=y[chosen.train],
        rows=numbers[chosen.train],
        X_test=encoder.transform(frame[chosen.test], table.source),
        y_test=y[chosen.test],
        test_rows=numbers[chosen.test],
        task=task,
        target=target,
        classes=classes,
        feature_names=encoder.feature_names,
        encoder=encoder,
        notes=_notes_on_columns(frame, roles, counts, target)
        + _notes_on_rows(frame.height, chosen, seed),
        counts=counts,
        source=table.source,
    )


def _chosen(table: Table, labels: Labels, max_rows: int, test_size: float, seed: int) -> Chosen:
    held_out = None if table.held_out is None else table.held_out[labels.known]
    try:
        return choose_rows(
            labels.strata, max_rows=max_rows, test_size=test_size, held_out=held_out, seed=seed
        )
    except ValueError as error:
        raise TableError(table.source, str(error)) from error


def _roles(
    frame: pl.DataFrame, table: Table, drop: Sequence[str], keep: Sequence[str]
) -> dict[str, Role]:
    known = {name: Role("dropped", "you asked for it") for name in drop}
    known |= {
        name: Role("dropped", "this data set does not use it")
        for name in table.drop
        if name not in keep
    }
    return {
        column.name: known.get(column.name) or role_of(column, table.source, column.name in keep)
        for column in frame
    }


def _refuse_no_input(kinds: dict[str, str], roles: dict[str, Role], source: str) -> None:
    if kinds:
        return
    reasons = "; ".join(f"{name}: {role.reason}" for name, role in list(roles.items())[:4])
    raise TableError(source, f"no column is left as an input ({reasons or 'there is no other'}).")


def _counts(
    table: Table, frame: pl.DataFrame, chosen: Chosen, encoder: Encoder, kinds: dict[str, str]
) -> dict[str, int]:
    return {
        "rows": table.frame.height,
        "rows_without_target": table.frame.height - frame.height,
        "rows_trained_on": len(chosen.train),
        "rows_held_out": len(chosen.test),
        "columns": table.frame.width,
        "columns_used": len(kinds),
        "inputs": len(encoder.feature_names),
        "missing_values": sum(_missing(frame[name]) for name in kinds),
    }


def _missing(column: pl.Series) -> int:
    infinite = int((~column.is_finite()).sum()) if column.dtype.is_float() else 0
    return column.null_count() + infinite


def _notes_on_columns(
    frame: pl.DataFrame, roles: dict[str, Role], counts: dict[str, int], target: str
) -> list[str]:
    lost = counts["rows_without_target"]
    return [
        *([f"{_rows(lost)} without a value of '{target}' left out."] if lost else []),
        *(
            f"Column '{name}' is not used: {role.reason}."
            for name, role in roles.items()
            if role.kind == "dropped"
        ),
        *(
            _about_missing(frame[name], role.kind)
            for name, role in roles.items()
            if role.kind != "dropped" and _missing(frame[name])
        ),
    ]


def _notes_on_rows(n: int, chosen: Chosen, seed: int) -> list[str]:
    held_out = len(chosen.test)
    if not chosen.drawn:
        return [f"{_rows(held_out)} held out to test the model."] if held_out else []
    return [
        f"The table has {_rows(n)}, more than a dense fit takes: {len(chosen.train):,} were drawn "
        f"at random (seed {seed}, classes in proportion) to learn from, and {held_out:,} others "
        f"(at most {MOST_TEST_ROWS:,}) test the model."
    ]


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _about_missing(column: pl.Series, kind: str) -> str:
    put = "the median of the training rows" if kind == "number" else "a category of their own"
    return f"Column '{column.name}': {_missing(column):,} missing values became {put}."
