"""The command that writes a page about a table."""

from typing import Any

import click

from cavity.cli.options import command_line, opened, print_options, table_options, to_file
from cavity.report.analysis import analyse
from cavity.report.summary import summarise
from cavity.tables.output import write_text

_PAGE = "report.html"


@click.command(
    epilog="""\b
Examples:
  cavity report pima
  cavity report patients.csv --target outcome
  cavity report houses.parquet --target price --drop address -o houses.html
  cavity report patients.csv --target outcome --json > numbers.json
  cavity report pima --no-comparison --no-baselines

With --json a page is written only if -o is given."""
)
@table_options
@click.option("-o", "--output", metavar="FILE", help=f"The page; by default {_PAGE}.")
@click.option(
    "--no-comparison", is_flag=True, help="Do not compare the inference methods with each other."
)
@click.option(
    "--no-baselines", is_flag=True, help="Do not compare the model with simpler ones and boosting."
)
@print_options
@click.pass_context
def report(context: click.Context, /, output: str | None, **options: Any) -> None:
    """Fit TABLE and show in one page how good the model is."""
    page = to_file(output or (None if options["as_json"] else _PAGE), options["table"])
    skip = [part for part in ("comparison", "baselines") if options[f"no_{part}"]]
    command = command_line(context)
    with opened(options) as (terminal, data, settings):
        analysis = analyse(data, settings, command=command, tell=terminal.stage, skip=skip)
        if page is not None:
            from cavity.report.page import render

            terminal.stage("drawing the page")
            write_text(page, render(analysis))
        terminal.answer([*summarise(analysis), f"The page is in {page}."], analysis)
