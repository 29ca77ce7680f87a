"""Which inputs matter."""

from typing import Any

from cavity.report import charts
from cavity.report.analysis import Analysis, Record
from cavity.report.blocks import Figure, Figures, Note, Section
from cavity.report.words import join, percent

_MOST, _NAMED = 25, 3
_NO_PART = 0.01


def inputs(a: Analysis) -> Section:
    """Return the section on relevance."""
    title = "Which inputs matter?"
    if not a.relevance:
        headline = "The kernel has one length scale for all inputs, so it cannot rank them."
        remedy = Note("With --kernel ard every input has its own length scale.", quiet=True)
        return Section("inputs", title, headline, [remedy])
    ranked = sorted(a.relevance, key=lambda line: -line["relevance"])
    shown = [{"feature": r["feature"], "relevance": r["relevance"]} for r in ranked[:_MOST]]
    text = "Relevance: " + "; ".join(f"{r['feature']} {percent(r['relevance'])}" for r in shown)
    caption = (
        "Inverse length scale of each input after standardising. Along an input with a short "
        "length scale, predictions change quickly. A relevant input need not be a cause."
    )
    if len(a.relevance[0]["per_class"]) > 1:
        caption += " Each class has its own kernel; the mean is shown."
    figure = Figure("relevance", charts.relevances(shown), caption, text)
    blocks: list[Any] = [Figures([figure])]
    if len(ranked) > _MOST:
        few = f"Only the {_MOST} most relevant of {len(ranked)} inputs are shown."
        blocks.append(Note(few, quiet=True))
    return Section("inputs", title, _headline(ranked), blocks)


def _headline(ranked: list[Record]) -> str:
    named = [line["feature"] for line in ranked if line["relevance"] >= _NO_PART][:_NAMED]
    idle = [line["feature"] for line in ranked if line["relevance"] < _NO_PART]
    most = f"{join(named)} {'matters' if len(named) == 1 else 'matter'} most"
    if not idle:
        return f"{most}; every input has some influence."
    few = join(idle) if len(idle) <= _NAMED else f"{len(idle)} inputs"
    return f"{most}; {few} {'has' if len(idle) == 1 else 'have'} hardly any influence."
