"""The charts of a report, each a Vega-Lite specification.

Colours are the page's CSS variables, so the same chart works in light, in dark and on paper.
"""

from typing import Any

import altair as alt

_INK, _MUTED, _FAINT = "var(--ink)", "var(--muted)", "var(--faint)"
_ACCENT, _SOFT = "var(--accent)", "var(--soft)"
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
_KINDS = [_ACCENT, _INK, _MUTED, _FAINT]
_ROW = 34
Json = dict[str, Any]


def scores(rows: list[Json], title: str, form: str) -> Json:
    """Draw scores with their 95 % intervals; rows have name, value, low, high and ours."""
    hover = _tips(name=("", ""), **_interval(title, form))
    return _dot_plot(rows, hover, title=title, zero=True, format=form)


def evidences(rows: list[Json]) -> Json:
    """Draw log evidences with bars of the size of the correction; rows as in `scores`."""
    hover = _tips(
        name=("", ""),
        value=("log evidence", ",.3f"),
        loo_log_loss=("leave-one-out log loss", ".4f"),
        seconds=("seconds", ".2f"),
    )
    return _dot_plot(rows, hover, title="log evidence (larger is better)")


def _interval(title: str, form: str) -> dict[str, tuple[str, str]]:
    return {"value": (title, form), "low": ("from", form), "high": ("to", form)}


def _dot_plot(rows: list[Json], hover: list[Json], **axis: Any) -> Json:
    """Draw a dot and an interval on a line for each row; our own in the accent colour."""
    axis["tickCount"] = 5
    common: Json = {
        "y": _nominal("name", [row["name"] for row in rows], labelLimit=130),
        "color": alt.condition("datum.ours", alt.value(_ACCENT), alt.value(_MUTED)),
        "tooltip": hover,
    }
    drawn = _chart(rows)
    bars = drawn.mark_rule(strokeWidth=2).encode(x=_quantity("low", **axis), x2="high:Q", **common)
    dots = drawn.mark_point(filled=True, size=90, opacity=1).encode(
        x=_quantity("value", **axis), **common
    )
    return _finish(bars + dots, height=_ROW * len(rows) + 10)


def agreement(bins: list[Json], x_title: str, y_title: str) -> Json:
    """Draw observed against predicted shares, with the diagonal on which they agree."""
    shares = {"domain": [0, 1], "format": ".0%", "tickCount": 5}
    x, y = _quantity("predicted", x_title, **shares), _quantity("observed", y_title, **shares)
    ends = _chart([{"predicted": 0, "observed": 0}, {"predicted": 1, "observed": 1}])
    diagonal = ends.mark_line(color=_FAINT, strokeDash=[4, 4], strokeWidth=1.5).encode(x=x, y=y)
    hover = _tips(
        predicted=("predicted", ".0%"),
        observed=("observed", ".0%"),
        observed_low=("from", ".0%"),
        observed_high=("to", ".0%"),
        count=("rows", ",d"),
    )
    drawn = _chart(bins)
    bars = drawn.mark_rule(color=_ACCENT, strokeWidth=1.5).encode(
        x=x, y=_quantity("observed_low", y_title, **shares), y2="observed_high:Q", tooltip=hover
    )
    size = alt.Size("count:Q", legend=None, scale=alt.Scale(rangeMin=30, rangeMax=220))
    dots = drawn.mark_point(filled=True, color=_ACCENT, opacity=1).encode(
        x=x, y=y, size=size, tooltip=hover
    )
    return _finish(diagonal + bars + dots, height=280)


def trade_off(points: list[Json], x: str, y: str, ends: list[Json]) -> Json:
    """Draw a curve of what is gained (y) against what is paid (x), and a dashed line for a guess.

    The page's script gives the data sets "curve", "guess" and "here", a place on the curve.
    """
    shares = {"domain": [0, 1], "format": ".0%", "tickCount": 5}
    at = {"x": _quantity("x", x, **shares), "y": _quantity("y", y, **shares)}
    guess = _chart(ends, "guess").mark_line(color=_FAINT, strokeDash=[4, 4], strokeWidth=1.5)
    line = _chart(points, "curve").mark_line(color=_ACCENT, strokeWidth=2.5)
    here = _chart([], "here").mark_point(color=_INK, size=160, strokeWidth=3, opacity=1)
    hover = _tips(x=(x, ".1%"), y=(y, ".1%"))
    place = _chart(points, "curve").mark_point(size=120, opacity=0, filled=True)
    layers = [guess, line, place.encode(tooltip=hover), here]
    return _finish(alt.layer(*(layer.encode(**at) for layer in layers)), height=280)


def histogram(bars: list[Json], kinds: list[str], title: str, form: str) -> Json:
    """Draw stacked bars; each has lower, upper, kind, count, and its ends below and above."""
    color: Any = alt.value(_ACCENT)
    if len(kinds) > 1:
        color = alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=[_ACCENT, _FAINT]))
    hover = _tips(kind=("", ""), lower=("from", form), upper=("to", form), count=("rows", ",d"))
    drawn = _chart(bars).mark_rect(stroke="var(--paper)", strokeWidth=1)
    encoded = drawn.encode(
        x=_quantity("lower", title, format=form, tickCount=6, grid=False, nice=False),
        x2="upper:Q",
        y=_quantity("below", "rows", zero=True, tickCount=4),
        y2="above:Q",
        color=color,
        tooltip=hover,
    )
    return _finish(encoded, height=220)


def predicted_and_seen(points: list[Json], target: str) -> Json:
    """Draw the target against its leave-one-out prediction."""
    values = [p[key] for p in points for key in ("prediction", "label")]
    ends = [{"prediction": v, "label": v} for v in (min(values), max(values))]
    x = _quantity("prediction", "predicted from the other rows", tickCount=6)
    y = _quantity("label", f"{target}, as in the table", tickCount=6)
    line = _chart(ends).mark_line(color=_FAINT, strokeDash=[4, 4]).encode(x=x, y=y)
    return _finish(line + _dots(points).encode(x=x, y=y), height=320)


def residuals(points: list[Json]) -> Json:
    """Draw by how many standard deviations each prediction is off, with a 95 % band."""
    title = "standard deviations off"
    x = _quantity("prediction", "predicted from the other rows", tickCount=6)
    band = _chart([{"low": -1.96, "high": 1.96}]).mark_rect(color=_SOFT, opacity=0.6)
    band = band.encode(y=_quantity("low", title), y2="high:Q")
    dots = _dots(points).encode(x=x, y=_quantity("z", title, tickCount=6))
    return _finish(band + dots, height=320)


def _dots(points: list[Json]) -> Any:
    hover = _tips(
        row=("row", ",d"),
        label=("in the table", ",.4~g"),
        prediction=("predicted", ",.4~g"),
        std=("±", ",.3~g"),
    )
    dots = _chart(points).mark_point(filled=True, size=28, opacity=0.55, color=_ACCENT)
    return dots.encode(tooltip=hover)


def learning(points: list[Json], n: int, measured: list[Json], title: str, form: str) -> Json:
    """Draw a learning curve, solid up to n rows and dashed beyond, with the forecast's interval.

    Points have size, value, low and high; measured ones have a name as well.
    """
    axis: Json = {"title": title, "format": form}
    ends = [points[0]["size"], points[-1]["size"]]
    x = _quantity("size", "training rows", log=True, domain=ends, tickCount=6, format="~s")
    y = _quantity("value", tickCount=5, **axis)
    hover = _tips(size=("rows", ",.0f"), **_interval(title, form))
    beyond = _chart([p for p in points if p["size"] >= n])
    inside = _chart([p for p in points if p["size"] <= n])
    here = _chart([{"size": n, "text": "your rows"}])
    line: Json = {"color": _ACCENT, "strokeWidth": 2.5}
    layers = [
        beyond.mark_area(color=_SOFT).encode(x=x, y=_quantity("low", **axis), y2="high:Q"),
        here.mark_rule(color=_FAINT).encode(x=x),
        here.mark_text(align="right", dx=-6, y=8, baseline="middle").encode(x=x, text="text:N"),
        inside.mark_line(**line).encode(x=x, y=y),
        beyond.mark_line(strokeDash=[5, 4], **line).encode(x=x, y=y),
        *_checks(measured, x, y, axis),
        # Wide invisible points make the curve easy to hover over.
        _chart(points).mark_point(size=300, opacity=0, filled=True).encode(x=x, y=y, tooltip=hover),
    ]
    return _finish(alt.layer(*layers), height=300)


def _checks(measured: list[Json], x: Json, y: Json, axis: Json) -> list[alt.Chart]:
    if not measured:
        return []
    hover = _tips(name=("", ""), **_interval(axis["title"], axis["format"]))
    drawn = _chart(measured)
    bars = drawn.mark_rule(color=_INK, strokeWidth=1.5)
    dots = drawn.mark_point(filled=True, color=_INK, size=60, opacity=1)
    return [
        bars.encode(x=x, y=_quantity("low", **axis), y2="high:Q", tooltip=hover),
        dots.encode(x=x, y=y, tooltip=hover),
    ]


def importances(rows: list[Json]) -> Json:
    """Draw how much each input matters, with its interval; rows as in `scores`."""
    title = "share of the variance lost without the input"
    hover = _tips(name=("", ""), **_interval("share", ".1%"))
    return _dot_plot(rows, hover, title=title, zero=True, format="~%")


def effect(
    points: list[Json], is_number: bool, names: list[str], x: str, y: str, form: str
) -> Json:
    """Draw predictions against one input; points have input, kind, value, low and high."""
    axis: Json = {"title": y, "format": form, "tickCount": 5}
    across = _quantity("input", x, tickCount=5, format=",.4~g", nice=False)
    if not is_number:
        order = list(dict.fromkeys(str(p["input"]) for p in points))
        across = _nominal("input", order, labelAngle=-30, labelLimit=90) | {"title": x}
    color: Any = alt.value(_ACCENT)
    if len(names) > 1:
        scale = alt.Scale(domain=names, range=_KINDS[: len(names)])
        color = alt.Color("kind:N", scale=scale, legend=alt.Legend(symbolOpacity=1))
    hover = _tips(input=(x, ",.4~g" if is_number else ""), kind=("", ""), **_interval(y, form))
    drawn, common = _chart(points), {"x": across, "color": color}
    ends = {"y": _quantity("low", **axis), "y2": "high:Q"}
    dots = drawn.mark_point(
        filled=True, size=300 if is_number else 70, opacity=0 if is_number else 1
    )
    value = {"y": _quantity("value", **axis), **common}
    if is_number:
        band = drawn.mark_area(opacity=0.2).encode(**ends, **common)
        layers = [band, drawn.mark_line(strokeWidth=2).encode(**value)]
    else:
        layers = [drawn.mark_rule(strokeWidth=2).encode(**ends, **common)]
    return _finish(alt.layer(*layers, dots.encode(tooltip=hover, **value)), height=200)


def _chart(values: list[Json], name: str | None = None) -> alt.Chart:
    """Return a chart of these records; if they have a name, the page's script can change them."""
    return alt.Chart(alt.InlineData(values=values, name=name or alt.Undefined))


def _quantity(field: str, title: str | None = None, **axis: Any) -> Json:
    """Return a quantitative channel; domain, zero, nice and log in ``axis`` are for its scale."""
    scale: Json = {"zero": axis.pop("zero", False), "nice": axis.pop("nice", True)}
    if "domain" in axis:
        scale |= {"domain": axis.pop("domain")}
    if axis.pop("log", False):
        scale = {"type": "log", **{k: v for k, v in scale.items() if k == "domain"}, "nice": False}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": axis}


def _nominal(field: str, order: list[str], **axis: Any) -> Json:
    """Return a channel of names in a given order."""
    return {"field": field, "type": "nominal", "title": None, "sort": order, "axis": axis}


def _tips(**fields: tuple[str, str]) -> list[Json]:
    """Return a tooltip, field = (title, format); a field with an empty format is a name."""
    return [
        {"field": field, "title": title, "type": "quantitative", "format": form}
        if form
        else {"field": field, "title": title, "type": "nominal"}
        for field, (title, form) in fields.items()
    ]


def _finish(drawn: Any, height: int) -> Json:
    """Return the specification in the page's style, as wide as its place on the page."""
    styled = (
        drawn.properties(width="container", height=height)
        .configure(background="transparent", font=_FONT, padding=4)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=_MUTED,
            titleColor=_MUTED,
            titleFontWeight="normal",
            titleFontSize=12,
            labelFontSize=12,
            titlePadding=8,
            gridColor="var(--line)",
            domainColor=_FAINT,
            tickColor=_FAINT,
            labelLimit=150,
        )
        .configure_legend(
            orient="top", title=None, labelColor=_MUTED, labelFontSize=12, symbolType="square"
        )
        .configure_text(fill=_MUTED, fontSize=12)
    )
    return dict(styled.to_dict())
