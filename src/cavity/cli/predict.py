"""``cavity predict``: predictions for a new table."""

import click

from cavity.cli.options import output_options, to_file
from cavity.cli.terminal import Terminal
from cavity.tables.model_file import load_model
from cavity.tables.plain import to_json
from cavity.tables.read import read_table
from cavity.tables.writing import FRAME_SUFFIXES, write_frame


def _known_format(
    context: click.Context, parameter: click.Parameter, output: str | None
) -> str | None:
    if output is not None and not output.lower().endswith(FRAME_SUFFIXES):
        raise click.BadParameter(f"the name must end in one of {', '.join(FRAME_SUFFIXES)}.")
    return output


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
    callback=_known_format,
    help="CSV, TSV or Parquet file, by its suffix; by default CSV on standard output.",
)
@output_options
def predict(model: str, table: str, output: str | None, as_json: bool, quiet: bool) -> None:
    """Predict every row of TABLE with a MODEL that cavity fit wrote."""
    path = to_file(output, model, table)
    with Terminal(quiet=quiet, as_json=as_json) as terminal:
        terminal.stage(f"opening {model}")
        fitted = load_model(model)
        terminal.stage(f"reading {table}")
        rows = read_table(table)
        terminal.stage("predicting", total=rows.frame.height)
        answers = fitted.predict(rows, terminal.advance)
        if path is None:
            csv = answers.write_csv().rstrip("\n")
            terminal.print(to_json(answers.to_dicts()) if as_json else csv)
            return
        write_frame(path, answers)
        unseen = fitted.encoder.unseen(rows.frame)
        lines = [
            f"Column '{name}': {count:,} rows have a value that is not in the training rows."
            for name, count in unseen.items()
        ]
        lines.append(f"{answers.height:,} predictions are in {output}.")
        about = {"output": output, "rows": answers.height, "unseen_categories": unseen}
        terminal.answer(lines, about)
