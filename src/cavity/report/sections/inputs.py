"""The section on inputs: which matter, and what each does to the predictions."""

from typing import Any

from cavity.report import charts
from cavity.report.analysis import Analysis, Record
from cavity.report.blocks import Figure, Figures, Note, Section
from cavity.report.parts import LEVEL
from cavity.report.sections.common import behind, cell, share_cell, word_cell
from cavity.report.words import capitalised, join, number, percent

_MOST_INPUTS, _NAMED = 25, 3


def inputs(a: Analysis) -> Section:
    """Return the section on inputs."""
    blocks: list[Any] = [Figures([_importance_figure(a)])]
    if len(a.importance) > _MOST_INPUTS:
        few = f"Only the {_MOST_INPUTS} most important of {len(a.importance)} columns are shown."
        blocks.append(Note(few, quiet=True))
    blocks.append(Figures([_effect_figure(a, k, effect) for k, effect in enumerate(a.effects)]))
    note = (
        "Each picture shows the average prediction if the column had the same value in every row. "
        f"Bands and bars are {percent(LEVEL)} intervals for what the rows leave open at the tuned "
        "kernel. Columns that say the same share their importance, and an important column need "
        "not be a cause."
    )
    blocks.append(Note(note, quiet=True))
    headline = _headline(a.importance)
    if not a.verdict["helps"]:
        headline = "None that these rows can show: the inputs do not help to predict the target."
    return Section("inputs", "Which inputs matter?", headline, blocks)


def _headline(ranked: list[Record]) -> str:
    """Name the columns whose interval is above zero, and those for which it is not."""
    clear = [line for line in ranked if line["low"] > 0.0][:_NAMED]
    idle = [line["feature"] for line in ranked if line["low"] == 0.0]
    if not clear:
        return "No input clearly matters by itself: the interval of each reaches zero."
    first, *others = clear
    lost = "".join(f", without {r['feature']} {percent(r['importance'])}" for r in others)
    most = (
        f"{first['feature']} matters most: without it, {percent(first['importance'])} of the "
        f"predictions' variance would be lost{lost}."
    )
    if not idle:
        return most
    return f"{most} {join(idle) if len(idle) <= _NAMED else f'{len(idle)} others'} may do nothing."


def _importance_figure(a: Analysis) -> Figure:
    rows = [
        {"name": r["feature"], "value": r["importance"], "ours": r["low"] > 0.0}
        | {"low": r["low"], "high": r["high"]}
        for r in a.importance[:_MOST_INPUTS]
    ]
    text = "Importance: " + "; ".join(f"{r['name']} {percent(r['value'])}" for r in rows)
    caption = (
        "Share of the predictions' variance that is lost when a column's value is replaced by that "
        f"of another row, with {percent(LEVEL)} intervals. Gray: the column may do nothing."
    )
    keys = {"importance": "value", "from": "low", "to": "high"}
    shown = {head: (key, share_cell) for head, key in keys.items()}
    table = behind("importance", rows, input=("name", word_cell), **shown)
    return Figure("importance", charts.importances(rows), caption, text, table)


def _effect_figure(a: Analysis, k: int, effect: Record) -> Figure:
    name, curves = effect["feature"], effect["curves"]
    kinds = [curve["class"] or a.data.target for curve in curves]
    points = [
        {"input": x, "kind": kind, "value": value, "low": low, "high": high}
        for kind, curve in zip(kinds, curves, strict=True)
        for x, value, low, high in zip(
            effect["values"], curve["mean"], curve["low"], curve["high"], strict=True
        )
    ]
    title = f"average {a.data.target}"
    if a.is_classes:
        title = f"probability of {kinds[0]}" if len(kinds) == 1 else "probability"
    form = ".0%" if a.is_classes else ",.4~g"
    spec = charts.effect(points, effect["is_number"], kinds, name, title, form)
    first, last = points[0], points[len(effect["values"]) - 1]
    text = (
        f"{capitalised(title)} against {name}: {number(first['value'])} at {first['input']}, "
        f"{number(last['value'])} at {last['input']}."
    )
    show = share_cell if a.is_classes else cell
    ends = {"prediction": ("value", show), "from": ("low", show), "to": ("high", show)}
    value = ("input", cell if effect["is_number"] else word_cell)
    table = behind(f"effect-{k}", points, of=("kind", word_cell), value=value, **ends)
    return Figure(f"effect-{k}", spec, f"{capitalised(title)} by {name}.", text, table)
