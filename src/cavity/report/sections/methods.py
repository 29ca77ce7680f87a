"""Which inference method to use."""

from typing import Any

from cavity.report import charts
from cavity.report.blocks import Cell, Figure, Figures, Note, Section, Table
from cavity.report.sections.common import cell
from cavity.report.words import number

__all__ = ["methods"]

Json = dict[str, Any]
# In nats an example: below this nobody could tell the predictions apart.
_SAME = 0.005


def methods(a: Json) -> Section:
    """Return the section that compares inference methods."""
    title = "Which inference method?"
    if not a["comparison"]:
        exact = "Regression with Gaussian noise is exact: there is nothing to choose."
        return Section("methods", title, exact)
    rows = [_bar(row, a["model"]["inference"]) for row in a["comparison"]]
    drawn = [row for row in rows if row["log_evidence"] is not None]
    text = "Log evidence: " + "; ".join(
        f"{r['inference']} {number(r['log_evidence'], 4)}" for r in drawn
    )
    figure = Figure(
        "evidence",
        charts.evidences(drawn, text),
        "Log evidence at the same kernel. Where the next correction is known, a bar of its size "
        "shows how far the value may be off.",
        text,
    )
    return Section("methods", title, _headline(a), [Figures([figure]), _table(a), _note()])


def _bar(row: Json, chosen: str) -> Json:
    reach = abs(row["correction"] or 0.0)
    center = row["log_evidence"]
    ends = {} if center is None else {"low": center - reach, "high": center + reach}
    return row | ends | {"chosen": row["inference"] == chosen}


def _headline(a: Json) -> str:
    ranked = sorted(
        (row for row in a["comparison"] if row["loo_log_loss"] is not None),
        key=lambda row: row["loo_log_loss"],
    )
    if not ranked:
        return "No method gave leave-one-out predictions."
    best, used = ranked[0], a["model"]["inference"]
    ours = next((row for row in ranked if row["inference"] == used), best)
    if ours["loo_log_loss"] - best["loo_log_loss"] < _SAME:
        return (
            f"The one used, {used}, predicts as well as any: leave-one-out log loss "
            f"{number(ours['loo_log_loss'])}; the worst has {number(ranked[-1]['loo_log_loss'])}."
        )
    return (
        f"{best['inference']} predicts better, leave-one-out log loss "
        f"{number(best['loo_log_loss'])}, than {used}, used here, with "
        f"{number(ours['loo_log_loss'])}."
    )


def _table(a: Json) -> Table:
    head = ["method", "log evidence", "correction", "log loss", "wrong", "seconds", "converged"]
    losses = [row["loo_log_loss"] for row in a["comparison"] if row["loo_log_loss"] is not None]
    rows = [
        [
            Cell(row["inference"], row["inference"]),
            Cell(_fixed(row["log_evidence"], 3), row["log_evidence"]),
            Cell(_fixed(row["correction"], 4), row["correction"]),
            Cell(
                _fixed(row["loo_log_loss"], 4),
                row["loo_log_loss"],
                row["loo_log_loss"] == min(losses),
            ),
            Cell(_fixed(row["loo_error"], 4), row["loo_error"]),
            cell(row["seconds"], 2),
            Cell("yes" if row["converged"] else "no", "yes" if row["converged"] else "no"),
        ]
        for row in a["comparison"]
    ]
    return Table("methods-table", "All methods at the same kernel", head, rows)


def _fixed(x: float | None, places: int) -> str:
    return "–" if x is None else f"{x:,.{places}f}".replace("-", "−")


def _note() -> Note:
    return Note("Log loss and wrong answers are leave-one-out, from one fit each.", quiet=True)
