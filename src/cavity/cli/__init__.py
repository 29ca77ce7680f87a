"""The command line: report, compare, curve, fit, predict, suggest, datasets."""

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["main"]

_NEEDS = {"click", "rich", "polars", "jinja2", "vl_convert"}
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, given the words after ``cavity``; return its exit code.

    It is 0 for success, 1 for a problem with the data or a file, 2 if the command line cannot be
    understood or a package is not installed, and 130 after an interrupt. By default the words are
    those of the process.

    >>> from cavity.cli import main
    >>> main(["--version"])
    cavity 0.2.0
    0
    """
    try:
        with _held_interrupts():
            from cavity.cli.app import run
        return run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        # A terminal has just shown ^C; click, too, begins a line after it.
        sys.stderr.write("\ncavity: interrupted.\n")
        return _INTERRUPTED
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _NEEDS:
            raise
        sys.stderr.write(
            f"cavity: the command needs {error.name}, which is not installed: "
            'pip install "cavity[report]"\n'
        )
        return 2


@contextmanager
def _held_interrupts() -> Iterator[None]:
    """Raise a first interrupt at the end, and a second one at once.

    In the middle of an import some would be reported, with a traceback, and swallowed.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    came: list[int] = []

    def hold(number: int, frame: Any) -> None:
        came.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt
