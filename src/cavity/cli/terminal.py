"""What the user sees: progress while the work goes on, then the answer."""

from collections.abc import Iterable
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from cavity.tables.plain import to_json


class Terminal:
    """Progress on standard error (none in a pipe), answers on standard output."""

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        self.quiet, self.as_json = quiet, as_json
        console = Console(stderr=True)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
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
        self._progress.reset(self._task, description=text, total=total)

    def advance(self, steps: int) -> None:
        """Show that some more steps are done."""
        self._progress.advance(self._task, steps)

    def answer(self, lines: Iterable[str], numbers: Any) -> None:
        """Print the numbers as JSON if that was asked for, else the lines unless quiet."""
        if self.as_json:
            self.print(to_json(numbers))
        elif not self.quiet:
            self.print("\n".join(lines))

    def print(self, text: str) -> None:
        """Print text even if quiet."""
        self._progress.stop()
        click.echo(text)
