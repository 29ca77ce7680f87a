"""The command that predicts the rows of a table."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.core import ParameterSource

from cavity.cli.options import Terminal, encoding_option, print_options, to_file
from cavity.tables.model import Model, load_model
from cavity.tables.notation import own_columns
from cavity.tables.output import (
    FRAME_SUFFIXES,
    TableError,
    csv_lines,
    json_lines,
    near_miss,
    plain,
    write_frames,
)
from cavity.tables.read import read_table


def known_format(context: Any, parameter: Any, output: str | None) -> str | None:
    """Return the name of a table to be written, whose suffix says in which format."""
    if output is not None and not output.lower().endswith(FRAME_SUFFIXES):
        raise click.BadParameter(f"the name must end in one of {', '.join(FRAME_SUFFIXES)}.")
    return output


def _level(context: Any, parameter: Any, level: float) -> float:
    if not 0.0 < level < 1.0:
        raise click.BadParameter("give a number between 0 and 1, such as 0.9.")
    return level


def unseen_lines(unseen: Mapping[str, int]) -> list[str]:
    """Return what there is to say about categories that the model has not seen."""
    return [
        f"Column '{name}': {count:,} rows have a value that is not in the training rows."
        for name, count in unseen.items()
    ]


@click.command(
    epilog="""\b
Examples:
  cavity predict patients.model new.csv -o answers.csv
  cavity predict patients.model new.csv --carry patient_id,ward -o answers.csv
  cavity predict houses.model new.parquet --level 0.9 -o answers.parquet
  cavity predict patients.model followed_up.csv --score
  cut -d, -f1-9 new.csv | cavity predict patients.model - | head

The output has one row for each row of TABLE, in the same order: the columns to carry, then the
predicted class and a probability for each class, or the predicted value with its standard
deviation and interval."""
)
@click.argument("model")
@click.argument("table")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    callback=known_format,
    help="CSV, TSV or Parquet file, by its suffix; by default CSV on standard output.",
)
@click.option(
    "--carry",
    multiple=True,
    metavar="COLUMN,COLUMN",
    help="Copy these columns of TABLE into the output; all copies all of them.",
)
@click.option(
    "--level",
    type=float,
    default=0.95,
    callback=_level,
    help="For a quantity: the probability that a new observation is between lower and upper.",
)
@click.option(
    "--score/--no-score",
    default=None,
    help="Score the predictions by the answers in TABLE; without -o print only the scores. By "
    "default that is done with -o if TABLE has the target column.",
)
@encoding_option
@print_options
@click.pass_context
def predict(context: click.Context, /, model: str, table: str, **options: Any) -> None:
    """Predict every row of TABLE with a MODEL that cavity fit wrote."""
    output, level = options["output"], options["level"]
    path = to_file(output, model, table)
    with Terminal(quiet=options["quiet"], as_json=options["as_json"]) as terminal:
        terminal.stage(f"opening {model}")
        fitted = load_model(model)
        if fitted.classes and context.get_parameter_source("level") == ParameterSource.COMMANDLINE:
            raise click.UsageError("--level is for a quantity: classes have no interval.", context)
        terminal.stage(f"reading {table}")
        rows = read_table(table, terminal, options["encoding"], fitted.used())
        scored = options["score"]
        scored = bool(path and fitted.target in rows.schema) if scored is None else scored
        fitted.check(rows, scored)
        carry = _carried(options["carry"], rows, fitted)
        marks = fitted.marks(rows.source, level) if scored else None
        unseen: Counter[str] = Counter()
        terminal.stage("predicting", total=rows.height)
        answers = fitted.answers(
            rows, terminal.advance, unseen, level=level, carry=carry, marks=marks
        )
        if path is None and marks is None:
            terminal.print_rows(json_lines(answers) if options["as_json"] else csv_lines(answers))
            return
        write_frames(path, answers) if path else deque(answers, maxlen=0)
        numbers = {"output": output, "rows": rows.height, "unseen_categories": dict(unseen)}
        numbers |= {"scores": plain(marks.result())} if marks else {}
        terminal.answer(_lines(numbers, fitted.target), numbers)


def _carried(words: Sequence[str], table: Any, model: Model) -> list[str]:
    """Return the columns that the words name; raise an error if they cannot be in the output."""
    have = own_columns(table)
    names = [name for word in words for name in ([word] if word in have else word.split(","))]
    names = have if words == ("all",) else list(dict.fromkeys(map(str.strip, names)))
    for name in names:
        if name not in have:
            problem = f"there is no such column to carry{near_miss(name, have) or '.'}"
            raise TableError(table.source, problem, column=name)
        if name in model.answer_names():
            problem = "cannot be carried, because a column of the answers has this name."
            raise TableError(table.source, problem, column=name)
    return names


def _lines(numbers: dict[str, Any], target: str) -> list[str]:
    lines = unseen_lines(numbers["unseen_categories"])
    lines += _score_lines(numbers["scores"], numbers["rows"], target) if "scores" in numbers else []
    written = f"{numbers['rows']:,} predictions are in {numbers['output']}."
    return [*lines, written] if numbers["output"] else lines


def _score_lines(scores: dict[str, Any], rows: int, target: str) -> list[str]:
    missing, strange = scores["rows_without_target"], scores.get("rows_of_other_classes", 0)
    why = [f"no value of '{target}': {missing:,}"] if missing else []
    why += [f"a class that the model does not know: {strange:,}"] if strange else []
    reasons = f" ({'; '.join(why)})" if why else ""
    lines = [f"Scored {scores['rows']:,} of {rows:,} rows{reasons}."]
    if not scores["rows"]:
        return lines
    key = "rmse" if "rmse" in scores else "error"
    parts = [f"{name.replace('_', ' ')} {_with_error(scores, name)}" for name in (key, "log_loss")]
    if key == "error":
        return [
            *lines,
            f"  {', '.join(parts)}, Brier score {scores['brier']:.3f}",
            f"  calibration: the predicted class has probability {scores['confidence']:.3f} on "
            f"average, and is right in {1.0 - scores['error']:.3f} of the rows",
        ]
    fit = "" if scores["r2"] is None else f", R² {scores['r2']:.3f}"
    held = (
        f"  the {100 * scores['level']:g} % intervals hold {scores['coverage']:.1%} of the values"
    )
    return [*lines, f"  {', '.join(parts)}{fit}", held]


def _with_error(scores: dict[str, Any], key: str) -> str:
    error = scores[f"{key}_se"]
    if scores[key] is None:
        return "infinite"
    return f"{scores[key]:.3f}" + ("" if error is None else f" ± {error:.3f}")
