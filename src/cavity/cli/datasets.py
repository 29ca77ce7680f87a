"""``cavity datasets``: what can stand in place of a file."""

import click

from cavity.cli.options import output_options
from cavity.cli.terminal import Terminal
from cavity.datasets import list_datasets
from cavity.model_selection.columns import columns
from cavity.tables.plain import to_json
from cavity.tables.read import SHIPPED, read_table

__all__ = ["datasets"]

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
    """List the data sets that can stand in place of a file."""
    found, ours = [], list_datasets()
    for name, about in SHIPPED.items():
        frame = read_table(name).frame
        found.append(
            {
                "name": name,
                "rows": frame.height,
                "columns": frame.width,
                "task": about.task,
                "target": about.target,
                "description": ours[name].description if name in ours else _THEIRS[name],
            }
        )
    with Terminal(quiet=quiet) as terminal:
        if as_json:
            terminal.hand_over(to_json(found))
        else:
            lines = [[str(value) for value in line.values()] for line in found]
            terminal.answer("\n".join(columns(list(found[0]), lines)))
