"""Which inputs matter."""

from typing import Any

from cavity.report import charts
from cavity.report.blocks import Figure, Figures, Note, Section
from cavity.report.words import join, percent

__all__ = ["inputs"]

Json = dict[str, Any]
_MOST, _NAMED = 25, 3
_NO_PART = 0.01


def inputs(a: Json) -> Section:
    """Return the section on relevance."""
    title = "Which inputs matter?"
    if not a["relevance"]:
        return Section(
            "inputs",
            title,
            "This kernel has one length scale for all inputs, so it does not say.",
            [Note("A kernel with one for each, --kernel ard, would.", quiet=True)],
        )
    ranked = sorted(a["relevance"], key=lambda line: -line["relevance"])
    shown = [{"feature": r["feature"], "relevance": r["relevance"]} for r in ranked[:_MOST]]
    text = "Relevance: " + "; ".join(f"{r['feature']} {percent(r['relevance'])}" for r in shown)
    caption = (
        "How short each input's length scale is: over a short one, answers change quickly. "
        "Inputs are standardised first, and relevance is no cause."
    )
    if len(a["relevance"][0]["per_class"]) > 1:
        caption += " Each class has its own kernel; this is their mean."
    blocks: list[Any] = [
        Figures([Figure("relevance", charts.relevances(shown, text), caption, text)])
    ]
    if len(ranked) > _MOST:
        blocks.append(Note(f"Of {len(ranked)} inputs the first {_MOST} are drawn.", quiet=True))
    return Section("inputs", title, _headline(ranked), blocks)


def _headline(ranked: list[Json]) -> str:
    named = [line["feature"] for line in ranked if line["relevance"] >= _NO_PART][:_NAMED]
    idle = [line["feature"] for line in ranked if line["relevance"] < _NO_PART]
    said = f"{join(named)} {'matters' if len(named) == 1 else 'matter'} most"
    if not idle:
        return f"{said}; every input plays some part."
    few = join(idle) if len(idle) <= _NAMED else f"{len(idle)} inputs"
    return f"{said}; {few} {'plays' if len(idle) == 1 else 'play'} hardly any part."
