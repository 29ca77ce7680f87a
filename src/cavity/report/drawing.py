"""The common style of all charts.

Colours are the page's CSS variables, so the same chart works in light, in dark and on paper.
"""

from typing import Any

import altair as alt

INK, MUTED, FAINT = "var(--ink)", "var(--muted)", "var(--faint)"
ACCENT, SOFT = "var(--accent)", "var(--soft)"
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
Json = dict[str, Any]


def chart(values: list[Json]) -> alt.Chart:
    """Return a chart of these records."""
    return alt.Chart(alt.InlineData(values=values))


def quantity(field: str, title: str | None = None, **axis: Any) -> Json:
    """Return a quantitative channel; domain, zero, nice and log in ``axis`` are for its scale."""
    scale: Json = {"zero": axis.pop("zero", False), "nice": axis.pop("nice", True)}
    if "domain" in axis:
        scale |= {"domain": axis.pop("domain")}
    if axis.pop("log", False):
        scale = {"type": "log", **{k: v for k, v in scale.items() if k == "domain"}, "nice": False}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": axis}


def nominal(field: str, order: list[str], title: str | None = None, **axis: Any) -> Json:
    """Return a channel of names in a given order."""
    return {"field": field, "type": "nominal", "title": title, "sort": order, "axis": axis}


def tips(**fields: tuple[str, str]) -> list[Json]:
    """Return a tooltip, field = (title, format); a field with an empty format is a name."""
    return [
        {"field": field, "title": title, "type": "quantitative", "format": form}
        if form
        else {"field": field, "title": title, "type": "nominal"}
        for field, (title, form) in fields.items()
    ]


def finish(drawn: Any, height: int = 260) -> Json:
    """Return the specification in the page's style, as wide as its place on the page."""
    styled = (
        drawn.properties(width="container", height=height)
        .configure(background="transparent", font=_FONT, padding=4)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=MUTED,
            titleColor=MUTED,
            titleFontWeight="normal",
            titleFontSize=12,
            labelFontSize=12,
            titlePadding=8,
            gridColor="var(--line)",
            domainColor=FAINT,
            tickColor=FAINT,
            labelLimit=150,
        )
        .configure_legend(
            orient="top", title=None, labelColor=MUTED, labelFontSize=12, symbolType="square"
        )
        .configure_text(fill=MUTED, fontSize=12)
    )
    return dict(styled.to_dict())
