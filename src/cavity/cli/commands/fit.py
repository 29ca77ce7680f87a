"""The command that fits a model and saves it."""

from typing import Any

import click

from cavity.cli.options import opened, print_options, table_options, to_file
from cavity.report.analysis import about_inducing
from cavity.report.parts import kernel_text
from cavity.report.scores import held_out_of, left_out_of, scores_of
from cavity.report.summary import quality
from cavity.report.words import representatives
from cavity.tables.model import fit_model, save_model
from cavity.tables.output import plain


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
@print_options
def fit(output: str, **options: Any) -> None:
    """Fit TABLE and save the model to a file."""
    to_file(output, options["table"])
    with opened(options) as (terminal, data, settings):
        terminal.stage("tuning the kernel")
        fitted, warned = fit_model(data, settings)
        predicted, tested = left_out_of(data, fitted), held_out_of(data, fitted)
        ordered = data.task == "ordinal"
        left_out = plain(scores_of(predicted, data.y, ordered=ordered))
        held_out = plain(tested and scores_of(tested, data.y, ordered=ordered))
        save_model(output, data, fitted, settings)
        answer = {
            "model": output,
            "kernel": kernel_text(fitted.kernel_, data.classes),
            "log_evidence": fitted.log_marginal_likelihood_value_,
            "left_out": left_out,
            "held_out": held_out,
            "inducing": (inducing := about_inducing(fitted)),
            "counts": data.counts,
            "notes": data.notes,
            "warnings": warned,
        }
        few = [representatives(**inducing, rows=len(data.y))] if inducing else []
        lines = [
            *data.notes,
            *few,
            f"Kernel: {answer['kernel']}",
            *quality(left_out, held_out, predicted.how),
        ]
        terminal.answer([*lines, f"The model is in {output}."], answer)
