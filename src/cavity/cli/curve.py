"""``cavity curve``: whether more data would help."""

from typing import Any

import click

from cavity.cli.options import opened, output_options, table_options
from cavity.report.forecast import curve_of, describe_curve
from cavity.report.summary import curve_lines
from cavity.tables.model import fit_model


def _sizes(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> list[int] | None:
    if text is None:
        return None
    try:
        sizes = [int(word) for word in text.split(",")]
    except ValueError as error:
        raise click.BadParameter("give whole numbers, such as 50,100,200.") from error
    if min(sizes) < 1:
        raise click.BadParameter("every size must be at least 1.")
    return sizes


@click.command(
    epilog="""\b
Examples:
  cavity curve pima
  cavity curve patients.csv --target outcome --sizes 50,100,200
  cavity curve patients.csv --target outcome --ahead 1000,5000 --goal 0.15"""
)
@table_options
@click.option("--sizes", callback=_sizes, metavar="N,N,...", help="Training sizes of the curve.")
@click.option(
    "--ahead",
    callback=_sizes,
    metavar="N,N,...",
    help="Sizes to forecast; by default up to four times the present number of rows.",
)
@click.option(
    "--goal",
    type=click.FloatRange(0.0),
    metavar="ERROR",
    help="Print how many rows are expected to reach this error rate (or mean squared error).",
)
@click.option(
    "--resampling",
    type=click.Choice(["subsample", "bootstrap"]),
    default="subsample",
    help="Draw training sets without or with replacement.",
)
@output_options
def curve(
    sizes: list[int] | None,
    ahead: list[int] | None,
    goal: float | None,
    resampling: str,
    **options: Any,
) -> None:
    """Compute the learning curve of TABLE from one fit. Forecast it for more rows."""
    with opened(options) as (terminal, data, settings):
        terminal.stage("tuning the kernel")
        fitted, _ = fit_model(data, settings)
        terminal.stage("computing the learning curve")
        found = curve_of(data, fitted, sizes, resampling)
        about = describe_curve(found, ahead)
        if goal is not None:
            about |= {"goal": goal, "rows_for_goal": found.size_for(error=goal)}
        terminal.answer([*data.notes, *curve_lines(about)], {"notes": data.notes, **about})
