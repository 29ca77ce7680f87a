"""``cavity report``: the main job."""

from typing import Any

import click

from cavity.cli.options import (
    command_line,
    data_options,
    model_options,
    open_table,
    output_options,
    settings_from,
    to_file,
)
from cavity.cli.terminal import Terminal
from cavity.report.analysis import analyse
from cavity.report.summary import summarise
from cavity.tables.plain import to_json
from cavity.tables.writing import write_text

__all__ = ["report"]

_PAGE = "report.html"


@click.command(
    epilog="""\b
Examples:
  cavity report pima
  cavity report patients.csv --target outcome
  cavity report houses.parquet --target price --drop address -o houses.html
  cavity report patients.csv --target outcome --json > numbers.json

With --json no page is written unless -o asks for it."""
)
@data_options
@model_options
@click.option("-o", "--output", metavar="FILE", help=f"The page; by default {_PAGE}.")
@output_options
@click.pass_context
def report(context: click.Context, /, output: str | None, as_json: bool, **options: Any) -> None:
    """Fit TABLE and say how good the model is, in one self-contained page."""
    settings = settings_from(options)
    page = to_file(output or (None if as_json else _PAGE), options["table"])
    with Terminal(quiet=options["quiet"]) as terminal:
        data = open_table(options, terminal)
        analysis = analyse(data, settings, command=command_line(context), tell=terminal.stage)
        if page is not None:
            from cavity.report.page import render

            terminal.stage("drawing the page")
            write_text(page, render(analysis))
        if as_json:
            terminal.hand_over(to_json(analysis))
        else:
            terminal.answer(summarise(analysis) + f"\nThe page is in {page}.")
