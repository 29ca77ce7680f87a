"""Options that several commands share, and what they add up to."""

import shlex
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from cavity.cli.terminal import Terminal
from cavity.estimators.validation import check_offers
from cavity.inference import METHODS
from cavity.likelihoods import Probit, likelihood, method
from cavity.tables.kernels import WORDS, parse_kernel
from cavity.tables.model import Settings
from cavity.tables.prepare import MAX_ROWS, Prepared, prepare
from cavity.tables.read import read_table
from cavity.tables.writing import check_writable

__all__ = [
    "command_line",
    "data_options",
    "model_options",
    "open_table",
    "output_options",
    "settings_from",
    "to_file",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_CLASS_METHODS = sorted(name for name, cls in METHODS.items() if cls.serves(Probit()))


def _kernel(context: click.Context, parameter: click.Parameter, text: str) -> str:
    try:
        parse_kernel(text, 1)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return text


def _test_size(context: click.Context, parameter: click.Parameter, size: float) -> float:
    if size < 0.0 or (size > 1.0 and size != int(size)) or size == 1.0:
        raise click.BadParameter("give a share below 1, such as 0.25, or a number of rows.")
    return size


def _apply(options: list[Callable[[_Function], _Function]], function: _Function) -> _Function:
    return reduce(lambda f, option: option(f), reversed(options), function)


def data_options(function: _Function) -> _Function:
    """Add TABLE and everything that says how to read it."""
    return _apply(
        [
            click.argument("table"),
            click.option("--target", metavar="COLUMN", help="Column to predict."),
            click.option(
                "--task",
                type=click.Choice(["classification", "regression"]),
                help="By default regression if the target is numeric and has fractions or more "
                "than 20 different values.",
            ),
            click.option("--drop", multiple=True, metavar="COLUMN", help="Do not use it."),
            click.option(
                "--keep",
                multiple=True,
                metavar="COLUMN",
                help="Use it although it looks like an identifier or free-form text.",
            ),
            click.option(
                "--max-rows",
                type=click.IntRange(10),
                default=MAX_ROWS,
                show_default=True,
                help="Learn from at most so many rows, drawn at random; the rest is held out.",
            ),
            click.option(
                "--test-size",
                type=float,
                default=0.0,
                callback=_test_size,
                help="Share (0.25) or number (500) of rows to hold out.",
            ),
            click.option("--seed", type=click.IntRange(0), default=0, show_default=True),
        ],
        function,
    )


def model_options(function: _Function) -> _Function:
    """Add everything that says how to model."""
    return _apply(
        [
            click.option(
                "--kernel",
                default="auto",
                show_default=True,
                callback=_kernel,
                help=f"Words joined by + and *: {', '.join(WORDS)}; auto is ard up to 30 inputs, "
                "else rbf.",
            ),
            click.option(
                "--inference",
                type=click.Choice(_CLASS_METHODS),
                default="ep",
                show_default=True,
                help="For classification; regression is exact.",
            ),
            click.option(
                "--likelihood",
                type=click.Choice(["probit", "logit", "step"]),
                default="probit",
                show_default=True,
            ),
            click.option(
                "--restarts",
                type=click.IntRange(0),
                default=0,
                show_default=True,
                help="Further random starts of the tuning.",
            ),
        ],
        function,
    )


def output_options(function: _Function) -> _Function:
    """Add what is said, and how."""
    return _apply(
        [
            click.option("--json", "as_json", is_flag=True, help="Machine-readable, on stdout."),
            click.option("--quiet", is_flag=True, help="Say nothing but errors."),
        ],
        function,
    )


def settings_from(options: dict[str, Any]) -> Settings:
    """Return how to model; refuse what does not go together."""
    try:
        check_offers(likelihood(options["likelihood"]), method(options["inference"]))
    except ValueError as error:
        raise click.UsageError(str(error), click.get_current_context()) from error
    names = ("kernel", "inference", "likelihood", "restarts", "seed")
    return Settings(**{name: options[name] for name in names})


def open_table(options: dict[str, Any], terminal: Terminal) -> Prepared:
    """Read and prepare the table that the options describe."""
    terminal.stage(f"reading {options['table']}")
    table = read_table(options["table"])
    return prepare(
        table,
        options["target"],
        options["task"],
        drop=options["drop"],
        keep=options["keep"],
        max_rows=options["max_rows"],
        test_size=options["test_size"],
        seed=options["seed"],
    )


def to_file(output: str | None, *inputs: str) -> Path | None:
    """Return the output's path once it is known to be writable and none of the inputs."""
    if output is None:
        return None
    path = Path(output)
    check_writable(path)
    for name in inputs:
        if path.exists() and Path(name).exists() and path.samefile(name):
            raise click.UsageError(f"the output would replace {name}.", click.get_current_context())
    return path


def command_line(context: click.Context) -> str:
    """Return the command as one would type it."""
    words = context.command_path.split()
    for parameter in context.command.params:
        name = parameter.name or ""
        if isinstance(parameter, click.Argument):
            words.append(str(context.params[name]))
        elif context.get_parameter_source(name) == ParameterSource.COMMANDLINE:
            words += _words(parameter.opts[0], context.params[name])
    return shlex.join(words)


def _words(option: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [option]
    values = value if isinstance(value, tuple) else (value,)
    return [word for item in values for word in (option, str(item))]
