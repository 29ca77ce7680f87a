"""The command that says how many rows a goal needs."""

import re
import warnings
from typing import Any

import click

from cavity.cli.options import opened, print_options, table_options
from cavity.model_selection import plan as planned
from cavity.tables.model import fit_model

_GOAL = re.compile(r"(error|log[ _-]?loss|rmse|r2)\s*[:=<>≤≥]*\s*(\S+)", re.IGNORECASE)


def _goal(context: Any, parameter: Any, text: str) -> dict[str, float]:
    """Return the goal in a text such as "error 0.2", by its name in `cavity.plan`."""
    try:
        name, number = _GOAL.fullmatch(text.strip()).groups()  # type: ignore[union-attr]
        value = float(number)
    except (AttributeError, ValueError) as error:
        raise click.BadParameter(
            f"'{text}' is none: give a measure and a number, such as \"error 0.2\", "
            '"log loss 0.5", "rmse 3" or "r2 0.6".'
        ) from error
    name = "log_loss" if name.lower().startswith("log") else name.lower()
    return {name: value}


@click.command(
    epilog="""\b
Examples:
  cavity plan pima --goal "error 0.2"
  cavity plan patients.csv --target outcome --goal "log loss 0.45" --probability 0.9
  cavity plan houses.parquet --target price --goal "r2 0.8" --json"""
)
@table_options
@click.option(
    "--goal",
    required=True,
    metavar="GOAL",
    callback=_goal,
    help='What unseen rows should show: "error 0.2" (error rate, or mean squared error) or '
    '"log loss 0.5" at most; for quantities also "rmse 3" at most and "r2 0.6" at least.',
)
@click.option(
    "--probability",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.8,
    help="With which the goal is to be met.",
)
@print_options
def plan(goal: dict[str, float], probability: float, **options: Any) -> None:
    """Say how many rows like those of TABLE a goal needs, or what is missing instead."""
    with opened(options) as (terminal, data, settings):
        terminal.stage("tuning the kernel")
        fitted, _ = fit_model(data, settings)
        terminal.stage("planning")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = planned(fitted, data.X, data.y, probability=probability, **goal)
        answer = {"notes": data.notes, **found.to_dict()}
        terminal.answer([*data.notes, *str(found).splitlines()], answer)
