"""An analysis as plain text, for a terminal or a log."""

from collections.abc import Iterable

from cavity.estimators.columns import columns
from cavity.model_selection.suspects import in_words
from cavity.report.analysis import Analysis, Record
from cavity.report.parts import LEVEL
from cavity.report.sections.baselines import answer
from cavity.report.sections.checks import headline
from cavity.report.sections.outliers import outlier_sentences
from cavity.report.words import representatives, taken_as

_MOST_INPUTS = 10


def summarise(analysis: Analysis) -> list[str]:
    """Return a page of plain text, line by line."""
    sample = f"; {analysis.comparison_rows:,} of the rows"
    sample *= analysis.comparison_rows < analysis.n_rows
    methods = (
        f"Which inference method? (leave-one-out scores at the kernel above{sample}; "
        "that the row left out has helped to tune it is not counted)"
    )
    paragraphs = [
        _data(analysis),
        _model(analysis),
        [*quality(analysis.left_out, analysis.held_out, analysis.left_out_by), *_verdict(analysis)],
        _indented("Is anything odd?", _checks(analysis)),
        _indented("Would a simpler model do?", _baselines(analysis)),
        _importance(analysis),
        _indented(methods, comparison(analysis.comparison)),
        _indented("Would more data help?", curve_lines(analysis.curve)),
        _indented(
            "Which rows to check first?", [*_suspects(analysis), *outlier_sentences(analysis)]
        ),
    ]
    return [line for lines in paragraphs if lines for line in (*lines, "")]


def _indented(title: str, lines: Iterable[str]) -> list[str]:
    found = [f"  {line}" for line in lines]
    return [title, *found] if found else []


def _data(analysis: Analysis) -> list[str]:
    data, counts = analysis.data, analysis.data.counts
    test = f" and {counts['rows_held_out']:,} test" if counts["rows_held_out"] else ""
    classes = f" ({', '.join(data.classes)})" if data.classes else ""
    title = (
        f"{data.source}: {counts['rows_trained_on']:,} training{test} rows, "
        f"{counts['inputs']} inputs, predicting {data.target}{classes} {taken_as(data.task)}."
    )
    return [title, *(f"  {note}" for note in data.notes)]


def _model(analysis: Analysis) -> list[str]:
    model = analysis.model
    correction = model.evidence_correction
    error_bar = "" if correction is None else f" (second-order correction {correction:+.3f})"
    few = [representatives(**model.inducing, rows=analysis.n_rows)] if model.inducing else []
    return [
        *few,
        f"Kernel: {model.kernel}",
        f"Log evidence {model.log_evidence:.2f}{error_bar}, "
        f"{model.inference} with {model.likelihood} likelihood, {model.seconds:.1f} s.",
    ]


def _verdict(analysis: Analysis) -> list[str]:
    none = "  The inputs do not help: as far as these rows tell, a guess without them is as good."
    return [] if analysis.verdict["helps"] else [none]


def quality(left_out: Record, held_out: Record | None, how: str) -> list[str]:
    """Return the scores of the model, and those of a prediction without inputs."""
    key = "error" if "error" in left_out else "rmse"
    rows = [(how, left_out), ("on the test rows", held_out)]
    lines = [
        f"  {name + ':':34s}{key} {_with_error(scores, key)}, "
        f"log loss {_with_error(scores, 'log_loss')}{_more(scores)}"
        for name, scores in rows
        if scores
    ]
    # As on the page: on the test rows, if there are any.
    best = held_out or left_out
    baseline = (
        f"  {'without any inputs:':34s}{key} {best[f'baseline_{key}']:.3f}, "
        f"log loss {best['baseline_log_loss']:.3f}"
    )
    return ["How good is it?", *lines, baseline]


def _more(scores: Record) -> str:
    """Return the scores that only some tasks have."""
    found = {"ranks_off": "ranks off", "d2": "D²"}
    return "".join(f", {name} {scores[key]:.3f}" for key, name in found.items() if key in scores)


def _with_error(scores: Record, key: str) -> str:
    error = scores[f"{key}_se"]
    return f"{scores[key]:.3f}" + ("" if error is None else f" ± {error:.3f}")


def _checks(analysis: Analysis) -> list[str]:
    found = [c for c in analysis.checks if c["status"] == "found"]
    more = ["docs/checks.md explains what each code means."] * bool(found)
    return [headline(analysis), *(f"{c['code']} {c['title']}: {c['text']}" for c in found), *more]


def _baselines(analysis: Analysis) -> list[str]:
    """Return the scores of other methods on the rows that count, and the answer."""
    methods = analysis.baselines["methods"]
    if not methods:
        return [f"Not compared. {analysis.baselines['skipped']}"]
    key = "error" if analysis.is_classes else "rmse"
    found = [("this model", analysis.best_scores)]
    found += [(m["name"], m["held_out"] or m["left_out"]) for m in methods]
    lines = [[name, *(_with_error(scores, k) for k in (key, "log_loss"))] for name, scores in found]
    return [*columns(["", key, "log loss"], lines), answer(analysis)]


def _importance(analysis: Analysis) -> list[str]:
    cells = [
        [r["feature"], *(f"{r[key]:.1%}" for key in ("importance", "low", "high"))]
        for r in analysis.importance[:_MOST_INPUTS]
    ]
    title = f"Which inputs matter? (share of the predictions lost without, {LEVEL:.0%} interval)"
    more = len(analysis.importance) - len(cells)
    rest = [f"... and {more} more" for _ in range(more > 0)]
    return _indented(title, [*columns(["", "share", "from", "to"], cells), *rest])


def comparison(rows: list[Record]) -> list[str]:
    """Return a comparison of inference methods as lines of text, or none for no rows."""
    formats = {
        "inference": "{}",
        "log_evidence": "{:.3f}",
        "correction": "{:+.3f}",
        "loo_log_loss": "{:.4f}",
        "loo_error": "{:.4f}",
        "seconds": "{:.2f}",
    }
    header = [key.removeprefix("loo_").replace("_", " ") for key in formats]
    cells = [
        ["" if row[key] is None else form.format(row[key]) for key, form in formats.items()]
        + [row["converged"]]
        for row in rows
    ]
    return columns([*header, "converged"], cells) if rows else []


def curve_lines(about: Record) -> list[str]:
    """Return a learning curve and its forecasts as lines of text."""
    cells = [
        [f"{size:,}", error, loss, "", "average over subsets"]
        for size, error, loss in zip(about["sizes"], about["error"], about["log_loss"], strict=True)
    ]
    for f, loss in zip(about["forecast"], about["log_loss_forecast"], strict=True):
        if f["size"] > about["rows"]:
            ends = f"{f['low']:.4g} to {f['high']:.4g}"
            cells.append([f"{f['size']:,}", f["value"], loss["value"], ends, "forecast"])
    interval = f"{about['level']:.0%} interval"
    lines = columns(["rows", about["measure"], "log loss", interval, ""], cells)
    if "goal" in about:
        rows = about["rows_for_goal"]
        reached = "out of reach" if rows is None else f"expected from {rows:,} rows on"
        lines.append(f"The goal, {about['measure']} {about['goal']:g}, is {reached}.")
    return lines


def _suspects(analysis: Analysis) -> list[str]:
    w, what = analysis.wrong_labels, "labels" if analysis.is_classes else "outliers"
    said = in_words(*(w[name] for name in ("count", "low", "high", "rows", "level")))
    number = f"{'wrong ' * analysis.is_classes}{what}: {said}"
    # Of targets with Gaussian noise other sentences say which are outliers.
    first = [number] if analysis.outliers is None else []
    return [*first, *map(_suspect, analysis.suspects[:5])]


def _suspect(found: Record) -> str:
    if "z" in found:
        return (
            f"row {found['row']}: its value is {found['label']:g}; the other rows predict "
            f"{found['prediction']:.4g} ± {found['std']:.2g}"
        )
    return (
        f"row {found['row']}: given the other rows, its label {found['label']} has a probability "
        f"of {found['probability_of_label']:.1%}"
    )
