"""The command line: report, compare, curve, fit, predict, suggest, datasets."""

import sys
from collections.abc import Sequence

__all__ = ["main"]

_NEEDS = {"click", "rich", "polars", "jinja2", "vl_convert"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, given the words after ``cavity``; return its exit code.

    It is 0 for success, 1 for a problem with the data or a file, 2 if the command line cannot be
    understood or a package is not installed. By default the words are those of the process.

    >>> from cavity.cli import main
    >>> main(["--version"])
    cavity 0.2.0
    0
    """
    try:
        from cavity.cli.app import run

        return run(sys.argv[1:] if arguments is None else list(arguments))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _NEEDS:
            raise
        sys.stderr.write(
            f"cavity: the command needs {error.name}, which is not installed: "
            'pip install "cavity[report]"\n'
        )
        return 2
