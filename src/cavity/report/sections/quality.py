"""How good the model is."""

from typing import Any

from cavity.report import charts
from cavity.report.analysis import Analysis, Record
from cavity.report.blocks import Cell, Counts, Figure, Figures, HtmlTable, Note, Section
from cavity.report.examples import records
from cavity.report.sections.common import Measure, agreeing, cell, interval, measures, word_cell
from cavity.report.words import count, in_hundred, number, percent, plus_minus

_MOST_PICTURES, _MOST_POINTS = 6, 2000
_BASELINE = "no inputs"
_COLUMNS = {
    "error": "error rate",
    "rmse": "root mean square error",
    "mae": "mean absolute error",
    "r2": "R²",
    "log_loss": "log loss",
    "brier": "Brier score",
}


def quality(a: Analysis) -> Section:
    """Return the section on scores and calibration."""
    figures = Figures([_score_figure(a, measure) for measure in measures(a)])
    blocks = _class_blocks(a) if a.is_classes else _quantity_blocks(a)
    title = "How good is the model?"
    return Section("quality", title, _headline(a), [figures, _score_table(a), *blocks])


def _headline(a: Analysis) -> str:
    s = a.best_scores
    if not a.is_classes:
        return (
            f"On a new example the model is off by about {number(s['rmse'])}. Always predicting "
            f"the mean would be off by {number(s['baseline_rmse'])}."
        )
    if s["error"] == 0.0:
        ours = f"On {s['rows']:,} new examples the model was never wrong."
    else:
        ours = f"On a new example the model is wrong about {in_hundred(s['error'])}."
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
    text = f"{title.capitalize()}: {values}."
    return Figure(
        f"score-{measure.score}",
        charts.scores(rows, title, measure.format),
        f"{title.capitalize()} (smaller is better), with 95 % intervals.",
        text,
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
    )


def _quantity_blocks(a: Analysis) -> list[Any]:
    bins = a.calibration[0]["bins"]
    text = "Coverage: " + "; ".join(
        f"{percent(b['predicted'])} intervals contain {percent(b['observed'])} of the rows"
        for b in bins
    )
    coverage = Figure(
        "coverage",
        charts.agreement(bins, "nominal coverage of the interval", "share of rows inside"),
        "Nominal coverage of central intervals and the share of rows inside, leave-one-out.",
        text,
    )
    trusted = Note(
        f"Can the intervals be trusted? {percent(bins[-1]['observed'])} of the rows lie in their "
        f"{percent(bins[-1]['predicted'])} intervals."
    )
    rows = records(a.points)
    drawn = rows[:: max(1, -(-len(rows) // _MOST_POINTS))]
    drawn = [row | {"z": (row["label"] - row["prediction"]) / row["std"]} for row in drawn]
    return [Figures([_scatter(a, drawn), _residuals(drawn)]), trusted, Figures([coverage])]


def _scatter(a: Analysis, rows: list[Record]) -> Figure:
    target = a.data.target
    r2 = number(a.left_out["r2"], 2)
    text = f"{target} against its leave-one-out prediction, {len(rows):,} rows, R² {r2}."
    return Figure(
        "scatter",
        charts.predicted_and_seen(rows, target),
        f"{target} in each row and its prediction from the other rows.",
        text,
    )


def _residuals(rows: list[Record]) -> Figure:
    inside = sum(abs(row["z"]) <= 1.96 for row in rows)
    text = (
        "Errors in units of their predicted standard deviation; "
        f"{inside:,} of {len(rows):,} lie within 1.96."
    )
    return Figure(
        "residuals",
        charts.residuals(rows),
        "The error of each prediction in units of its standard deviation. The band should contain "
        f"95 % of the rows; it contains {percent(inside / len(rows))}.",
        text,
    )
