"""The command, and how an error becomes one line and an exit code."""

import os
import sys

import click

from cavity import __version__
from cavity.cli.commands import COMMANDS
from cavity.estimators.columns import visible
from cavity.tables.output import NoTargetError


@click.group(
    epilog="""\b
Examples:
  cavity datasets
  cavity report pima
  cavity report patients.csv --target outcome -o patients.html
  cavity fit patients.csv --target outcome -o patients.model
  cavity predict patients.model new.csv -o answers.csv
  cavity suggest patients.model unlabelled.csv -k 20

TABLE is a CSV, TSV or Parquet file with a header, - for text on standard input, or the name of
a shipped data set. Text may be packed by gzip.

Rows are counted from 1, the first below the header, in messages and in results.

Exit codes: 0 success; 1 a problem with the data or a file; 2 a wrong command line;
130 interrupted.""",
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, prog_name="cavity", message="%(prog)s %(version)s")
def app() -> None:
    """Gaussian process models of a table: fit, check, compare, forecast, predict."""


for _command in COMMANDS:
    app.add_command(_command)


def run(arguments: list[str]) -> int:
    """Run a command; print an error as one line."""
    try:
        return int(app.main(arguments, prog_name="cavity", standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "cavity"
        return _fail(f"{error.format_message()} (try {path} --help)", 2)
    except click.Abort:
        return _fail("interrupted.", 130)
    except BrokenPipeError:
        # The reader has closed the pipe; the rest of the output must not fail at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        return _fail("there is not enough memory: sample the table with --rows.", 1)
    except NoTargetError as error:
        return _fail(str(error), 2)
    except (ValueError, OSError) as error:
        return _fail(str(error), 1)


def _fail(message: str, code: int) -> int:
    click.echo(visible(f"cavity: {' '.join(message.split())}"), err=True)
    return code
