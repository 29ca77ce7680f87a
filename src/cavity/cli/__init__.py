"""The command line: report, compare, curve, fit, predict, datasets."""

import sys
from collections.abc import Sequence

__all__ = ["main"]

_NEEDS = {"click", "rich", "polars", "jinja2", "altair", "vl_convert"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``cavity``; by default those of the process's command line.

    Returns
    -------
    int
        0 for success, 1 for a problem with the data or a file, 2 if the command line cannot be
        understood or a package is not installed.

    Examples
    --------
    >>> from cavity.cli import main
    >>> main(["--version"])
    cavity 0.1.0
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
