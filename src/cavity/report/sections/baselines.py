"""The section that compares the model with simpler ones, and with boosting."""

import math
from typing import Any

from cavity.report import charts
from cavity.report.analysis import Analysis, Record
from cavity.report.baselines import BOOSTED, NONE
from cavity.report.blocks import Cell, Figure, Figures, HtmlTable, Note, Section
from cavity.report.sections.common import cell, interval, word_cell
from cavity.report.words import capitalised, number, plus_minus

_TITLE = "Would a simpler model do?"
_OURS = "this model"
_SCORES = {
    "error": "error rate",
    "rmse": "root mean square error",
    "log_loss": "log loss",
    "r2": "R²",
}


def baselines(a: Analysis) -> Section:
    """Return the section on other methods."""
    if a.baselines["skipped"]:
        return Section("baselines", _TITLE, f"Not compared. {a.baselines['skipped']}")
    blocks: list[Any] = [Figures([_figure(a)]), _table(a), *(Note(t, quiet=True) for t in _how(a))]
    return Section("baselines", _TITLE, answer(a), blocks)


def answer(a: Analysis) -> str:
    """Return in a sentence whether a simpler model does as well."""
    methods = {m["name"]: m for m in a.baselines["methods"]}
    simple = [m for m in methods.values() if m["verdict"] != "worse" and m["name"] != BOOSTED]
    best, tell = min(methods.values(), key=_loss), "Yes: as far as these rows tell,"
    ours = f"this model's is {number(a.best_scores['log_loss'])}."
    if best["verdict"] == "better":
        return f"{capitalised(best['name'])} predicts better on these rows: {_lost(best)}, {ours}"
    if simple and simple[0]["name"] == NONE:
        return f"{tell} a guess without any inputs does as well."
    if simple:
        return f"{tell} {simple[0]['name']} does as well: {_lost(simple[0])}, {ours}"
    if methods[BOOSTED]["verdict"] == "as good":
        return f"No simpler one, but {BOOSTED} does as well: {_lost(methods[BOOSTED])}, {ours}"
    return f"No: the best of the other methods is {best['name']}; {_lost(best)}, and {ours}"


def _lost(method: Record) -> str:
    return f"its log loss is {number(_loss(method))}"


def _loss(method: Record) -> float:
    """Return the log loss, of held-out rows if there are any; none is worse than any."""
    found = (method["held_out"] or method["left_out"])["log_loss"]
    return math.inf if found is None else float(found)


def _figure(a: Analysis) -> Figure:
    rows = [{"name": _OURS, "ours": True, **interval(a.best_scores, "log_loss")}]
    for method in a.baselines["methods"]:
        scores = method["held_out"] or method["left_out"]
        if scores["log_loss"] is not None:
            rows.append({"name": method["name"], "ours": False, **interval(scores, "log_loss")})
    text = "Log loss: " + "; ".join(f"{r['name']} {number(r['value'])}" for r in rows)
    where = "held-out rows" if a.held_out else "left-out rows"
    caption = f"Log loss on {where} (smaller is better), with 95 % intervals."
    return Figure("baselines", charts.scores(rows, "log loss", ",.3~g"), caption, text)


def _table(a: Analysis) -> HtmlTable:
    keys = [key for key in _SCORES if key in a.left_out]
    rows = [_row(_OURS, a.left_out_by, a.left_out, keys)]
    if a.baselines["fewer"]:
        rows.append(_row(_OURS, "learning curve", _fewer(a), keys))
    methods, counts = a.baselines["methods"], "held_out" if a.held_out else "left_out"
    for m in methods:
        rows.append(_row(m["name"], a.baselines["how"], m["left_out"], keys, m, counts))
    if a.held_out:
        rows.append(_row(_OURS, "held-out rows", a.held_out, keys))
        rows += [_row(m["name"], "held-out rows", m["held_out"], keys, m, counts) for m in methods]
    head = ["method", "scored by", "rows", *(_SCORES[k] for k in keys), "log loss above ours"]
    return HtmlTable("baselines", "Scores of all methods with standard errors", head, rows)


def _row(
    name: str,
    how: str,
    scores: Record,
    keys: list[str],
    method: Record | None = None,
    counts: str = "",
) -> list[Cell]:
    more = cell(None)
    if method and scores is method[counts]:
        excess = method["excess"]
        more = Cell(plus_minus(excess, method["excess_se"], 2), excess)
    return [
        Cell(name, name, strong=name == _OURS),
        word_cell(how),
        Cell(f"{scores['rows']:,}", scores["rows"]),
        *(Cell(plus_minus(scores.get(k), scores.get(f"{k}_se")), scores.get(k)) for k in keys),
        more,
    ]


def _fewer(a: Analysis) -> Record:
    found = a.baselines["fewer"]
    error = {"error": found["error"]} if a.is_classes else {"rmse": math.sqrt(found["error"])}
    return {"rows": found["rows"], "log_loss": found["log_loss"], **error}


def _how(a: Analysis) -> list[str]:
    how, fewer = a.baselines["how"], a.baselines["fewer"]
    fair = "Our predictions are of the same kind."
    if fewer:
        fair = (
            "Each of its models is trained on fewer rows than ours, which leave out one at a time: "
            f"the line “learning curve” says how good ours is with {fewer['rows']:,} rows. "
        )
        if not a.held_out:
            fair += "The difference between our two lines is taken off in the last column."
    linear = (
        "Logistic regression (with the penalty that is the best in the other folds)"
        if a.is_classes
        else "Ridge regression (with its penalty by leave-one-out)"
    )
    spread = (
        ""
        if a.is_classes
        else " To have a log loss, methods that predict a number get the standard deviation that "
        "their errors have in the other folds."
    )
    return [
        f"The other methods have the same inputs and are scored by {how}. {fair}",
        f"{linear} and {BOOSTED} are scikit-learn's; boosting stops when a tenth of the rows, put "
        "aside if they are enough, gets worse. A method does as well if its log loss is less than "
        f"two standard errors, 0.005 or one by the number of rows above ours.{spread}",
    ]
