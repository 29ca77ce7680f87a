"""The sections on the model: more data, the inference method, and what was done."""

from typing import Any

from cavity.report import charts
from cavity.report.analysis import Analysis, Record
from cavity.report.blocks import Cell, Code, Facts, Figure, Figures, Goal, HtmlTable, Note, Section
from cavity.report.sections.common import (
    Measure,
    behind,
    cell,
    count_cell,
    interval,
    measures,
    share_cell,
    word_cell,
)
from cavity.report.words import capitalised, count, number, percent, representatives, taken_as

# In nats per example; a smaller difference between predictions has no practical effect.
_SAME = 0.005
_HEAD = ("method", "log evidence", "correction", "log loss")
_END = ("seconds", "converged")
_FORECASTS = {"error": "forecast", "log_loss": "log_loss_forecast"}
# A smaller relative change of the error does not justify labelling more rows.
_HARDLY = 0.02


def more(a: Analysis) -> Section:
    """Return the section on learning curves."""
    tuning = (
        "Its left end may be too low: what tuning the kernel on few rows costs is not fully "
        "counted."
        if a.model.inducing
        else "It counts what it costs to tune the kernel on fewer rows."
    )
    note = Note(
        "Up to the number of your rows, the curve is the average error after training on random "
        f"parts of them, computed by theory. {tuning} It ends at the leave-one-out error. From "
        "there it is continued as a power law, with the present kernel and new rows like the "
        f"present ones. The band is a {percent(a.curve['level'])} interval.",
        quiet=True,
    )
    both = measures(a)
    figures = Figures([_curve_figure(a, measure) for measure in both])
    goals = [_goal(a, measure) for measure in both]
    title = "How much would more data help?"
    return Section("more", title, _more_headline(a), [figures, *goals, note])


def now_and_twice(a: Analysis, measure: Measure) -> tuple[Record, Record] | None:
    """Return value, low and high for the present rows and for twice as many, if tabulated."""
    line = {point["size"]: point for point in _line(a, measure)}
    return (line[a.n_rows], line[2 * a.n_rows]) if {a.n_rows, 2 * a.n_rows} <= set(line) else None


def _line(a: Analysis, measure: Measure) -> list[Record]:
    """Return the curve and its forecast by size; for squared errors, the roots."""
    inside = [
        {"size": size, "value": value, "low": value, "high": value}
        for size, value in zip(a.curve["sizes"], a.curve[measure.curve], strict=True)
    ]
    # A forecast replaces a point of the same size: it has an interval as well.
    found = {p["size"]: p for p in [*inside, *a.curve[_FORECASTS[measure.curve]]]}
    return [
        {"size": size, **{k: measure.of_curve(found[size][k]) for k in ("value", "low", "high")}}
        for size in sorted(found)
    ]


def _more_headline(a: Analysis) -> str:
    if not a.verdict["helps"]:
        return (
            f"Nothing can be promised: with {a.n_rows:,} rows the inputs do not help, so that more "
            "rows of the same kind may not help either."
        )
    error = measures(a)[0]
    found = now_and_twice(a, error)
    if not found:
        return "The curve shows how the error falls with the number of rows."
    now, then = found
    if now["value"] == 0.0:
        return f"With {a.n_rows:,} rows the expected error is zero: more data cannot lower it."
    before, after = error.show(now["value"]), error.show(then["value"])
    change = 1.0 - then["value"] / now["value"]
    if change < _HARDLY:
        return (
            f"More rows of the same kind would hardly lower the error: it is {before} now, and "
            f"{after} is expected with twice as many."
        )
    return (
        f"With twice as many rows the error is expected to fall from {before} to {after}, a "
        f"change of {percent(change)}."
    )


def _curve_figure(a: Analysis, measure: Measure) -> Figure:
    line, title = _line(a, measure), measure.title
    show = share_cell if measure.score == "error" else cell
    first, last = line[0], line[-1]
    text = (
        f"Learning curve: {title} against the number of rows, from {measure.show(first['value'])} "
        f"at {first['size']:,} rows to an expected {measure.show(last['value'])} at "
        f"{last['size']:,}."
    )
    checks = []
    if a.held_out:
        point = {"name": "held-out rows", "size": a.n_rows}
        checks.append(point | interval(a.held_out, measure.score))
    return Figure(
        f"curve-{measure.curve}",
        charts.learning(line, a.n_rows, checks, title, measure.format),
        f"{capitalised(title)} on new examples. Solid: up to your rows. Dashed: forecast."
        + (" The dot is the score on the held-out rows." if checks else ""),
        text,
        behind(
            f"curve-{measure.curve}",
            line,
            rows=("size", count_cell),
            **{measure.title.replace(" ", "_"): ("value", show)},
            **{"from": ("low", show), "to": ("high", show)},
        ),
    )


def _goal(a: Analysis, measure: Measure) -> Goal:
    line = _line(a, measure)
    inside, far = [p for p in line if p["size"] <= a.n_rows], a.curve["far"]
    beyond = [
        (size, measure.of_curve(value))
        for size, value in zip(far["size"], far[measure.curve], strict=True)
        if size > a.n_rows
    ]
    is_rate = measure.score == "error"
    unit = 0.01 if is_rate else 1.0
    now, best = inside[-1]["value"] / unit, min(p["value"] for p in line) / unit
    return Goal(
        name=measure.curve,
        before="To be wrong at most" if is_rate else f"For a {measure.title} of",
        after="times in 100," if is_rate else ",",
        start=_between(now, best),
        unit=unit,
        n_rows=a.n_rows,
        sizes=[*(p["size"] for p in inside), *(size for size, _ in beyond)],
        values=[*(p["value"] for p in inside), *(value for _, value in beyond)],
    )


def _between(now: float, best: float) -> str:
    """Return a number about half of the way, with as many digits as that takes."""
    middle, near = (now + best) / 2, abs(now - best) / 4
    texts = [f"{float(f'{middle:.{digits}g}'):.6g}" for digits in range(3, 7)]
    return next((text for text in texts if 0.0 < near >= abs(float(text) - middle)), texts[0])


def methods(a: Analysis) -> Section:
    """Return the section that compares inference methods."""
    title = "Which inference method?"
    if not a.comparison and a.is_classes:
        return Section("methods", title, "The methods were not compared, as --no-comparison says.")
    if not a.comparison:
        given = ", given the representative points" * bool(a.model.inducing)
        exact = f"Regression with Gaussian noise is exact{given}: there is nothing to choose."
        if a.data.task == "robust":
            exact = "For outliers there is one method, a variational bound: nothing to choose."
        return Section("methods", title, exact)
    drawn = [_evidence_bar(row, a) for row in a.comparison if row["log_evidence"] is not None]
    text = "Log evidence: " + "; ".join(f"{r['name']} {number(r['value'], 4)}" for r in drawn)
    figure = Figure(
        "evidence",
        charts.evidences(drawn),
        "Log evidence at the same kernel. Where the next correction is known, a bar of its size "
        "shows how far the value may be off.",
        text,
    )
    few = a.comparison_rows < a.n_rows
    sample = f" The methods were run on a random sample of {a.comparison_rows:,} rows." * few
    note = Note(
        "Log loss and error are leave-one-out at this kernel, from one fit each. Unlike the "
        "scores at the top they do not count that the left-out row has helped to tune the "
        f"kernel.{sample}",
        quiet=True,
    )
    return Section(
        "methods", title, _methods_headline(a), [Figures([figure]), _methods_table(a), note]
    )


def _evidence_bar(row: Record, a: Analysis) -> Record:
    name, value, reach = row["inference"], row["log_evidence"], abs(row["correction"] or 0.0)
    ends = {"name": name, "value": value, "low": value - reach, "high": value + reach}
    return row | ends | {"ours": name == a.model.inference}


def _methods_headline(a: Analysis) -> str:
    scored = [row for row in a.comparison if row["loo_log_loss"] is not None]
    if not scored:
        return "No method gave leave-one-out predictions."
    ranked = sorted(scored, key=lambda row: row["loo_log_loss"])
    best, used = ranked[0], a.model.inference
    ours = next((row for row in ranked if row["inference"] == used), best)
    own, least, most = (number(row["loo_log_loss"]) for row in (ours, best, ranked[-1]))
    if ours["loo_log_loss"] - best["loo_log_loss"] < _SAME:
        return (
            f"The method used, {used}, predicts as well as any: at this kernel its leave-one-out "
            f"log loss is {own}, and the worst is {most}."
        )
    return (
        f"{best['inference']} predicts better than {used}, which was used here: the leave-one-out "
        f"log losses are {least} and {own}."
    )


def _methods_table(a: Analysis) -> HtmlTable:
    losses = [row["loo_log_loss"] for row in a.comparison if row["loo_log_loss"] is not None]
    rows = [
        [
            word_cell(row["inference"]),
            _fixed(row["log_evidence"], 3),
            _fixed(row["correction"], 4),
            _fixed(row["loo_log_loss"], 4, strong=row["loo_log_loss"] == min(losses)),
            _fixed(row["loo_error"], 4),
            cell(row["seconds"], 2),
            word_cell("yes" if row["converged"] else "no"),
        ]
        for row in a.comparison
    ]
    error = "error rate" if a.is_classes else "squared error"
    head = [*_HEAD, error, *_END]
    return HtmlTable("methods-table", "All methods at the same kernel", head, rows)


def _fixed(x: float | None, places: int, *, strong: bool = False) -> Cell:
    return Cell("–" if x is None else f"{x:,.{places}f}".replace("-", "−"), x, strong)


def record(a: Analysis) -> Section:
    """Return the section with all settings and decisions."""
    missing = a.data.counts["missing_values"]
    headline = (
        f"The model was trained on {count(a.n_rows, 'row')} and "
        f"{count(a.data.counts['inputs'], 'input')}; "
        f"{'no value was' if not missing else count(missing, 'value was', 'values were')} missing."
    )
    blocks: list[Any] = [Facts(_facts(a))]
    if a.is_classes:
        blocks.append(_class_table(a))
    if a.model.inducing:
        blocks.append(Note(representatives(**a.model.inducing, rows=a.n_rows)))
    blocks += [Note(note) for note in (*a.data.notes, *a.model.warnings)]
    if a.command:
        blocks += [Note("To make this page again:"), Code(a.command)]
    return Section("record", "What was done?", headline, blocks)


def _facts(a: Analysis) -> list[tuple[str, str]]:
    data, model, counts = a.data, a.model, a.data.counts
    correction = model.evidence_correction
    bar = "" if correction is None else f" (correction {number(correction, 2)})"
    failed = "" if model.converged else "; it did not converge"
    rows = (
        f"{counts['rows']:,} in the table, {counts['rows_without_target']:,} without a target, "
        f"{counts['rows_trained_on']:,} for training, {counts['rows_held_out']:,} held out"
    )
    used = f"{counts['columns_used']:,} used as {count(counts['inputs'], 'input')}"
    return [
        ("Table", data.source),
        ("Target", f"{data.target}, {taken_as(data.task)}"),
        ("Rows", rows),
        ("Columns", f"{counts['columns']:,}, of which {used}"),
        ("Missing values", f"{counts['missing_values']:,}"),
        ("Kernel", model.kernel),
        ("Inference", f"{model.inference}, {model.likelihood} likelihood{failed}"),
        ("Log evidence", f"{number(model.log_evidence, 5)}{bar}"),
        ("Time for tuning", f"{number(model.seconds, 2)} s"),
        ("Seed", str(a.settings["seed"])),
        ("Versions", ", ".join(f"{name} {version}" for name, version in a.versions.items())),
    ]


def _class_table(a: Analysis) -> HtmlTable:
    counts = a.data.class_counts
    rows = [
        [word_cell(name), Cell(f"{n:,}", n), Cell(percent(n / sum(counts)), n)]
        for name, n in zip(a.data.classes, counts, strict=True)
    ]
    return HtmlTable("classes", "Classes of the training rows", ["class", "rows", "share"], rows)
