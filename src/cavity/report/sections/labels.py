"""Which labels look wrong."""

from cavity.report.analysis import Analysis
from cavity.report.blocks import Note, Section
from cavity.report.sections.common import Column, cell, example_table, share_cell
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
        doubt = Column("label probability", "probability_of_label", share_cell)
    else:
        headline = _quantity_headline(a)
        doubt = Column("deviations off", "z", cell)
    table = example_table(a, "suspects", "The rows to check first", a.suspects, doubt)
    return Section("labels", "Which labels look wrong?", headline, [table, note])


def _class_headline(a: Analysis) -> str:
    first = a.suspects[0]
    if first["probability_of_label"] >= 0.5:
        return "None: every row has the label that the other rows predict."
    headline = (
        f"Check row {first['row']} first: given the other rows, its label {first['label']} has a "
        f"probability of {percent(first['probability_of_label'], 1)}."
    )
    wrong = sum(r["probability_of_label"] < 0.1 for r in a.suspects)
    if wrong > 1:
        least = "At least " if wrong == len(a.suspects) else ""
        headline += f" {least}{wrong} labels have a probability below 10 %."
    return headline


def _quantity_headline(a: Analysis) -> str:
    first = a.suspects[0]
    return (
        f"Check row {first['row']} first: its value is {number(first['label'])}, and the other "
        f"rows predict {number(first['prediction'])} ± {number(first['std'], 2)}, "
        f"{number(abs(first['z']), 2)} standard deviations away."
    )
