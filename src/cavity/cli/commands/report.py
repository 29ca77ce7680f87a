"""The command that writes a page about a table."""

from pathlib import Path
from typing import Any

import click

from cavity.cli.options import command_line, opened, print_options, table_options, to_file
from cavity.report.analysis import analyse
from cavity.report.summary import summarise
from cavity.report.suspects import suspects_frame
from cavity.tables.output import FRAME_SUFFIXES, to_json, write_frames, write_text

_SUFFIXES = (*FRAME_SUFFIXES, ".json")
_PAGE = "report.html"


def _known_format(context: Any, parameter: Any, output: str | None) -> str | None:
    """Return the name of a file of suspects, whose suffix says in which format."""
    if output is not None and not output.lower().endswith(_SUFFIXES):
        raise click.BadParameter(f"the name must end in one of {', '.join(_SUFFIXES)}.")
    return output


def _write_suspects(path: Path, lines: list[dict[str, Any]]) -> None:
    if path.suffix.lower() == ".json":
        write_text(path, to_json(lines) + "\n")
    else:
        write_frames(path, [suspects_frame(lines)])


@click.command(
    epilog="""\b
Examples:
  cavity report pima
  cavity report patients.csv --target outcome
  cavity report houses.parquet --target price --drop address -o houses.html
  cavity report patients.csv --target outcome --json > numbers.json
  cavity report pima --no-comparison --no-baselines
  cavity report patients.csv --target outcome --suspects wrong.csv

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
@click.option(
    "--suspects",
    metavar="FILE",
    callback=_known_format,
    help=f"Write all rows whose label looks wrong; FILE ends in {', '.join(_SUFFIXES)}.",
)
@print_options
@click.pass_context
def report(
    context: click.Context, /, output: str | None, suspects: str | None, **options: Any
) -> None:
    """Fit TABLE and show in one page how good the model is."""
    listed = to_file(suspects, options["table"])
    page = to_file(output or (None if options["as_json"] else _PAGE), options["table"])
    skip = [part for part in ("comparison", "baselines") if options[f"no_{part}"]]
    command = command_line(context)
    with opened(options) as (terminal, data, settings):
        analysis = analyse(data, settings, command=command, tell=terminal.stage, skip=skip)
        if listed is not None:
            _write_suspects(listed, analysis.suspects)
        if page is not None:
            from cavity.report.page import render

            terminal.stage("drawing the page")
            write_text(page, render(analysis))
        terminal.answer([*summarise(analysis), f"The page is in {page}."], analysis)
