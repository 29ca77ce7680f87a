"""All commands, and how an error becomes one line and an exit code."""

import os
import sys
from collections import Counter
from typing import Any

import click

from cavity import __version__
from cavity.cli.options import Terminal, command_line, opened, print_options, table_options, to_file
from cavity.estimators.columns import columns, visible
from cavity.estimators.validation import is_auto
from cavity.report.analysis import about_inducing, analyse, compare_methods, compared
from cavity.report.parts import curve_of, describe_curve, kernel_text, left_out_of, scores_of
from cavity.report.summary import comparison, curve_lines, quality, summarise
from cavity.report.words import representatives
from cavity.tables.model import fit_model, load_model, save_model, unfitted
from cavity.tables.output import (
    FRAME_SUFFIXES,
    NoTargetError,
    TableError,
    csv_lines,
    json_lines,
    plain,
    write_frames,
    write_text,
)
from cavity.tables.read import SHIPPED, read_table

_PAGE = "report.html"


@click.group(
    epilog="""\b
Examples:
  cavity datasets
  cavity report pima
  cavity report patients.csv --target outcome -o patients.html
  cavity fit patients.csv --target outcome -o patients.model
  cavity predict patients.model new.csv -o answers.csv

TABLE is a CSV, TSV or Parquet file with a header, or the name of a shipped data set.
Exit codes: 0 success; 1 a problem with the data or a file; 2 a wrong command line.""",
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, prog_name="cavity", message="%(prog)s %(version)s")
def app() -> None:
    """Gaussian process models of a table: fit, check, compare, forecast, predict."""


@app.command(
    epilog="""\b
Examples:
  cavity report pima
  cavity report patients.csv --target outcome
  cavity report houses.parquet --target price --drop address -o houses.html
  cavity report patients.csv --target outcome --json > numbers.json

With --json a page is written only if -o is given."""
)
@table_options
@click.option("-o", "--output", metavar="FILE", help=f"The page; by default {_PAGE}.")
@print_options
@click.pass_context
def report(context: click.Context, /, output: str | None, **options: Any) -> None:
    """Fit TABLE and show in one page how good the model is."""
    page = to_file(output or (None if options["as_json"] else _PAGE), options["table"])
    with opened(options) as (terminal, data, settings):
        analysis = analyse(data, settings, command=command_line(context), tell=terminal.stage)
        if page is not None:
            from cavity.report.page import render

            terminal.stage("drawing the page")
            write_text(page, render(analysis))
        terminal.answer([*summarise(analysis), f"The page is in {page}."], analysis)


@app.command(
    epilog="""\b
Examples:
  cavity compare crabs
  cavity compare patients.csv --target outcome --kernel rbf --tune
  cavity compare pima --likelihood logit --json"""
)
@table_options
@click.option(
    "--tune",
    is_flag=True,
    help="Let each method tune the kernel by its own evidence; by default all use the kernel "
    "that --inference finds.",
)
@print_options
def compare(tune: bool, **options: Any) -> None:
    """Compare all inference methods on TABLE. Print evidence, leave-one-out scores and time."""
    with opened(options) as (terminal, data, settings):
        if data.task == "regression":
            problem = "it is a quantity, for which inference is exact: there is nothing to compare."
            raise TableError(data.source, problem, column=data.target)
        terminal.stage("tuning the kernel")
        kernel = unfitted(data, settings).kernel
        if not tune or is_auto(kernel):
            kernel = fit_model(data, settings)[0].kernel_
        terminal.stage("comparing inference methods")
        few = compared(data, settings)
        rows = compare_methods(few, kernel, settings, tune)
        notes = [*data.notes]
        if len(few.y) < len(data.y):
            notes.append(
                f"The methods were compared on a random sample of {len(few.y):,} of "
                f"{len(data.y):,} rows."
            )
        terminal.answer([*notes, *comparison(rows)], {"notes": notes, "comparison": rows})


def _sizes(context: Any, parameter: Any, text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        sizes = [int(word) for word in text.split(",")]
    except ValueError as error:
        raise click.BadParameter("give whole numbers, such as 50,100,200.") from error
    if min(sizes) < 1:
        raise click.BadParameter("every size must be at least 1.")
    return sizes


@app.command(
    epilog="""\b
Examples:
  cavity curve pima
  cavity curve patients.csv --target outcome --sizes 50,100,200
  cavity curve patients.csv --target outcome --ahead 1000,5000 --goal 0.15"""
)
@table_options
@click.option("--sizes", callback=_sizes, metavar="N,N,...", help="Training sizes of the curve.")
@click.option(
    "--ahead",
    callback=_sizes,
    metavar="N,N,...",
    help="Sizes to forecast; by default up to four times the present number of rows.",
)
@click.option(
    "--goal",
    type=click.FloatRange(0.0),
    metavar="ERROR",
    help="Print how many rows this error rate (or mean squared error) is expected to need.",
)
@click.option(
    "--resampling",
    type=click.Choice(["subsample", "bootstrap"]),
    default="subsample",
    help="Draw training sets without or with replacement.",
)
@print_options
def curve(goal: float | None, **options: Any) -> None:
    """Compute the learning curve of TABLE from one fit. Forecast it for more rows."""
    with opened(options) as (terminal, data, settings):
        terminal.stage("tuning the kernel")
        fitted, _ = fit_model(data, settings)
        terminal.stage("computing the learning curve")
        found = curve_of(data, fitted, options["sizes"], options["resampling"])
        about = describe_curve(found, options["ahead"])
        if goal is not None:
            about |= {"goal": goal, "rows_for_goal": found.size_for(error=goal)}
        terminal.answer([*data.notes, *curve_lines(about)], {"notes": data.notes, **about})


@app.command(
    epilog="""\b
Examples:
  cavity fit patients.csv --target outcome -o patients.model
  cavity fit houses.parquet --target price --kernel "matern52 + linear" -o houses.model
  cavity predict patients.model new.csv -o answers.csv

The file holds numbers and names only: opening it runs no code from it."""
)
@table_options
@click.option("-o", "--output", metavar="MODEL", required=True, help="The file to write.")
@print_options
def fit(output: str, **options: Any) -> None:
    """Fit TABLE and save the model to a file."""
    to_file(output, options["table"])
    with opened(options) as (terminal, data, settings):
        terminal.stage("tuning the kernel")
        fitted, warned = fit_model(data, settings)
        predicted = left_out_of(data, fitted)
        left_out, held_out = plain(scores_of(data, fitted, predicted))
        save_model(output, data, fitted, settings)
        answer = {
            "model": output,
            "kernel": kernel_text(fitted.kernel_, data.classes),
            "log_evidence": fitted.log_marginal_likelihood_value_,
            "left_out": left_out,
            "held_out": held_out,
            "inducing": (inducing := about_inducing(fitted)),
            "counts": data.counts,
            "notes": data.notes,
            "warnings": warned,
        }
        few = [representatives(**inducing, rows=len(data.y))] if inducing else []
        lines = [
            *data.notes,
            *few,
            f"Kernel: {answer['kernel']}",
            *quality(left_out, held_out, predicted.how),
        ]
        terminal.answer([*lines, f"The model is in {output}."], answer)


def _known_format(context: Any, parameter: Any, output: str | None) -> str | None:
    if output is not None and not output.lower().endswith(FRAME_SUFFIXES):
        raise click.BadParameter(f"the name must end in one of {', '.join(FRAME_SUFFIXES)}.")
    return output


@app.command(
    epilog="""\b
Examples:
  cavity predict patients.model new.csv -o answers.csv
  cavity predict patients.model new.parquet -o answers.parquet
  cavity predict patients.model new.csv | head

The output has one row for each row of TABLE, in the same order: the predicted class and a
probability for each class, or the predicted value with its standard deviation and 95 % interval."""
)
@click.argument("model")
@click.argument("table")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    callback=_known_format,
    help="CSV, TSV or Parquet file, by its suffix; by default CSV on standard output.",
)
@print_options
def predict(model: str, table: str, output: str | None, as_json: bool, quiet: bool) -> None:
    """Predict every row of TABLE with a MODEL that cavity fit wrote."""
    path = to_file(output, model, table)
    with Terminal(quiet=quiet, as_json=as_json) as terminal:
        terminal.stage(f"opening {model}")
        fitted = load_model(model)
        terminal.stage(f"reading {table}")
        rows = read_table(table, terminal)
        fitted.check(rows)
        unseen: Counter[str] = Counter()
        terminal.stage("predicting", total=rows.height)
        answers = fitted.answers(rows, terminal.advance, unseen)
        if path is None:
            terminal.print_rows(json_lines(answers) if as_json else csv_lines(answers))
            return
        height = write_frames(path, answers)
        lines = [
            f"Column '{name}': {count:,} rows have a value that is not in the training rows."
            for name, count in unseen.items()
        ]
        lines.append(f"{height:,} predictions are in {output}.")
        numbers = {"output": output, "rows": height, "unseen_categories": dict(unseen)}
        terminal.answer(lines, numbers)


@app.command(
    epilog="""\b
Examples:
  cavity datasets
  cavity report crabs"""
)
@print_options
def datasets(as_json: bool, quiet: bool) -> None:
    """List the data sets that can be named in place of a file."""
    found = [
        {
            "name": name,
            "rows": (table := read_table(name)).height,
            "columns": len(table.schema),
            "task": about.task,
            "target": about.target,
            "description": about.description,
        }
        for name, about in SHIPPED.items()
    ]
    with Terminal(quiet=quiet, as_json=as_json) as terminal:
        terminal.answer(columns(list(found[0]), [list(line.values()) for line in found]), found)


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
