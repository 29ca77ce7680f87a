"""The section on labels that look wrong."""

from cavity.model_selection.suspects import is_open
from cavity.report.analysis import Analysis, Record
from cavity.report.blocks import Cell, Note, Section
from cavity.report.sections.common import cell, share_cell, word_cell
from cavity.report.sections.outliers import outlier_blocks
from cavity.report.sections.predictions import Column, example_table
from cavity.report.suspects import SHOWN, reasons_text
from cavity.report.words import number, percent


def labels(a: Analysis) -> Section:
    """Return the section on suspicious labels."""
    note = Note(
        "Each row is predicted from all the others. A surprising row may be wrong, or rare, or "
        "right where the model is wrong: look at it before you change it.",
        quiet=True,
    )
    if a.is_classes:
        headline = _class_headline(a)
        doubt: Column = ("label probability", "probability_of_label", share_cell)
        against: Column = ("speak against it", "reasons", _rows_cell)
    else:
        first = a.suspects[0]
        headline = (
            f"Check row {first['row']} first: its value is {number(first['label'])}, and the other "
            f"rows predict {number(first['prediction'])} ± {number(first['std'], 2)}, "
            f"{number(abs(first['z']), 2)} standard deviations away."
        )
        doubt, against = ("deviations off", "z", cell), ("predicted from", "reasons", _rows_cell)
    likely: Column = ("probability that it is wrong", "wrong", share_cell)
    columns = [doubt, likely, *[against] * any(line["reasons"] for line in a.suspects)]
    first_ones = a.suspects[:SHOWN]
    table = example_table(a, "suspects", "The rows to check first", first_ones, *columns)
    blocks = [*_number_wrong(a), table, *outlier_blocks(a), note]
    return Section("labels", "Which labels look wrong?", headline, blocks)


def _number_wrong(a: Analysis) -> list[Note]:
    """Return how many labels are wrong, and how many rows to look at.

    Of targets with Gaussian noise other sentences say which are outliers.
    """
    if a.outliers is not None:
        return []
    w = a.wrong_labels
    what = "labels are wrong" if a.is_classes else "targets are outliers"
    interval = f"the {percent(w['level'])} interval is {w['low']:,} to {w['high']:,}."
    found = f"About {w['count']:,} of the {w['rows']:,} {what}; {interval}"
    if is_open(w["low"], w["high"], w["rows"]):
        found = f"It is open how many of the {w['rows']:,} {what}; {interval}"
    if w["chosen"] > 1:
        found += f" Of the first {w['chosen']:,} suspects about every second is expected to be."
    return [Note(found)]


def _rows_cell(reasons: list[Record]) -> Cell:
    """Return the rows that are reasons as a table's cell."""
    return word_cell(reasons_text({"reasons": reasons}))


def _class_headline(a: Analysis) -> str:
    first = a.suspects[0]
    if min(r["probability_of_label"] for r in a.suspects) >= 0.5:
        return "None: every row has the label that the other rows predict."
    headline = (
        f"Check row {first['row']} first: given the other rows, its label {first['label']} has a "
        f"probability of {percent(first['probability_of_label'], 1)}."
    )
    wrong = sum(r["probability_of_label"] < 0.1 for r in a.suspects)
    if wrong > 1:
        headline += f" {wrong:,} labels have a probability below 10 %."
    return headline
