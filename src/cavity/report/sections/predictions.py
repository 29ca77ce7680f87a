"""The sections on predictions: how good, and how certain."""

from collections.abc import Callable
from functools import partial
from typing import Any

from cavity.report import charts
from cavity.report.analysis import Analysis, Record
from cavity.report.blocks import Cell, Counts, Figure, Figures, HtmlTable, Note, Section
from cavity.report.parts import SURE
from cavity.report.sections.common import (
    Measure,
    agreeing,
    behind,
    cell,
    count_cell,
    interval,
    measures,
    share_cell,
    word_cell,
)
from cavity.report.words import capitalised, count, in_hundred, number, percent, plus_minus

_MOST_PICTURES, _MOST_INPUTS = 6, 8
_BASELINE = "no inputs"
_COLUMNS = {
    "error": "error rate",
    "rmse": "root mean square error",
    "mae": "mean absolute error",
    "r2": "R²",
    "d2": "D²",
    "ranks_off": "ranks off",
    "log_loss": "log loss",
    "brier": "Brier score",
}
Column = tuple[str, str, Callable[[Any], Cell]]
"""A column of a table of rows: its head, a field of the rows, and how to show it."""


def quality(a: Analysis) -> Section:
    """Return the section on scores and calibration."""
    figures = Figures([_score_figure(a, measure) for measure in measures(a)])
    blocks = _class_blocks(a) if a.is_classes else _quantity_blocks(a)
    title = "How good is the model?"
    return Section("quality", title, _quality_headline(a), [figures, _score_table(a), *blocks])


def _quality_headline(a: Analysis) -> str:
    s = a.best_scores
    if not a.verdict["helps"]:
        return (
            "The inputs do not help: as far as these rows tell, predictions that ignore them are "
            "as good."
        )
    if a.data.task == "robust":
        return (
            f"On a new example the model is off by {number(s['mae'])} on average. Always "
            f"predicting the middle would be off by {number(s['baseline_mae'])}."
        )
    if not a.is_classes:
        return (
            f"On a new example the model is off by about {number(s['rmse'])}. Always predicting "
            f"the mean would be off by {number(s['baseline_rmse'])}."
        )
    if s["error"] == 0.0:
        ours = f"On {s['rows']:,} new examples the model was never wrong."
    else:
        ours = f"On a new example the model is wrong about {in_hundred(s['error'])}."
    if "ranks_off" in s:
        ours += f" It is {number(s['ranks_off'], 2)} ranks off on average."
    return (
        f"{ours} Always predicting the most common class would be wrong "
        f"{in_hundred(s['baseline_error'])}."
    )


def _score_figure(a: Analysis, measure: Measure) -> Figure:
    title, base = measure.title, a.best_scores[f"baseline_{measure.score}"]
    rows = [
        {"name": name, "ours": True, **interval(scores, measure.score)}
        for name, scores in a.scored.items()
    ]
    rows.append({"name": _BASELINE, "ours": False, "value": base, "low": base, "high": base})
    values = "; ".join(f"{r['name']} {number(r['value'])}" for r in rows)
    return Figure(
        f"score-{measure.score}",
        charts.scores(rows, title, measure.format),
        f"{capitalised(title)} (smaller is better), with 95 % intervals.",
        f"{capitalised(title)}: {values}.",
    )


def _score_table(a: Analysis) -> HtmlTable:
    keys = [key for key in _COLUMNS if key in a.left_out]
    rows = [
        [
            word_cell(name),
            Cell(f"{scores['rows']:,}", scores["rows"]),
            *(Cell(plus_minus(scores[k], scores.get(f"{k}_se")), scores[k]) for k in keys),
        ]
        for name, scores in a.scored.items()
    ]
    base = a.best_scores
    baseline = [cell(base.get(f"baseline_{k}")) for k in keys]
    rows.append([word_cell(_BASELINE), Cell(f"{base['rows']:,}", base["rows"]), *baseline])
    head = ["", "rows", *(_COLUMNS[k] for k in keys)]
    return HtmlTable("scores", "Scores with standard errors", head, rows)


def _class_blocks(a: Analysis) -> list[Any]:
    entries, inside = a.calibration, agreeing(a)
    if len(entries) > _MOST_PICTURES:
        entries = sorted(entries, key=_seen, reverse=True)[:_MOST_PICTURES]
    blocks: list[Any] = [
        Note(
            f"Can the probabilities be trusted? In {inside[0]} of {inside[1]} groups of rows the "
            "predicted probability lies in the 95 % interval of the observed share."
        ),
        Figures([_calibration_figure(k, entry) for k, entry in enumerate(entries)]),
    ]
    if len(entries) < len(a.calibration):
        few = f"Only the {len(entries)} most common of {len(a.calibration)} classes are shown."
        blocks.append(Note(few, quiet=True))
    caption = "True class (rows) and predicted class (columns), leave-one-out"
    return [*blocks, Counts("confusion", caption, a.data.classes, a.confusion or [])]


def _seen(entry: Record) -> int:
    """Return the number of rows in groups in which the class occurs."""
    return sum(line["count"] for line in entry["bins"] if line["observed"] > 0)


def _calibration_figure(k: int, entry: Record) -> Figure:
    name, bins = entry["class"], entry["bins"]
    text = f"Calibration of {name}: " + "; ".join(
        f"predicted {percent(b['predicted'])}, observed {percent(b['observed'])} "
        f"of {count(b['count'], 'row')}"
        for b in bins
    )
    return Figure(
        f"calibration-{k}",
        charts.agreement(bins, f"predicted probability of {name}", f"share of {name}"),
        f"Predicted probability of {name} and its share among the rows, leave-one-out. On the "
        "dashed line the two are equal.",
        text,
        _agreement_table(f"calibration-{k}", bins),
    )


def _agreement_table(name: str, bins: list[Record]) -> HtmlTable:
    keys = {"from": "observed_low", "to": "observed_high"}
    shares = {head: (keys.get(head, head), share_cell) for head in ("predicted", "observed", *keys)}
    return behind(name, bins, **shares, rows=("count", count_cell))


def _quantity_blocks(a: Analysis) -> list[Any]:
    bins = a.calibration[0]["bins"]
    text = "Coverage: " + "; ".join(
        f"{percent(b['predicted'])} intervals contain {percent(b['observed'])} of the rows"
        for b in bins
    )
    coverage = Figure(
        "coverage",
        charts.agreement(bins, "nominal coverage of the interval", "share of rows inside"),
        "Nominal coverage of central intervals and the share of rows inside, leave-one-out."
        + " A count on the edge of an interval counts in part." * (a.data.task == "counts"),
        text,
        _agreement_table("coverage", bins),
    )
    trusted = Note(
        f"Can the intervals be trusted? {percent(bins[-1]['observed'])} of the rows lie in their "
        f"{percent(bins[-1]['predicted'])} intervals."
    )
    return [_error_figures(a), trusted, Figures([coverage])]


def _error_figures(a: Analysis) -> Figures:
    target, r2, shown = a.data.target, number(a.left_out["r2"], 2), len(a.points["row"])
    inside, few = a.certainty["inside"], _sampled(a)
    scatter = Figure(
        "scatter",
        charts.predicted_and_seen(a.points, target),
        f"{target} in each row and its prediction from the other rows.{few}",
        f"{target} against its leave-one-out prediction, {shown:,} rows, R² {r2}.",
    )
    residuals = Figure(
        "residuals",
        charts.residuals(),
        f"The error of each prediction in {_unit(a)}. The band should contain "
        f"95 % of the rows; it contains {percent(inside)}.{few}",
        "Errors in units of their predicted standard deviation; "
        f"{round(inside * a.n_rows):,} of {a.n_rows:,} lie within 1.96.",
    )
    return Figures([scatter, residuals])


def _unit(a: Analysis) -> str:
    if a.data.task == "regression":
        return "units of its standard deviation"
    return "standard deviations of a Gaussian in which a target is as unlikely"


def _sampled(a: Analysis) -> str:
    """Return the sentence that says that not all rows are drawn, if that is so."""
    shown = len(a.points["row"])
    return f" Shown are a random sample of {shown:,} of {a.n_rows:,} rows." * (shown < a.n_rows)


def certainty(a: Analysis) -> Section:
    """Return the section on the certainty of predictions."""
    headline, caption, spec = _class_certainty(a) if a.is_classes else _quantity_certainty(a)
    bars = _bars(a.certainty["counts"], a.certainty["edges"])
    show = share_cell if a.is_classes else cell
    ends = {"from": ("lower", show), "to": ("upper", show)}
    numbers = behind("sureness", bars, kind=("kind", word_cell), **ends, rows=("count", count_cell))
    figure = Figure("sureness", spec, caption, headline, numbers)
    table = example_table(a, "least-certain", "The least certain rows", a.least_certain)
    title = "How certain are the predictions?"
    return Section("certainty", title, headline, [Figures([figure]), table])


def _class_certainty(a: Analysis) -> tuple[str, str, Record]:
    sure, right = a.certainty["sure"], a.certainty["sure_right"]
    headline = f"No row is predicted with a probability of {percent(SURE)} or more."
    if sure:
        headline = (
            f"{percent(sure / a.n_rows)} of the rows are predicted with a probability of at least "
            f"{percent(SURE)}, and {right:,} of these {sure:,} predictions are right."
        )
    caption = "Probability of the predicted class (leave-one-out), for right and wrong predictions."
    title = "probability of the predicted class"
    return headline, caption, _histogram(a, title, ".0%")


def _quantity_certainty(a: Analysis) -> tuple[str, str, Record]:
    middle, high = (number(a.certainty[key], 2) for key in ("middle", "high"))
    headline = (
        f"Half of the predictions of {a.data.target} have a standard deviation of at most "
        f"{middle}, and 95 in 100 of {'hardly more' if high == middle else 'at most ' + high}."
    )
    caption = "Standard deviations of the leave-one-out predictions."
    return headline, caption, _histogram(a, "predicted standard deviation", ",.2~g")


def _histogram(a: Analysis, title: str, form: str) -> Record:
    kinds, edges = a.certainty["counts"], a.certainty["edges"]
    return charts.histogram(_bars(kinds, edges), [*kinds], title, form)


def _bars(kinds: dict[str, list[int]], edges: list[float]) -> list[Record]:
    """Return the bars of a stacked histogram, the first kind at the bottom."""
    bars, below = [], [0] * (len(edges) - 1)
    for kind, counts in kinds.items():
        bars += [
            {
                "lower": edges[k],
                "upper": edges[k + 1],
                "kind": kind,
                "count": count,
                "below": below[k],
                "above": below[k] + count,
            }
            for k, count in enumerate(counts)
            if count
        ]
        below = [b + count for b, count in zip(below, counts, strict=True)]
    return bars


def example_table(
    a: Analysis, name: str, caption: str, examples: list[Record], *more: Column
) -> HtmlTable:
    """Return a table of rows: target, prediction, more columns, and the most important inputs."""
    if a.is_classes:
        target, show = "label", word_cell
        certainty: Column = ("probability", "probability", share_cell)
    else:
        target, show = a.data.target, partial(cell, digits=4)
        certainty = ("±", "std", cell)
    columns = [(target, "label", show), ("prediction", "prediction", show), certainty, *more]
    inputs = _shown_inputs(a)
    rows = [
        [
            Cell(str(example["row"]), example["row"]),
            *(show(example[field]) for _, field, show in columns),
            *(_value_cell(a.inputs[str(example["row"])][key]) for key in inputs),
        ]
        for example in examples
    ]
    return HtmlTable(name, caption, ["row", *(head for head, *_ in columns), *inputs], rows)


def _value_cell(text: str) -> Cell:
    try:
        return Cell(text.replace("-", "−"), float(text))
    except ValueError:
        return word_cell(text)


def _shown_inputs(a: Analysis) -> list[str]:
    """Return the most important columns, in the table's order."""
    names = list(next(iter(a.inputs.values())))
    chosen = [line["feature"] for line in a.importance[:_MOST_INPUTS]]
    return [name for name in names if name in chosen]
