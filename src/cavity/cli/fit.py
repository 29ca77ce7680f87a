"""``cavity fit``: a model file."""

from typing import Any

import click

from cavity.cli.options import opened, output_options, table_options, to_file
from cavity.report.kernel import kernel_text
from cavity.report.scores import scores_of
from cavity.report.summary import quality
from cavity.tables.model import fit_model
from cavity.tables.model_file import save_model
from cavity.tables.plain import plain


@click.command(
    epilog="""\b
Examples:
  cavity fit patients.csv --target outcome -o patients.model
  cavity fit houses.parquet --target price --kernel "matern52 + linear" -o houses.model
  cavity predict patients.model new.csv -o answers.csv

The file holds numbers and names only: opening it runs no code from it."""
)
@table_options
@click.option("-o", "--output", metavar="MODEL", required=True, help="The file to write.")
@output_options
def fit(output: str, **options: Any) -> None:
    """Fit TABLE and save the model to a file."""
    to_file(output, options["table"])
    with opened(options) as (terminal, data, settings):
        terminal.stage("tuning the kernel")
        fitted, warned = fit_model(data, settings)
        left_out, held_out = plain(scores_of(data, fitted))
        save_model(output, data, fitted, settings)
        answer = {
            "model": output,
            "kernel": kernel_text(fitted.kernel_, data.classes),
            "log_evidence": fitted.log_marginal_likelihood_value_,
            "left_out": left_out,
            "held_out": held_out,
            "counts": data.counts,
            "notes": data.notes,
            "warnings": warned,
        }
        lines = [*data.notes, f"Kernel: {answer['kernel']}", *quality(left_out, held_out)]
        terminal.answer([*lines, f"The model is in {output}."], answer)
