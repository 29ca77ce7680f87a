"""How good the model is."""

from typing import Any

from cavity.report import charts
from cavity.report.blocks import Cell, Counts, Figure, Figures, Note, Section, Table
from cavity.report.sections.common import best_scores, cell, error_key, is_classes, points
from cavity.report.words import count, in_hundred, number, percent, plus_minus

__all__ = ["quality"]

Json = dict[str, Any]
_MOST_PICTURES, _MOST_POINTS = 6, 2000


def quality(a: Json) -> Section:
    """Return the section on scores and calibration."""
    blocks = [Figures(_score_figures(a)), _score_table(a)]
    blocks += _class_blocks(a) if is_classes(a) else _quantity_blocks(a)
    return Section("quality", "How good is the model?", _headline(a), blocks)


def _headline(a: Json) -> str:
    s = best_scores(a)
    if is_classes(a) and s["error"] == 0.0:
        return (
            f"On {s['rows']:,} examples that it had not seen the model was never wrong; always "
            f"naming the commonest class would be wrong {in_hundred(s['baseline_error'])}."
        )
    if is_classes(a):
        return (
            f"On a new example the model is wrong about {in_hundred(s['error'])}; always naming "
            f"the commonest class would be wrong {in_hundred(s['baseline_error'])}."
        )
    return (
        f"On a new example the model is off by about {number(s['rmse'])}; always naming the mean "
        f"would be off by {number(s['baseline_rmse'])}."
    )


def _score_figures(a: Json) -> list[Figure]:
    rate = is_classes(a)
    names = {
        error_key(a): (
            "share of wrong answers" if rate else "root mean square error",
            ".1%" if rate else ",.3~g",
        ),
        "log_loss": ("log loss", ",.3~g"),
    }
    return [_score_figure(a, key, title, form) for key, (title, form) in names.items()]


def _rows_of(a: Json, key: str) -> list[Json]:
    found = []
    for name, scores in (("leave-one-out", a["left_out"]), ("held-out rows", a["held_out"])):
        if scores:
            value, reach = scores[key], 1.96 * (scores[f"{key}_se"] or 0.0)
            found.append(
                {
                    "name": name,
                    "value": value,
                    "low": value - reach,
                    "high": value + reach,
                    "ours": True,
                }
            )
    base = best_scores(a)[f"baseline_{key}"]
    return [*found, {"name": "no inputs", "value": base, "low": base, "high": base, "ours": False}]


def _score_figure(a: Json, key: str, title: str, form: str) -> Figure:
    rows = _rows_of(a, key)
    text = (
        f"{title.capitalize()}: "
        + "; ".join(f"{r['name']} {number(r['value'])}" for r in rows)
        + "."
    )
    return Figure(
        f"score-{key}",
        charts.scores(rows, title, form, text),
        f"{title.capitalize()}, smaller is better, with 95 % intervals.",
        text,
    )


def _score_table(a: Json) -> Table:
    keys = ["error", "log_loss", "brier"] if is_classes(a) else ["rmse", "mae", "r2", "log_loss"]
    names = {
        "error": "wrong answers",
        "log_loss": "log loss",
        "brier": "Brier score",
        "rmse": "root mean square error",
        "mae": "mean absolute error",
        "r2": "R²",
    }
    rows = []
    for name, scores in (("leave-one-out", a["left_out"]), ("held-out rows", a["held_out"])):
        if scores:
            cells = [Cell(plus_minus(scores[k], scores.get(f"{k}_se")), scores[k]) for k in keys]
            rows.append([Cell(name, name), Cell(f"{scores['rows']:,}", scores["rows"]), *cells])
    base = best_scores(a)
    missing = Cell("no inputs", "no inputs")
    rows.append(
        [
            missing,
            Cell(f"{base['rows']:,}", base["rows"]),
            *(cell(base.get(f"baseline_{k}")) for k in keys),
        ]
    )
    return Table(
        "scores", "Scores with standard errors", ["", "rows", *(names[k] for k in keys)], rows
    )


def _class_blocks(a: Json) -> list[Any]:
    ranked = sorted(
        a["calibration"],
        key=lambda entry: -sum(line["count"] for line in entry["bins"] if line["observed"] > 0),
    )
    shown = ranked[:_MOST_PICTURES] if len(ranked) > _MOST_PICTURES else a["calibration"]
    inside = [_agrees(line) for entry in a["calibration"] for line in entry["bins"]]
    blocks: list[Any] = [
        Note(
            f"Can the probabilities be trusted? Stated and seen agree, within the 95 % interval, "
            f"in {sum(inside)} of {len(inside)} groups of rows."
        ),
        Figures([_calibration_figure(a, k, entry) for k, entry in enumerate(shown)]),
    ]
    if len(shown) < len(ranked):
        blocks.append(
            Note(f"Of {len(ranked)} classes the commonest {len(shown)} are drawn.", quiet=True)
        )
    return [*blocks, _confusion(a)]


def _agrees(line: Json) -> bool:
    return bool(line["observed_low"] <= line["predicted"] <= line["observed_high"])


def _calibration_figure(a: Json, k: int, entry: Json) -> Figure:
    name = entry["class"]
    text = f"Calibration of {name}: " + "; ".join(
        f"stated {percent(b['predicted'])}, seen {percent(b['observed'])} "
        f"of {count(b['count'], 'row')}"
        for b in entry["bins"]
    )
    return Figure(
        f"calibration-{k}",
        charts.agreement(
            entry["bins"], f"stated probability of {name}", f"how often it was {name}", text
        ),
        f"Stated probability of {name} against how often it was so, leave-one-out. "
        "On the dashed line the two agree.",
        text,
    )


def _confusion(a: Json) -> Counts:
    return Counts(
        "confusion",
        "True class (rows) and predicted class (columns), leave-one-out",
        a["data"]["classes"],
        a["confusion"],
    )


def _quantity_blocks(a: Json) -> list[Any]:
    bins = a["calibration"][0]["bins"]
    nine = bins[-1]
    text = "Coverage: " + "; ".join(
        f"{percent(b['predicted'])} intervals hold {percent(b['observed'])} of rows" for b in bins
    )
    coverage = Figure(
        "coverage",
        charts.agreement(bins, "stated coverage of the interval", "share of rows inside", text),
        "Stated coverage of central intervals against the share of rows inside, leave-one-out.",
        text,
    )
    rows = points(a)
    said = Note(
        f"Can the intervals be trusted? {percent(nine['observed'])} of rows lie in their "
        f"{percent(nine['predicted'])} intervals."
    )
    drawn = rows[:: max(1, -(-len(rows) // _MOST_POINTS))]
    drawn = [row | {"z": (row["label"] - row["prediction"]) / row["std"]} for row in drawn]
    return [Figures([_scatter(a, drawn), _residuals(drawn)]), said, Figures([coverage])]


def _scatter(a: Json, rows: list[Json]) -> Figure:
    r2 = number(a["left_out"]["r2"], 2)
    text = (
        f"{a['data']['target']} against its leave-one-out prediction, {len(rows):,} rows, R² {r2}."
    )
    return Figure(
        "scatter",
        charts.predicted_and_seen(rows, a["data"]["target"], text),
        "Each row against what the other rows predict for it.",
        text,
    )


def _residuals(rows: list[Json]) -> Figure:
    inside = sum(abs(row["z"]) <= 1.96 for row in rows)
    text = (
        "Errors in units of their predicted standard deviation; "
        f"{inside:,} of {len(rows):,} lie within 1.96."
    )
    return Figure(
        "residuals",
        charts.residuals(rows, text),
        "By how many of its own standard deviations each row is off. The band should hold 95 %; "
        f"it holds {percent(inside / len(rows))}.",
        text,
    )
