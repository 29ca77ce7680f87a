"""The command that predicts the rows of a table."""

from collections import Counter
from typing import Any

import click

from cavity.cli.options import Terminal, encoding_option, print_options, to_file
from cavity.tables.model import load_model
from cavity.tables.output import FRAME_SUFFIXES, csv_lines, json_lines, write_frames
from cavity.tables.read import read_table


def known_format(context: Any, parameter: Any, output: str | None) -> str | None:
    """Return the name of a table to be written, whose suffix says in which format."""
    if output is not None and not output.lower().endswith(FRAME_SUFFIXES):
        raise click.BadParameter(f"the name must end in one of {', '.join(FRAME_SUFFIXES)}.")
    return output


def unseen_lines(unseen: Counter[str]) -> list[str]:
    """Return what there is to say about categories that the model has not seen."""
    return [
        f"Column '{name}': {count:,} rows have a value that is not in the training rows."
        for name, count in unseen.items()
    ]


@click.command(
    epilog="""\b
Examples:
  cavity predict patients.model new.csv -o answers.csv
  cavity predict patients.model new.parquet -o answers.parquet
  cavity predict patients.model new.csv | head

The output has one row for each row of TABLE, in the same order: the predicted class and a
probability for each class, or the predicted value with its standard deviation and 95 % interval."""
)
@click.argument("model")
@click.argument("table")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    callback=known_format,
    help="CSV, TSV or Parquet file, by its suffix; by default CSV on standard output.",
)
@encoding_option
@print_options
def predict(
    model: str,
    table: str,
    output: str | None,
    encoding: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Predict every row of TABLE with a MODEL that cavity fit wrote."""
    path = to_file(output, model, table)
    with Terminal(quiet=quiet, as_json=as_json) as terminal:
        terminal.stage(f"opening {model}")
        fitted = load_model(model)
        terminal.stage(f"reading {table}")
        rows = read_table(table, terminal, encoding)
        fitted.check(rows)
        unseen: Counter[str] = Counter()
        terminal.stage("predicting", total=rows.height)
        answers = fitted.answers(rows, terminal.advance, unseen)
        if path is None:
            terminal.print_rows(json_lines(answers) if as_json else csv_lines(answers))
            return
        height = write_frames(path, answers)
        lines = unseen_lines(unseen)
        lines.append(f"{height:,} predictions are in {output}.")
        numbers = {"output": output, "rows": height, "unseen_categories": dict(unseen)}
        terminal.answer(lines, numbers)
