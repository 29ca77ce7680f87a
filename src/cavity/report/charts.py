"""The charts of a report, each a Vega-Lite specification.

Colours are the page's CSS variables, so the same chart works in light, in dark and on paper.
The specifications are written out: a library that checks them would take a second for each page.
"""

from typing import Any

from cavity.estimators.columns import visible

_INK, _MUTED, _FAINT = "var(--ink)", "var(--muted)", "var(--faint)"
_ACCENT, _SOFT = "var(--accent)", "var(--soft)"
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
_KINDS = [_ACCENT, _INK, _MUTED, _FAINT]
_ROW = 34
_HIGH = {"field": "high"}
Json = dict[str, Any]
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_CONFIG: Json = {
    "background": "transparent",
    "font": _FONT,
    "padding": 4,
    "view": {"stroke": None},
    "axis": {
        "labelColor": _MUTED,
        "titleColor": _MUTED,
        "titleFontWeight": "normal",
        "titleFontSize": 12,
        "labelFontSize": 12,
        "titlePadding": 8,
        "titleLimit": 280,
        "gridColor": "var(--line)",
        "domainColor": _FAINT,
        "tickColor": _FAINT,
        "labelLimit": 150,
    },
    "legend": {
        "orient": "top",
        "title": None,
        "labelColor": _MUTED,
        "labelFontSize": 12,
        "symbolType": "square",
    },
    "text": {"fill": _MUTED, "fontSize": 12},
}


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
        "color": {"condition": {"test": "datum.ours", "value": _ACCENT}, "value": _MUTED},
        "tooltip": hover,
    }
    bars = _layer("rule", rows, strokeWidth=2)
    dots = _layer("point", rows, filled=True, size=90, opacity=1)
    encoded = [
        _with(bars, x=_quantity("low", **axis), x2=_HIGH, **common),
        _with(dots, x=_quantity("value", **axis), **common),
    ]
    return _finish(encoded, height=_ROW * len(rows) + 10)


def agreement(bins: list[Json], x_title: str, y_title: str) -> Json:
    """Draw observed against predicted shares, with the diagonal on which they agree."""
    shares = {"domain": [0, 1], "format": ".0%", "tickCount": 5}
    x, y = _quantity("predicted", x_title, **shares), _quantity("observed", y_title, **shares)
    ends = [{"predicted": 0, "observed": 0}, {"predicted": 1, "observed": 1}]
    diagonal = _layer("line", ends, color=_FAINT, strokeDash=[4, 4], strokeWidth=1.5)
    hover = _tips(
        predicted=("predicted", ".0%"),
        observed=("observed", ".0%"),
        observed_low=("from", ".0%"),
        observed_high=("to", ".0%"),
        count=("rows", ",d"),
    )
    bars = _layer("rule", bins, color=_ACCENT, strokeWidth=1.5)
    low, high = _quantity("observed_low", y_title, **shares), {"field": "observed_high"}
    dots = _layer("point", bins, filled=True, color=_ACCENT, opacity=1)
    size: Json = {"field": "count", "type": "quantitative", "legend": None}
    size["scale"] = {"rangeMin": 30, "rangeMax": 220}
    encoded = [
        _with(diagonal, x=x, y=y),
        _with(bars, x=x, y=low, y2=high, tooltip=hover),
        _with(dots, x=x, y=y, size=size, tooltip=hover),
    ]
    return _finish(encoded, height=280)


def trade_off(points: list[Json], x: str, y: str, ends: list[Json]) -> Json:
    """Draw a curve of what is gained (y) against what is paid (x), and a dashed line for a guess.

    The page's script gives the data sets "curve", "guess" and "here", a place on the curve.
    """
    shares = {"domain": [0, 1], "format": ".0%", "tickCount": 5}
    at = {"x": _quantity("x", x, **shares), "y": _quantity("y", y, **shares)}
    hover = _tips(x=(x, ".1%"), y=(y, ".1%"))
    place = _layer("point", points, "curve", size=120, opacity=0, filled=True)
    layers = [
        _layer("line", ends, "guess", color=_FAINT, strokeDash=[4, 4], strokeWidth=1.5),
        _layer("line", points, "curve", color=_ACCENT, strokeWidth=2.5),
        _with(place, tooltip=hover),
        _layer("point", [], "here", color=_INK, size=160, strokeWidth=3, opacity=1),
    ]
    return _finish([_with(layer, **at) for layer in layers], height=280)


def histogram(bars: list[Json], kinds: list[str], title: str, form: str) -> Json:
    """Draw stacked bars; each has lower, upper, kind, count, and its ends below and above."""
    color = _color(kinds, [_ACCENT, _FAINT])
    hover = _tips(kind=("", ""), lower=("from", form), upper=("to", form), count=("rows", ",d"))
    drawn = _with(
        _layer("rect", bars, stroke="var(--paper)", strokeWidth=1),
        x=_quantity("lower", title, format=form, tickCount=6, grid=False, nice=False),
        x2={"field": "upper"},
        y=_quantity("below", "rows", zero=True, tickCount=4),
        y2={"field": "above"},
        color=color,
        tooltip=hover,
    )
    return _finish([drawn], height=220)


def predicted_and_seen(points: dict[str, list[Any]], target: str) -> Json:
    """Draw the target against its leave-one-out prediction, for the points of an analysis."""
    values = [*points["prediction"], *points["label"]]
    ends = [{"prediction": v, "label": v} for v in (min(values), max(values))]
    x = _quantity("prediction", "predicted from the other rows", tickCount=6)
    y = _quantity("label", f"{target}, as in the table", tickCount=6)
    line = _layer("line", ends, color=_FAINT, strokeDash=[4, 4])
    return _finish([_with(layer, x=x, y=y) for layer in (line, _dots())], height=320)


def residuals() -> Json:
    """Draw by how many standard deviations each prediction is off, with a 95 % band."""
    title = "standard deviations off"
    x = _quantity("prediction", "predicted from the other rows", tickCount=6)
    band = _layer("rect", [{"low": -1.96, "high": 1.96}], color=_SOFT, opacity=0.6)
    band = _with(band, y=_quantity("low", title), y2=_HIGH)
    dots = _with(_dots(), x=x, y=_quantity("z", title, tickCount=6))
    return _finish([band, dots], height=320)


def _dots() -> Json:
    """Return a dot for each row of the analysis' points, which the page's script puts in."""
    hover = _tips(
        row=("row", ",d"),
        label=("in the table", ",.4~g"),
        prediction=("predicted", ",.4~g"),
        std=("±", ",.3~g"),
    )
    dots = _layer("point", [], "points", filled=True, size=28, opacity=0.55, color=_ACCENT)
    return _with(dots, tooltip=hover)


def learning(points: list[Json], n: int, measured: list[Json], title: str, form: str) -> Json:
    """Draw a learning curve, solid up to n rows and dashed beyond, with the forecast's interval.

    Points have size, value, low and high; measured ones have a name as well.
    """
    axis: Json = {"title": title, "format": form}
    ends = [points[0]["size"], points[-1]["size"]]
    x = _quantity("size", "training rows", log=True, domain=ends, tickCount=6, format="~s")
    y = _quantity("value", tickCount=5, **axis)
    hover = _tips(size=("rows", ",.0f"), **_interval(title, form))
    beyond = [p for p in points if p["size"] >= n]
    inside = [p for p in points if p["size"] <= n]
    here = [{"size": n, "text": "your rows"}]
    line: Json = {"color": _ACCENT, "strokeWidth": 2.5}
    # Wide invisible points make the curve easy to hover over.
    hovered = _layer("point", points, size=300, opacity=0, filled=True)
    text = _layer("text", here, align="right", dx=-6, y=8, baseline="middle")
    layers = [
        _with(_layer("area", beyond, color=_SOFT), x=x, y=_quantity("low", **axis), y2=_HIGH),
        _with(_layer("rule", here, color=_FAINT), x=x),
        _with(text, x=x, text={"field": "text", "type": "nominal"}),
        _with(_layer("line", inside, **line), x=x, y=y),
        _with(_layer("line", beyond, strokeDash=[5, 4], **line), x=x, y=y),
        *_checks(measured, x, y, axis),
        _with(hovered, x=x, y=y, tooltip=hover),
    ]
    return _finish(layers, height=300)


def _checks(measured: list[Json], x: Json, y: Json, axis: Json) -> list[Json]:
    if not measured:
        return []
    hover = _tips(name=("", ""), **_interval(axis["title"], axis["format"]))
    bars = _layer("rule", measured, color=_INK, strokeWidth=1.5)
    dots = _layer("point", measured, filled=True, color=_INK, size=60, opacity=1)
    return [
        _with(bars, x=x, y=_quantity("low", **axis), y2=_HIGH, tooltip=hover),
        _with(dots, x=x, y=y, tooltip=hover),
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
    color = _color(names, _KINDS)
    # Grays alone are hard to tell apart.
    dash = {"strokeDash": {"field": "kind", "type": "nominal", "sort": names, "legend": None}}
    hover = _tips(input=(x, ",.4~g" if is_number else ""), kind=("", ""), **_interval(y, form))
    common = {"x": across, "color": color}
    ends = {"y": _quantity("low", **axis), "y2": _HIGH}
    look = {"size": 300, "opacity": 0} if is_number else {"size": 70, "opacity": 1}
    dots = _layer("point", points, filled=True, **look)
    value = {"y": _quantity("value", **axis), **common}
    layers = [_with(_layer("rule", points, strokeWidth=2), **ends, **common)]
    if is_number:
        band = _with(_layer("area", points, opacity=0.2), **ends, **common)
        layers = [band, _with(_layer("line", points, strokeWidth=2), **value, **dash)]
    return _finish([*layers, _with(dots, tooltip=hover, **value)], height=200)


def _layer(mark: str, values: list[Json], name: str | None = None, /, **look: Any) -> Json:
    """Return marks for these records; if they have a name, the page's script can change them."""
    data: Json = {"values": values} if name is None else {"values": values, "name": name}
    return {"data": data, "mark": {"type": mark, **look}, "encoding": {}}


def _with(layer: Json, **channels: Json | list[Json]) -> Json:
    """Return a layer with more channels."""
    return {**layer, "encoding": layer["encoding"] | channels}


def _color(names: list[str], colors: list[str]) -> Json:
    """Return a colour for each kind, or our own if there is one kind."""
    if len(names) < 2:
        return {"value": _ACCENT}
    scale = {"domain": names, "range": colors[: len(names)]}
    legend = {"symbolOpacity": 1}
    return {"field": "kind", "type": "nominal", "scale": scale, "legend": legend}


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


def _finish(layers: list[Json], height: int) -> Json:
    """Return the specification in the page's style, as wide as its place on the page."""
    shape = {"width": "container", "height": height}
    drawn = {"$schema": _SCHEMA, "config": _CONFIG, "layer": layers, **shape}
    return dict(_shown(drawn))


def _shown(value: Any) -> Any:
    """Return a chart whose texts have escapes for what ends a string in Vega's expressions."""
    if isinstance(value, dict):
        return {_shown(key): _shown(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shown(item) for item in value]
    return visible(value) if isinstance(value, str) else value
