"""``cavity predict``: answers for a new table."""

import click

from cavity.cli.options import output_options, to_file
from cavity.cli.terminal import Terminal
from cavity.tables.model_file import load_model
from cavity.tables.plain import to_json
from cavity.tables.read import read_table
from cavity.tables.writing import FRAME_SUFFIXES, write_frame

__all__ = ["predict"]


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

One row of answers for each row of TABLE, in its order: the predicted class and a probability
for each class, or the predicted value with its standard deviation and 95 % interval."""
)
@click.argument("model")
@click.argument("table")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    callback=_known_format,
    help="CSV, TSV or Parquet by its ending; by default CSV on stdout.",
)
@output_options
def predict(model: str, table: str, output: str | None, as_json: bool, quiet: bool) -> None:
    """Predict every row of TABLE by a MODEL that cavity fit has written."""
    path = to_file(output, model, table)
    with Terminal(quiet=quiet) as terminal:
        terminal.stage(f"opening {model}")
        fitted = load_model(model)
        terminal.stage(f"reading {table}")
        rows = read_table(table)
        terminal.stage("predicting", total=rows.frame.height)
        answers = fitted.predict(rows, terminal.advance)
        unseen = fitted.encoder.unseen(rows.frame)
        if path is not None:
            write_frame(path, answers)
            about = {"output": output, "rows": answers.height, "unseen_categories": unseen}
            lines = [
                f"Column '{name}': {count:,} rows have a value that training did not show."
                for name, count in unseen.items()
            ]
            lines.append(f"{answers.height:,} predictions are in {output}.")
            terminal.hand_over(to_json(about)) if as_json else terminal.answer("\n".join(lines))
        else:
            text = to_json(answers.to_dicts()) if as_json else answers.write_csv().rstrip("\n")
            terminal.hand_over(text)
