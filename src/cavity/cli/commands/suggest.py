"""The command that says which rows of a table to label next."""

from collections import Counter
from dataclasses import asdict
from typing import Any

import click
import numpy as np
import polars as pl

from cavity import suggest as suggest_rows
from cavity.cli.commands.predict import known_format, unseen_lines
from cavity.cli.options import Terminal, encoding_option, print_options, to_file
from cavity.estimators.columns import columns
from cavity.model_selection.suggestions import CRITERIA, Suggestions
from cavity.tables.model import load_model
from cavity.tables.notation import as_written, own_columns
from cavity.tables.output import write_frames
from cavity.tables.read import read_table


@click.command(
    epilog="""\b
Examples:
  cavity suggest patients.model unlabelled.csv -k 20
  cavity suggest patients.model unlabelled.csv -k 20 -o to_label.csv

The table has a row for each suggestion, in order: the row of POOL, counted from 1 below the header,
what its label is expected to say about the latent function (in nats), by how much it is expected to
lower the loss, given the rows above, and how many random rows would lower it as much. With -o all
columns of POOL are written for these rows, in the same order."""
)
@click.argument("model")
@click.argument("pool")
@click.option("-k", "k", type=click.IntRange(1), default=10, help="How many rows to choose.")
@click.option(
    "--criterion",
    type=click.Choice(CRITERIA),
    default=CRITERIA[0],
    help="What labels should do: say most about the latent function, or lower the expected loss "
    "over POOL most.",
)
@click.option("--seed", "random_state", type=click.IntRange(0), default=0)
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    callback=known_format,
    help="CSV, TSV or Parquet file, by its suffix, for the chosen rows.",
)
@encoding_option
@print_options
def suggest(
    model: str, pool: str, output: str | None, as_json: bool, quiet: bool, **options: Any
) -> None:
    """Say which rows of POOL to label next, for a MODEL that cavity fit wrote."""
    path = to_file(output, model, pool)
    with Terminal(quiet=quiet, as_json=as_json) as terminal:
        terminal.stage(f"opening {model}")
        fitted = load_model(model)
        terminal.stage(f"reading {pool}")
        table = read_table(pool, terminal, options.pop("encoding"), fitted.used())
        fitted.check(table)
        unseen: Counter[str] = Counter()
        X = fitted.inputs(table, unseen)
        terminal.stage("choosing rows")
        found = suggest_rows(fitted.estimator, X, **options)
        lines = [*unseen_lines(unseen), *_lines(found)]
        if path is not None:
            write_frames(path, [_chosen(table, found)])
            lines.append(f"These rows are in {output}.")
        numbers = _numbers(found) | {"output": output, "unseen_categories": dict(unseen)}
        terminal.answer(lines, numbers)


def _lines(found: Suggestions) -> list[str]:
    """Return the table with rows counted from 1, and the verdict."""
    cells = [[one.row + 1, *found.cells(one)[1:]] for one in found]
    return [*columns(found.header, cells), found.verdict]


def _numbers(found: Suggestions) -> dict[str, Any]:
    names = ("information", "gain", "worth", "loss", "loss_after", "stop", "verdict")
    rows = [asdict(one) | {"row": one.row + 1} for one in found]
    return {"rows": rows, **{name: getattr(found, name) for name in names}}


def _chosen(table: Any, found: Suggestions) -> pl.DataFrame:
    """Return the rows of the table in order, with what they gain in front."""
    kept, first = [], 0
    for frame in table.batches(None, "collecting the rows"):
        own = found.index[(found.index >= first) & (found.index < first + frame.height)]
        kept.append(as_written(frame[np.sort(own - first)], own_columns(table)))
        first += frame.height
    about = pl.DataFrame(
        {
            "suggested_row": found.index + 1,
            "suggested_information": [one.information for one in found],
            "suggested_gain": [one.gain for one in found],
            "suggested_worth": [one.worth for one in found],
        }
    )
    # The rows were kept in the table's order.
    rows = pl.concat(kept)[np.argsort(np.argsort(found.index))]
    # A pool may itself be the output of this command.
    return about.hstack(rows.drop(about.columns, strict=False))
