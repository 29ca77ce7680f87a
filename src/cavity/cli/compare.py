"""``cavity compare``: all inference methods side by side."""

from typing import Any

import click

from cavity.cli.options import opened, output_options, table_options
from cavity.report.analysis import compare as compare_methods
from cavity.report.summary import comparison
from cavity.tables.errors import TableError
from cavity.tables.model import fit_model, unfitted


@click.command(
    epilog="""\b
Examples:
  cavity compare crabs
  cavity compare patients.csv --target outcome --kernel rbf --tune
  cavity compare pima --likelihood logit --json"""
)
@table_options
@click.option(
    "--tune",
    is_flag=True,
    help="Let each method tune the kernel by its own evidence; by default all use the kernel "
    "that --inference finds.",
)
@output_options
def compare(tune: bool, **options: Any) -> None:
    """Compare all inference methods on TABLE. Print evidence, leave-one-out scores and time."""
    with opened(options) as (terminal, data, settings):
        if data.task == "regression":
            raise TableError(
                data.source,
                "it is a quantity, for which inference is exact: there is nothing to compare.",
                column=data.target,
            )
        terminal.stage("tuning the kernel")
        kernel = unfitted(data, settings).kernel if tune else fit_model(data, settings)[0].kernel_
        terminal.stage("comparing inference methods")
        rows = compare_methods(data, kernel, settings, tune)
        answer = {"notes": data.notes, "comparison": rows}
        terminal.answer([*data.notes, *comparison(rows)], answer)
