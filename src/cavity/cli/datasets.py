"""``cavity datasets``: the names that can be given in place of a file."""

import click

from cavity.cli.options import output_options
from cavity.cli.terminal import Terminal
from cavity.model_selection.columns import columns
from cavity.tables.read import SHIPPED, read_table


@click.command(
    epilog="""\b
Examples:
  cavity datasets
  cavity report crabs"""
)
@output_options
def datasets(as_json: bool, quiet: bool) -> None:
    """List the data sets that can be named in place of a file."""
    found = []
    for name, about in SHIPPED.items():
        frame = read_table(name).frame
        found.append(
            {
                "name": name,
                "rows": frame.height,
                "columns": frame.width,
                "task": about.task,
                "target": about.target,
                "description": about.description,
            }
        )
    with Terminal(quiet=quiet, as_json=as_json) as terminal:
        terminal.answer(columns(list(found[0]), [list(line.values()) for line in found]), found)
