"""The command that computes a learning curve."""

from typing import Any

import click

from cavity.cli.options import opened, print_options, table_options, whole_numbers
from cavity.report.parts import curve_of, describe_curve
from cavity.report.summary import curve_lines
from cavity.tables.model import fit_model


@click.command(
    epilog="""\b
Examples:
  cavity curve pima
  cavity curve patients.csv --target outcome --sizes 50,100,200
  cavity curve patients.csv --target outcome --ahead 1000,5000 --goal 0.15"""
)
@table_options
@click.option(
    "--sizes", callback=whole_numbers, metavar="N,N,...", help="Training sizes of the curve."
)
@click.option(
    "--ahead",
    callback=whole_numbers,
    metavar="N,N,...",
    help="Sizes to forecast; by default up to four times the present number of rows.",
)
@click.option(
    "--goal",
    type=click.FloatRange(0.0),
    metavar="ERROR",
    help="Print how many rows this error rate (or mean squared error) is expected to need.",
)
@click.option(
    "--resampling",
    type=click.Choice(["subsample", "bootstrap"]),
    default="subsample",
    help="Draw training sets without or with replacement.",
)
@print_options
def curve(goal: float | None, **options: Any) -> None:
    """Compute the learning curve of TABLE from one fit. Forecast it for more rows."""
    with opened(options) as (terminal, data, settings):
        terminal.stage("tuning the kernel")
        fitted, _ = fit_model(data, settings)
        terminal.stage("computing the learning curve")
        found = curve_of(data, fitted, options["sizes"], options["resampling"])
        about = describe_curve(found, options["ahead"])
        if goal is not None:
            about |= {"goal": goal, "rows_for_goal": found.size_for(error=goal)}
        terminal.answer([*data.notes, *curve_lines(about)], {"notes": data.notes, **about})
