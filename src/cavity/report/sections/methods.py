"""Which inference method to use."""

from cavity.report import charts
from cavity.report.analysis import Analysis, Record
from cavity.report.blocks import Cell, Figure, Figures, HtmlTable, Note, Section
from cavity.report.sections.common import cell, word_cell
from cavity.report.words import number

# In nats per example; a smaller difference between predictions has no practical effect.
_SAME = 0.005
_HEAD = ("method", "log evidence", "correction", "log loss", "error rate", "seconds", "converged")


def methods(a: Analysis) -> Section:
    """Return the section that compares inference methods."""
    title = "Which inference method?"
    if not a.comparison:
        exact = "Regression with Gaussian noise is exact: there is nothing to choose."
        return Section("methods", title, exact)
    drawn = [_bar(row, a) for row in a.comparison if row["log_evidence"] is not None]
    text = "Log evidence: " + "; ".join(f"{r['name']} {number(r['value'], 4)}" for r in drawn)
    figure = Figure(
        "evidence",
        charts.evidences(drawn),
        "Log evidence at the same kernel. Where the next correction is known, a bar of its size "
        "shows how far the value may be off.",
        text,
    )
    note = Note("Log loss and error rate are leave-one-out, from one fit each.", quiet=True)
    return Section("methods", title, _headline(a), [Figures([figure]), _table(a), note])


def _bar(row: Record, a: Analysis) -> Record:
    name, value, reach = row["inference"], row["log_evidence"], abs(row["correction"] or 0.0)
    ends = {"name": name, "value": value, "low": value - reach, "high": value + reach}
    return row | ends | {"ours": name == a.model.inference}


def _headline(a: Analysis) -> str:
    scored = [row for row in a.comparison if row["loo_log_loss"] is not None]
    if not scored:
        return "No method gave leave-one-out predictions."
    ranked = sorted(scored, key=lambda row: row["loo_log_loss"])
    best, used = ranked[0], a.model.inference
    ours = next((row for row in ranked if row["inference"] == used), best)
    own, least, most = (number(row["loo_log_loss"]) for row in (ours, best, ranked[-1]))
    if ours["loo_log_loss"] - best["loo_log_loss"] < _SAME:
        return (
            f"The method used, {used}, predicts as well as any: its leave-one-out log loss is "
            f"{own}, and the worst is {most}."
        )
    return (
        f"{best['inference']} predicts better than {used}, which was used here: the leave-one-out "
        f"log losses are {least} and {own}."
    )


def _table(a: Analysis) -> HtmlTable:
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
    return HtmlTable("methods-table", "All methods at the same kernel", _HEAD, rows)


def _fixed(x: float | None, places: int, *, strong: bool = False) -> Cell:
    return Cell("–" if x is None else f"{x:,.{places}f}".replace("-", "−"), x, strong)
