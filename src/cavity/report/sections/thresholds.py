"""The section on decisions: thresholds, their costs, and the precision and recall of classes."""

from typing import Any

from cavity.report import charts
from cavity.report.analysis import Analysis, Record
from cavity.report.blocks import Cell, Decision, Figure, Figures, HtmlTable, Note, Section
from cavity.report.sections.common import word_cell
from cavity.report.words import number, percent

_TABLED = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def thresholds(a: Analysis) -> Section | None:
    """Return the section on thresholds, of which a quantity has none."""
    if not a.thresholds:
        return None
    entries = a.thresholds["classes"]
    first = _likeliest(entries)
    blocks: list[Any] = [
        Decision("decision", [entry["class"] for entry in entries], first),
        Figures(_figures(entries[first], a)),
        _per_class_table(a),
        _threshold_table(a, entries[first]),
        Note(_how(a), quiet=True),
    ]
    title = "Where should the threshold be?"
    return Section("thresholds", title, _headline(a, entries[first]), blocks)


def _likeliest(entries: list[Record]) -> int:
    """Return the place of the entry with the most rows."""
    return max(range(len(entries)), key=lambda k: int(entries[k]["rows"]))


def _headline(a: Analysis, entry: Record) -> str:
    caught, alarms = _counts(a, entry, 0.5)
    right = f", and {percent(caught / (caught + alarms))} of its alarms are right" if caught else ""
    return (
        f"A threshold of 50 % finds {percent(caught / entry['rows'])} of the rows of "
        f"{entry['class']}{right}; the area under the ROC curve is {number(entry['auc'], 2)}."
    )


def _counts(a: Analysis, entry: Record, threshold: float) -> tuple[int, int]:
    """Return how many rows of the class, and of others, are called the class."""
    k = a.thresholds["steps"].index(threshold) if a.thresholds else 0
    return entry["caught"][k], entry["alarms"][k]


def _figures(entry: Record, a: Analysis) -> list[Figure]:
    name, share = entry["class"], entry["rows"] / a.n_rows
    roc = charts.trade_off(
        _points(entry["roc"]["false"], entry["roc"]["true"]),
        "share of the other rows called the class",
        "share of the class found",
        [{"x": 0, "y": 0}, {"x": 1, "y": 1}],
    )
    pr = charts.trade_off(
        _points(entry["precision_recall"]["recall"], entry["precision_recall"]["precision"]),
        "share of the class found (recall)",
        "share of the alarms that are right (precision)",
        [{"x": 0, "y": share}, {"x": 1, "y": share}],
    )
    area, average = number(entry["auc"], 3), number(entry["average_precision"], 3)
    where = f"{a.left_out_by}. The ring is the threshold above."
    return [
        Figure(
            "roc",
            roc,
            f"ROC curve, {where} On the dashed line the probability tells nothing.",
            f"ROC curve of {name}: area {area}. The table of thresholds has its numbers.",
        ),
        Figure(
            "precision-recall",
            pr,
            f"Precision and recall, {where} The dashed line is the share of the class.",
            f"Precision and recall of {name}: average precision {average}.",
        ),
    ]


def _points(x: list[float], y: list[float]) -> list[Record]:
    """Return points with three decimals, which are more than a picture shows."""
    return [{"x": round(p, 3), "y": round(q, 3)} for p, q in zip(x, y, strict=True)]


def _per_class_table(a: Analysis) -> HtmlTable:
    rows = [
        [
            word_cell(line["class"]),
            *(Cell(f"{line[key]:,}", line[key]) for key in ("rows", "predicted", "right")),
            *(Cell(percent(line[k], 1), line[k]) for k in ("precision", "recall")),
            *(Cell(number(line[k]), line[k]) for k in ("f1", "auc", "average_precision")),
        ]
        for line in (a.thresholds or {})["per_class"]
    ]
    head = ["class", "rows", "predicted", "right", "precision", "recall", "F1"]
    head += ["area under ROC", "average precision"]
    caption = f"Precision and recall of the most probable class, {a.left_out_by}"
    return HtmlTable("per-class", caption, head, rows)


def _threshold_table(a: Analysis, entry: Record) -> HtmlTable:
    rows = []
    for threshold in _TABLED:
        caught, alarms = _counts(a, entry, threshold)
        called, others = caught + alarms, a.n_rows - entry["rows"]
        counts = (caught, entry["rows"] - caught, alarms, others - alarms)
        precision = caught / called if called else None
        shares = (precision, caught / entry["rows"], 1.0 - alarms / others)
        rows.append(
            [
                Cell(percent(threshold), threshold),
                *(Cell(f"{n:,}", n) for n in counts),
                *(Cell(percent(x, 1), x) for x in shares),
            ]
        )
    head = ["threshold", "found", "missed", "false alarms", "rightly passed over"]
    head += ["precision", "recall", "specificity"]
    return HtmlTable("thresholds", f"Thresholds of the probability of {entry['class']}", head, rows)


def _how(a: Analysis) -> str:
    several = (
        " With several classes each is taken against all others together."
        if len(a.data.classes) > 2
        else ""
    )
    return (
        f"All counts are of the {a.n_rows:,} training rows, each predicted without itself "
        f"({a.left_out_by}).{several} A threshold that was chosen for its cost on these rows will "
        "do a little worse on new ones; the one that the costs alone prescribe, cost of a false "
        "alarm by the sum of both costs, will not if the probabilities are right."
    )
