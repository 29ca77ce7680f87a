"""How much more data would help."""

from cavity.report import charts
from cavity.report.analysis import Analysis, Record
from cavity.report.blocks import Figure, Figures, Goal, Note, Section
from cavity.report.sections.common import Measure, interval, measures
from cavity.report.words import number, percent

_FORECASTS = {"error": "forecast", "log_loss": "log_loss_forecast"}
# A relative change of the error below this is not worth the labelling.
_HARDLY = 0.02


def more(a: Analysis) -> Section:
    """Return the section on learning curves."""
    note = Note(
        "Up to the number of your rows, the curve is the average error after training on random "
        "parts of them, computed by theory from a single fit. Beyond, it is continued as a power "
        "law; its level combines the error on your rows with the error that the model predicts "
        f"for itself. The band is a {percent(a.curve['level'])} interval. The kernel stays as it "
        "was tuned, and new rows are assumed to be like the present ones.",
        quiet=True,
    )
    both = measures(a)
    figures = Figures([_figure(a, measure) for measure in both])
    goals = [_goal(a, measure) for measure in both]
    title = "How much would more data help?"
    return Section("more", title, _headline(a), [figures, *goals, note])


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


def _headline(a: Analysis) -> str:
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


def _figure(a: Analysis, measure: Measure) -> Figure:
    line, title = _line(a, measure), measure.title
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
        f"{title.capitalize()} on new examples. Solid: up to your rows. Dashed: forecast."
        + (" The dot is the score on the held-out rows." if checks else ""),
        text,
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
    start = (inside[-1]["value"] + min(p["value"] for p in line)) / 2
    return Goal(
        name=measure.curve,
        before="To be wrong at most" if is_rate else f"For a {measure.title} of",
        after="times in 100," if is_rate else ",",
        start=number(100 * start if is_rate else start).replace(",", "").replace("−", "-"),
        unit=0.01 if is_rate else 1.0,
        n_rows=a.n_rows,
        sizes=[*(p["size"] for p in inside), *(size for size, _ in beyond)],
        values=[*(p["value"] for p in inside), *(value for _, value in beyond)],
    )
