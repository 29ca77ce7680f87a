"""Options that several commands share, and what the user sees while they run."""

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from cavity.estimators.columns import visible
from cavity.estimators.validation import check_offers
from cavity.inference import METHODS, method
from cavity.likelihoods import Probit, likelihood
from cavity.tables.model import WORDS, Settings, parse_kernel
from cavity.tables.offsets import Offset
from cavity.tables.output import check_writable, to_json
from cavity.tables.prepare import Prepared, prepare
from cavity.tables.read import read_table
from cavity.tables.table import faster
from cavity.tables.task import TASKS, WITH_CLASSES

_CLASS_METHODS = sorted(name for name, cls in METHODS.items() if cls.serves(Probit()))


class _Rows(ProgressColumn):
    """How many steps are done, of how many."""

    def render(self, task: Task) -> Text:
        """Return the numbers, or nothing if they are not known."""
        return Text("" if task.total is None else f"{task.completed:,.0f} of {task.total:,.0f}")


class Terminal:
    """Progress on standard error (none in a pipe), answers on standard output."""

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        self.quiet, self.as_json = quiet, as_json
        console = Console(stderr=True)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            _Rows(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._task = self._progress.add_task("", total=None)

    def __enter__(self) -> "Terminal":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def stage(self, text: str, total: int | None = None) -> None:
        """Show what happens next and, if it is known, the number of its steps."""
        self._progress.reset(self._task, description=visible(" ".join(text.split())), total=total)

    def advance(self, steps: int) -> None:
        """Show that some more steps are done."""
        self._progress.advance(self._task, steps)

    def passing(self, done: int, total: int | None) -> None:
        """Show how far a pass over the table is."""
        self._progress.update(self._task, completed=done, total=total)

    def answer(self, lines: Iterable[str], numbers: Any) -> None:
        """Print the numbers as JSON if that was asked for, else the lines unless quiet."""
        if self.as_json:
            self.print(to_json(numbers))
        elif not self.quiet:
            self.print(visible("\n".join(lines)))

    def print(self, text: str) -> None:
        """Print text even if quiet."""
        self._progress.stop()
        click.echo(text)

    def print_rows(self, parts: Iterable[str]) -> None:
        """Print a text part after part, even if quiet; as it is unless on a terminal."""
        shown = visible if sys.stdout.isatty() else str
        for part in parts:
            self._progress.stop()
            click.echo(shown(part), nl=False)


def _options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds all these options."""
    return lambda function: reduce(lambda f, option: option(f), reversed(options), function)


def _kernel(context: Any, parameter: Any, text: str) -> str:
    try:
        parse_kernel(text, 1)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return text


def _test_size(context: Any, parameter: Any, size: float) -> float:
    if size < 0.0 or (size > 1.0 and size != int(size)) or size == 1.0:
        raise click.BadParameter("give a share below 1, such as 0.25, or a number of rows.")
    return size


def _words(context: Any, parameter: Any, text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(word.strip() for word in text.split(","))


def _task_of(options: dict[str, Any]) -> str | None:
    """Return the task that the options say or imply; refuse those that do not go together."""
    task: str | None = options["task"]
    added = [name for name in ("exposure", "offset") if options[name] is not None]
    implied = {"--order": "ordinal" if options["order"] else None}
    implied["--exposure"] = "counts" if options["exposure"] else None
    problem = ""
    for option, needed in implied.items():
        if needed is not None and task not in (None, needed):
            problem = f"{option} is for --task {needed}, not for --task {task}."
        task = needed or task
    if len(added) == 2:
        problem = "give --exposure or --offset, not both: the log of an exposure is an offset."
    elif added and task in WITH_CLASSES:
        problem = f"--{added[0]} is not for --task {task}."
    if problem:
        raise click.UsageError(problem, click.get_current_context())
    return task


def _offset_of(options: dict[str, Any]) -> Offset | None:
    """Return the column that is added to the latent function."""
    column = options["exposure"] or options["offset"]
    return Offset(column, is_exposure=options["exposure"] is not None) if column else None


def whole_numbers(context: Any, parameter: Any, text: str | None) -> list[int] | None:
    """Return the sizes in a text such as 50,100,200."""
    if text is None:
        return None
    try:
        sizes = [int(word) for word in text.split(",")]
    except ValueError as error:
        raise click.BadParameter("give whole numbers, such as 50,100,200.") from error
    if min(sizes) < 1:
        raise click.BadParameter("every size must be at least 1.")
    return sizes


def _encoding(context: Any, parameter: Any, name: str | None) -> str | None:
    try:
        # Of no bytes, no codec would be looked for.
        b"    ".decode(name or "utf-8")
    except (LookupError, ValueError) as error:
        raise click.BadParameter("use the name of one, such as cp1252, latin-1, utf-16.") from error
    return name


encoding_option = click.option(
    "--encoding",
    callback=_encoding,
    metavar="NAME",
    help="Encoding of a text table; by default UTF-8, or what a byte-order mark says.",
)
"""How a text table is read."""

table_options = _options(
    click.argument("table"),
    click.option("--target", metavar="COLUMN", help="Column to predict."),
    click.option(
        "--task",
        type=click.Choice(TASKS),
        help="What the target is: classes, a quantity, counts, classes in an order, or a quantity "
        "with outliers. By default a rule decides and, if it could be wrong, says so.",
    ),
    click.option(
        "--order",
        callback=_words,
        metavar="A,B,...",
        help="The classes of --task ordinal, the lowest first; numbers have their own order.",
    ),
    click.option(
        "--exposure",
        metavar="COLUMN",
        help="For counts: what they are in proportion to, such as a time or an area.",
    ),
    click.option(
        "--offset",
        metavar="COLUMN",
        help="A column that is added to the latent function as it is: for counts, to the log of "
        "their mean.",
    ),
    click.option(
        "--drop", multiple=True, metavar="COLUMN", help="Leave this column out; may be repeated."
    ),
    click.option(
        "--keep",
        multiple=True,
        metavar="COLUMN",
        help="Use this column even if it looks like an identifier or free-form text; may be "
        "repeated.",
    ),
    click.option(
        "--rows",
        "--max-rows",
        "max_rows",
        type=click.IntRange(10),
        metavar="N",
        help="Train on N rows, drawn at random, and hold out others; by default all are used.",
    ),
    click.option(
        "--test-size",
        type=float,
        default=0.0,
        show_default=False,
        callback=_test_size,
        help="Share (0.25) or number (500) of rows to hold out.",
    ),
    encoding_option,
    click.option("--seed", type=click.IntRange(0), default=0),
    click.option(
        "--kernel",
        default="auto",
        callback=_kernel,
        help=f"Words joined by + and *: {', '.join(WORDS)}; auto chooses among constant, linear, "
        "rbf and matern52 with a length scale for each input, and their sums.",
    ),
    click.option(
        "--inference",
        type=click.Choice(_CLASS_METHODS),
        default="ep",
        help="For classes and counts; regression is exact.",
    ),
    click.option(
        "--likelihood",
        type=click.Choice(["probit", "logit", "step"]),
        default="probit",
        help="For classification; other tasks have their own.",
    ),
    click.option(
        "--restarts",
        type=click.IntRange(0),
        default=0,
        help="Additional random starts of the tuning.",
    ),
    click.option(
        "--inducing",
        type=click.IntRange(1),
        metavar="M",
        help="Let M representative points stand for the rows; by default that is done for large "
        "tables only.",
    ),
)
"""TABLE, how to read it, and how to model it."""

print_options = _options(
    click.option("--json", "as_json", is_flag=True, help="Print JSON to standard output."),
    click.option("--quiet", is_flag=True, help="Print nothing but errors, and JSON if asked for."),
)
"""What to print."""


@contextmanager
def opened(options: dict[str, Any]) -> Iterator[tuple[Terminal, Prepared, Settings]]:
    """Check the settings, then read and prepare the table that the options describe."""
    try:
        check_offers(likelihood(options["likelihood"]), method(options["inference"]))
    except ValueError as error:
        raise click.UsageError(str(error), click.get_current_context()) from error
    task = _task_of(options)
    modelling = ("kernel", "inference", "likelihood", "restarts", "seed", "inducing")
    settings = Settings(**{name: options[name] for name in modelling})
    with Terminal(quiet=options["quiet"], as_json=options["as_json"]) as terminal:
        terminal.stage(f"reading {options['table']}")
        reading = ("target", "drop", "keep", "max_rows", "test_size", "seed", "order")
        table = faster(read_table(options["table"], terminal, options["encoding"]))
        try:
            given = {name: options[name] for name in reading} | {"task": task}
            data = prepare(table, offset=_offset_of(options), **given)
            yield terminal, data, settings
        finally:
            table.close()


def to_file(output: str | None, *inputs: str) -> Path | None:
    """Return the output's path, once it is known to be writable and not one of the inputs."""
    if output is None:
        return None
    path = Path(output)
    check_writable(path)
    for name in inputs:
        if path.exists() and Path(name).exists() and path.samefile(name):
            raise click.UsageError(f"the output would replace {name}.", click.get_current_context())
    return path


def command_line(context: click.Context) -> str:
    """Return the command as the user would type it."""
    words = context.command_path.split()
    for parameter in context.command.params:
        name, option = parameter.name or "", parameter.opts[0]
        value = context.params[name]
        if isinstance(parameter, click.Argument):
            words.append(str(value))
        elif context.get_parameter_source(name) == ParameterSource.COMMANDLINE:
            values = value if isinstance(value, tuple) else (value,)
            words += [option] if value is True else [w for v in values for w in (option, str(v))]
    return shlex.join(words)
