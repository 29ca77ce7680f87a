"""The command that lists the data sets."""

import click

from cavity.cli.options import Terminal, print_options
from cavity.estimators.columns import columns
from cavity.tables.read import SHIPPED, read_table


@click.command(
    epilog="""\b
Examples:
  cavity datasets
  cavity report crabs"""
)
@print_options
def datasets(as_json: bool, quiet: bool) -> None:
    """List the data sets that can be named in place of a file."""
    found = [
        {
            "name": name,
            "rows": (table := read_table(name)).height,
            "columns": len(table.schema),
            "task": about.task,
            "target": about.target,
            "description": about.description,
        }
        for name, about in SHIPPED.items()
    ]
    with Terminal(quiet=quiet, as_json=as_json) as terminal:
        terminal.answer(columns(list(found[0]), [list(line.values()) for line in found]), found)
