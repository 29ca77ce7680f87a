"""What the reader sees while the work goes on: progress on a terminal, nothing in a pipe."""

from types import TracebackType

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

__all__ = ["Terminal"]


class Terminal:
    """Progress on standard error, answers on standard output.

    Parameters
    ----------
    quiet : bool
        No progress, and no answers but those for machines.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def stage(self, text: str, total: int | None = None) -> None:
        """Say what happens next, and of how many steps it consists if that is known."""
        self._progress.reset(self._task, description=text, total=total)

    def advance(self, steps: int) -> None:
        """Say how many more steps are done."""
        self._progress.advance(self._task, steps)

    def answer(self, text: str) -> None:
        """Print for people."""
        self._progress.stop()
        if not self.quiet:
            click.echo(text.rstrip("\n"))

    def hand_over(self, text: str) -> None:
        """Print for machines, quiet or not."""
        self._progress.stop()
        click.echo(text)
