"""``cavity datasets``: the names that can be given in place of a file."""

import click

from cavity.cli.options import output_options
from cavity.cli.terminal import Terminal
from cavity.datasets import list_datasets
from cavity.model_selection.columns import columns
from cavity.tables.read import SHIPPED, read_table

_THEIRS = {
    "breast_cancer": "benign and malignant breast tumours, 30 measurements (scikit-learn's)",
    "wine": "three cultivars of wine, 13 chemical measurements (scikit-learn's)",
}


@click.command(
    epilog="""\b
Examples:
  cavity datasets
  cavity report crabs"""
)
@output_options
def datasets(as_json: bool, quiet: bool) -> None:
    """List the data sets that can be named in place of a file."""
    descriptions = {name: about.description for name, about in list_datasets().items()} | _THEIRS
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
                "description": descriptions[name],
            }
        )
    lines = [[str(value) for value in line.values()] for line in found]
    with Terminal(quiet=quiet, as_json=as_json) as terminal:
        terminal.answer(columns(list(found[0]), lines), found)
