"""A table and a target become arrays, with a note about each decision."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.tables.columns import Labels, labels_of, role_of
from cavity.tables.dates import Moment
from cavity.tables.encoded import EncodedRows, Inputs, chosen_rows, encoded, encoded_in_batches
from cavity.tables.encoding import Encoder, Number, Role
from cavity.tables.facts import facts_of
from cavity.tables.notation import Notation
from cavity.tables.offsets import Offset
from cavity.tables.output import TableError
from cavity.tables.table import StoredTable, Table, faster

FEWEST_ROWS = 5
MOST_TEST_ROWS = 10_000
"""Scoring more held-out rows would take minutes and hardly change the scores."""


class Chosen(NamedTuple):
    """Row numbers, counted from zero, in table order."""

    train: Array
    test: Array
    drawn: bool
    """Whether the training rows are a random part of those available."""


def choose_rows(
    strata: Array,
    *,
    max_rows: int,
    test_size: float = 0.0,
    held_out: Array | None = None,
    seed: int = 0,
) -> Chosen:
    """Split rows into at most ``max_rows`` training rows and others, which are held out.

    The strata are groups that keep their shares: the classes, or all zeros. Each gets at least one
    training row. ``test_size`` is the share of the rows to hold out, or their number if it is one
    or more; if it is zero, a split that comes with the data is used.
    """
    rng = np.random.default_rng(seed)
    n = len(strata)
    pool = np.arange(n)
    if held_out is not None and not test_size:
        pool = np.flatnonzero(~held_out)
    count = test_size * n if test_size < 1 else test_size
    size = min(max_rows, len(pool) - round(count))
    if size < FEWEST_ROWS:
        raise ValueError(
            f"{len(pool)} rows are too few if {count:g} are held out: at least {FEWEST_ROWS} are "
            "needed for training."
        )
    train = pool[_draw(strata[pool], size, rng)] if size < len(pool) else pool
    test = np.setdiff1d(np.arange(n), train, assume_unique=True)
    if len(test) > MOST_TEST_ROWS:
        test = np.sort(rng.choice(test, MOST_TEST_ROWS, replace=False))
    return Chosen(train, test, size == max_rows < len(pool))


def _draw(strata: Array, size: int, rng: np.random.Generator) -> Array:
    """Draw rows without replacement, from each stratum in proportion (largest remainders)."""
    groups = [np.flatnonzero(strata == s) for s in np.unique(strata)]
    counts = np.array([len(group) for group in groups])
    share = counts * size / counts.sum()
    quota = np.maximum(np.floor(share).astype(int), 1)
    for k in np.argsort(quota - share, kind="stable"):
        quota[k] += int(quota.sum() < size and quota[k] < counts[k])
    drawn = [rng.choice(g, q, replace=False) for g, q in zip(groups, quota, strict=True)]
    return np.sort(np.concatenate(drawn))


@dataclass(frozen=True)
class Prepared:
    """A table, ready to fit.

    X are the standardised inputs of the training rows: an array or, of a large table,
    `cavity.rows.BatchRows`. y are their class codes, where code k means
    ``classes[k]``; in regression, which has no classes, y is the target itself. Row numbers are
    the table's, counted from 1. There may be no test rows. The encoder encodes any other table in
    the same way; notes have a sentence for each decision about the data. ``stored`` reads the
    inputs of a large table. ``offset`` is what is added to the latent function in each training
    row, ``offset_test`` in each test row, and ``offset_from`` the column that they come from.
    ``unused`` has the reason for each column that is not used, ``notation`` how the target's values
    were written, if not plainly.
    """

    X: Any
    y: Array
    rows: Array
    X_test: Array
    y_test: Array
    test_rows: Array
    task: str
    target: str
    classes: tuple[Any, ...]
    encoder: Encoder
    notes: list[str]
    counts: dict[str, int]
    source: str
    stored: EncodedRows | None = None
    offset: Array | None = None
    offset_test: Array | None = None
    offset_from: Offset | None = None
    unused: Mapping[str, str] = field(default_factory=dict)
    notation: Notation | None = None

    @property
    def feature_names(self) -> list[str]:
        """One name per input."""
        return self.encoder.feature_names

    @property
    def n_features(self) -> int:
        """The number of inputs."""
        return len(self.feature_names)

    def inputs_at(self, places: Array) -> Array:
        """Return the inputs of a few training rows."""
        return self.X[places] if self.stored is None else self.stored.at(places)

    def sample(self, size: int, seed: int) -> "Prepared":
        """Return the same with at most so many training rows in memory, drawn at random."""
        if len(self.y) <= size and self.stored is None:
            return self
        strata = self.y if self.classes else np.zeros(len(self.y), dtype=np.int64)
        places = _draw(strata, min(size, len(self.y)), np.random.default_rng(seed))
        parts = {"y": self.y[places], "rows": self.rows[places]}
        parts["offset"] = None if self.offset is None else self.offset[places]
        return replace(self, X=self.inputs_at(places), stored=None, **parts)


def prepare(
    table: Table | StoredTable,
    target: str | None = None,
    task: str | None = None,
    *,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    max_rows: int | None = None,
    test_size: float = 0.0,
    seed: int = 0,
    order: Sequence[str] = (),
    offset: Offset | None = None,
) -> Prepared:
    """Turn a table into inputs and targets.

    A shipped data set has a default target and task; else `decided` in task.py gives the task.
    ``order`` has the classes of the task "ordinal", the lowest first; numbers have their own. The
    columns in ``drop`` are left out; those in ``keep`` are used although a rule would drop them.
    If there are more than ``max_rows`` rows, the training rows are drawn at random, classes in
    proportion, and the others are held out. ``test_size`` is the share of the rows to hold out,
    or their number if it is one or more.
    """
    table, offset = faster(table), offset or _own_exposure(table, target)
    labels = labels_of(table, target, task, (*drop, *keep, *_columns(offset)), order)
    roles = _roles(table, [labels.target, *_columns(offset)], drop, keep)
    chosen = _chosen(table, labels, max_rows, test_size, seed)
    parts = [(labels.rows[part], labels.y[part]) for part in chosen[:2]]
    made = _encoded(table, roles, *((rows - 1, y) for rows, y in parts))
    missing = _missing(table, made.encoder, labels.rows - 1)
    notes = _notes(table, labels, offset, roles, missing, made.encoder)
    return Prepared(
        *(made.X, *parts[0][::-1], made.X_test, *parts[1][::-1]),
        *(labels.task, labels.target, labels.classes, made.encoder),
        notes + _row_notes(labels, chosen, seed),
        _counts(table, labels, chosen, made.encoder, missing),
        *(table.source, made.stored),
        unused=_unused(roles),
        **_beside(table, offset, labels, chosen, made),
    )


def _unused(roles: dict[str, Role]) -> dict[str, str]:
    return {name: role.reason for name, role in roles.items() if role.kind == "dropped"}


def _encoded(table: Table | StoredTable, roles: dict[str, Role], *parts: Any) -> Inputs:
    encode: Any = encoded if isinstance(table, Table) else encoded_in_batches
    return encode(table, roles, *parts)  # type: ignore[no-any-return]


def _columns(offset: Offset | None) -> list[str]:
    return [] if offset is None else [offset.column]


def _own_exposure(table: Table | StoredTable, target: str | None) -> Offset | None:
    """Return the exposure that a data set comes with, if its own target is predicted."""
    own = table.exposure if target in (None, table.target) else None
    return None if own is None else Offset(own, is_exposure=True)


def _notes(
    table: Table | StoredTable,
    labels: Labels,
    offset: Offset | None,
    roles: dict[str, Role],
    missing: dict[str, int],
    encoder: Encoder,
) -> list[str]:
    """Return the notes about how the table was read, the task, the offset and the columns."""
    said = [labels.note, "" if offset is None else offset.note]
    columns = _notation_notes(table, labels.target, encoder)
    columns += _column_notes(table, labels, roles, missing)
    return [*table.remarks, *(note for note in said if note), *columns]


def _beside(
    table: Table | StoredTable,
    offset: Offset | None,
    labels: Labels,
    chosen: Chosen,
    inputs: Inputs,
) -> dict[str, Any]:
    """Return the notation of the target, what is added in each row, and where it comes from."""
    notation = {"notation": table.notations.get(labels.target)}
    if offset is None:
        return notation
    if not isinstance(inputs.X, np.ndarray):
        problem = "an offset or exposure needs inputs in memory: sample the table with --rows."
        raise TableError(table.source, problem, column=offset.column)
    added = offset.of(table.column(offset.column), table.source)
    rows = [labels.rows[part] for part in chosen[:2]]
    parts = [offset.checked(added[some - 1], table.source, some) for some in rows]
    return notation | {"offset": parts[0], "offset_test": parts[1], "offset_from": offset}


def _chosen(
    table: Table | StoredTable, labels: Labels, max_rows: int | None, test_size: float, seed: int
) -> Chosen:
    strata = labels.y if labels.classes else np.zeros(len(labels.y), dtype=np.int64)
    held_out = None if table.held_out is None else table.held_out[labels.rows - 1]
    try:
        return choose_rows(
            strata,
            max_rows=max_rows or len(strata),
            test_size=test_size,
            held_out=held_out,
            seed=seed,
        )
    except ValueError as error:
        raise TableError(table.source, str(error)) from error


def _roles(
    table: Table | StoredTable, apart: Sequence[str], drop: Sequence[str], keep: Sequence[str]
) -> dict[str, Role]:
    known = {name: Role("dropped", "this data set does not use it") for name in table.drop}
    known = {name: role for name, role in known.items() if name not in keep}
    known |= {name: Role("dropped", "it was left out on request") for name in drop}
    others = [name for name in table.schema if name not in apart]
    facts = facts_of(table, [name for name in others if name not in known])
    roles = {name: known.get(name) or role_of(facts[name], table, name in keep) for name in others}
    if all(role.kind == "dropped" for role in roles.values()):
        reasons = "; ".join(f"{name}: {role.reason}" for name, role in list(roles.items())[:4])
        why = reasons or "there is no other column"
        raise TableError(table.source, f"no column is left as an input ({why}).")
    return roles


def _counts(
    table: Table | StoredTable,
    labels: Labels,
    chosen: Chosen,
    encoder: Encoder,
    missing: dict[str, int],
) -> dict[str, int]:
    return {
        "rows": table.height,
        "rows_without_target": table.height - len(labels.y),
        "rows_trained_on": len(chosen.train),
        "rows_held_out": len(chosen.test),
        "columns": len(table.schema),
        "columns_used": len(encoder.columns),
        "inputs": len(encoder.feature_names),
        "missing_values": sum(missing.values()),
    }


def _missing(table: Table | StoredTable, encoder: Encoder, rows: Array) -> dict[str, int]:
    """Return the number of missing values of each column that is used, in rows with a target."""
    counts = Counter({column.name: 0 for column in encoder.columns})
    for frame in chosen_rows(table, list(counts), rows, "counting missing values"):
        for column in frame:
            infinite = int((~column.is_finite()).sum()) if column.dtype.is_float() else 0
            counts[column.name] += column.null_count() + infinite
    return dict(counts)


def _column_notes(
    table: Table | StoredTable, labels: Labels, roles: dict[str, Role], missing: dict[str, int]
) -> list[str]:
    lost = table.height - len(labels.y)
    lost_rows = [f"{_rows(lost)} without a value of '{labels.target}' left out."] if lost else []
    filled = {
        "number": "the median of the training rows",
        "category": "a category of their own",
        "date": "the median date of the training rows",
    }
    dropped = [
        f"Column '{name}' is not used: {role.reason}."
        for name, role in roles.items()
        if role.kind == "dropped"
    ]
    replaced = [
        f"Column '{name}': {count:,} missing values became {filled[roles[name].kind]}."
        for name, count in missing.items()
        if count
    ]
    return lost_rows + dropped + replaced


def _notation_notes(table: Table | StoredTable, target: str, encoder: Encoder) -> list[str]:
    """Return what became of dates and amounts, in sentences."""
    notes = [column.note() for column in encoder.columns if isinstance(column, Moment)]
    used = [column.name for column in encoder.columns if isinstance(column, Number)]
    amounts = {name: table.notations[name] for name in [*used, target] if name in table.notations}
    return notes + [
        f"Column '{name}': {notation.words()} were read as numbers{notation.example()}."
        for name, notation in amounts.items()
    ]


def _row_notes(labels: Labels, chosen: Chosen, seed: int) -> list[str]:
    n, held_out = len(labels.y), len(chosen.test)
    if not chosen.drawn:
        return [f"{_rows(held_out)} held out to test the model."] if held_out else []
    return [
        f"Of {_rows(n)}, {len(chosen.train):,} were drawn at random for training, as --rows says "
        f"(seed {seed}, classes in proportion), and {held_out:,} others (at most "
        f"{MOST_TEST_ROWS:,}) test the model."
    ]


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
