"""The command that compares inference methods."""

from typing import Any

import click

from cavity.cli.options import opened, print_options, table_options
from cavity.estimators.validation import is_auto
from cavity.report.analysis import ONE_METHOD, compare_methods, compared
from cavity.report.summary import comparison
from cavity.tables.fitting import fit_model, tuned_likelihood, unfitted
from cavity.tables.output import TableError


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
@print_options
def compare(tune: bool, **options: Any) -> None:
    """Compare all inference methods on TABLE. Print evidence, leave-one-out scores and time."""
    with opened(options) as (terminal, data, settings):
        if data.task in ONE_METHOD:
            problem = (
                "it is a quantity, for which there is one method: there is nothing to compare."
            )
            raise TableError(data.source, problem, column=data.target)
        terminal.stage("tuning the kernel")
        model = unfitted(data, settings)
        free = tune and not is_auto(model.kernel)
        if not free or data.task == "counts":
            model = fit_model(data, settings)[0]
        kernel = model.kernel if free else model.kernel_
        known = model.likelihood if tune else tuned_likelihood(data.task, settings, model)
        terminal.stage("comparing inference methods")
        few, split = compared(data, settings), getattr(model, "multi_class", None)
        rows = compare_methods(few, kernel, settings, tune, known, split)
        notes = [*data.notes]
        if len(few.y) < len(data.y):
            notes.append(
                f"The methods were compared on a random sample of {len(few.y):,} of "
                f"{len(data.y):,} rows."
            )
        terminal.answer([*notes, *comparison(rows)], {"notes": notes, "comparison": rows})
