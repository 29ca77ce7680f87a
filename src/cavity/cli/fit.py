"""``cavity fit``: a model file."""

from typing import Any

import click

from cavity.cli.options import (
    data_options,
    model_options,
    open_table,
    output_options,
    settings_from,
    to_file,
)
from cavity.cli.terminal import Terminal
from cavity.report.analysis import kernel_text, scores_of
from cavity.report.summary import quality
from cavity.tables.errors import TableError
from cavity.tables.model import fit_model
from cavity.tables.model_file import save_model
from cavity.tables.plain import to_json

__all__ = ["fit"]


@click.command(
    epilog="""\b
Examples:
  cavity fit patients.csv --target outcome -o patients.model
  cavity fit houses.parquet --target price --kernel "matern52 + linear" -o houses.model
  cavity predict patients.model new.csv -o answers.csv

The file holds numbers and names only: opening it runs no code from it."""
)
@data_options
@model_options
@click.option("-o", "--output", metavar="MODEL", required=True, help="The file to write.")
@output_options
def fit(output: str, as_json: bool, quiet: bool, **options: Any) -> None:
    """Fit TABLE and keep the model in a file."""
    settings = settings_from(options)
    to_file(output, options["table"])
    with Terminal(quiet=quiet) as terminal:
        data = open_table(options, terminal)
        terminal.stage("tuning the kernel")
        fitted, warned = fit_model(data, settings)
        left_out, held_out = scores_of(data, fitted)
        kernel = kernel_text(fitted.kernel_, data.classes)
        try:
            save_model(output, data, fitted, settings)
        except OSError as error:
            raise TableError(output, f"cannot be written: {error.strerror}.") from error
        if as_json:
            answer = {
                "model": output,
                "kernel": kernel,
                "log_evidence": fitted.log_marginal_likelihood_value_,
                "left_out": left_out,
                "held_out": held_out,
                "counts": data.counts,
                "notes": data.notes,
                "warnings": warned,
            }
            terminal.hand_over(to_json(answer))
        else:
            lines = [*data.notes, f"Kernel: {kernel}", *quality(left_out, held_out)]
            terminal.answer("\n".join([*lines, f"The model is in {output}."]))
