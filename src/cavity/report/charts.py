"""The charts of a report, each a Vega-Lite specification."""

from typing import Any

import altair as alt

from cavity.report.drawing import (
    ACCENT,
    FAINT,
    INK,
    MUTED,
    SOFT,
    chart,
    finish,
    nominal,
    quantity,
    tips,
)

Json = dict[str, Any]
_ROW = 34


def scores(rows: list[Json], title: str, form: str) -> Json:
    """Draw scores with their 95 % intervals; rows have name, value, low, high and ours."""
    hover = tips(name=("", ""), **_interval(title, form))
    return _dot_plot(rows, hover, title=title, zero=True, format=form)


def evidences(rows: list[Json]) -> Json:
    """Draw log evidences with bars of the size of the correction; rows as in `scores`."""
    hover = tips(
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
        "y": nominal("name", [row["name"] for row in rows], labelLimit=130),
        "color": alt.condition("datum.ours", alt.value(ACCENT), alt.value(MUTED)),
        "tooltip": hover,
    }
    drawn = chart(rows)
    bars = drawn.mark_rule(strokeWidth=2).encode(x=quantity("low", **axis), x2="high:Q", **common)
    dots = drawn.mark_point(filled=True, size=90, opacity=1).encode(
        x=quantity("value", **axis), **common
    )
    return finish(bars + dots, height=_ROW * len(rows) + 10)


def agreement(bins: list[Json], x_title: str, y_title: str) -> Json:
    """Draw observed against predicted shares, with the diagonal on which they agree."""
    shares = {"domain": [0, 1], "format": ".0%", "tickCount": 5}
    x, y = quantity("predicted", x_title, **shares), quantity("observed", y_title, **shares)
    ends = chart([{"predicted": 0, "observed": 0}, {"predicted": 1, "observed": 1}])
    diagonal = ends.mark_line(color=FAINT, strokeDash=[4, 4], strokeWidth=1.5).encode(x=x, y=y)
    hover = tips(
        predicted=("predicted", ".0%"),
        observed=("observed", ".0%"),
        observed_low=("from", ".0%"),
        observed_high=("to", ".0%"),
        count=("rows", ",d"),
    )
    drawn = chart(bins)
    bars = drawn.mark_rule(color=ACCENT, strokeWidth=1.5).encode(
        x=x, y=quantity("observed_low", y_title, **shares), y2="observed_high:Q", tooltip=hover
    )
    size = alt.Size("count:Q", legend=None, scale=alt.Scale(rangeMin=30, rangeMax=220))
    dots = drawn.mark_point(filled=True, color=ACCENT, opacity=1).encode(
        x=x, y=y, size=size, tooltip=hover
    )
    return finish(diagonal + bars + dots, height=280)


def histogram(bars: list[Json], kinds: list[str], title: str, form: str) -> Json:
    """Draw stacked bars, which have lower, upper, kind, count, and from below to above."""
    color: Any = alt.value(ACCENT)
    if len(kinds) > 1:
        color = alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=[ACCENT, FAINT]))
    encoded = (
        chart(bars)
        .mark_rect(stroke="var(--paper)", strokeWidth=1)
        .encode(
            x=quantity("lower", title, format=form, tickCount=6, grid=False, nice=False),
            x2="upper:Q",
            y=quantity("below", "rows", zero=True, tickCount=4),
            y2="above:Q",
            color=color,
            tooltip=tips(
                kind=("", ""), lower=("from", form), upper=("to", form), count=("rows", ",d")
            ),
        )
    )
    return finish(encoded, height=220)


def predicted_and_seen(points: list[Json], target: str) -> Json:
    """Draw the target against its leave-one-out prediction."""
    values = [p[key] for p in points for key in ("prediction", "label")]
    ends = [{"prediction": v, "label": v} for v in (min(values), max(values))]
    x = quantity("prediction", "predicted from the other rows", tickCount=6)
    y = quantity("label", f"{target}, as in the table", tickCount=6)
    line = chart(ends).mark_line(color=FAINT, strokeDash=[4, 4]).encode(x=x, y=y)
    return finish(line + _dots(points).encode(x=x, y=y), height=320)


def residuals(points: list[Json]) -> Json:
    """Draw by how many standard deviations each prediction is off, with a 95 % band."""
    title = "standard deviations off"
    x = quantity("prediction", "predicted from the other rows", tickCount=6)
    band = (
        chart([{"low": -1.96, "high": 1.96}])
        .mark_rect(color=SOFT, opacity=0.6)
        .encode(y=quantity("low", title), y2="high:Q")
    )
    dots = _dots(points).encode(x=x, y=quantity("z", title, tickCount=6))
    return finish(band + dots, height=320)


def _dots(points: list[Json]) -> Any:
    hover = tips(
        row=("row", ",d"),
        label=("in the table", ",.4~g"),
        prediction=("predicted", ",.4~g"),
        std=("±", ",.3~g"),
    )
    dots = chart(points).mark_point(filled=True, size=28, opacity=0.55, color=ACCENT)
    return dots.encode(tooltip=hover)


def learning(points: list[Json], n: int, measured: list[Json], title: str, form: str) -> Json:
    """Draw a learning curve, solid up to n rows and dashed beyond, with the forecast's interval.

    Points have size, value, low and high; measured ones have a name as well.
    """
    axis: Json = {"title": title, "format": form}
    ends = [points[0]["size"], points[-1]["size"]]
    x = quantity("size", "training rows", log=True, domain=ends, tickCount=6, format="~s")
    y = quantity("value", tickCount=5, **axis)
    hover = tips(size=("rows", ",.0f"), **_interval(title, form))
    beyond = chart([p for p in points if p["size"] >= n])
    inside = chart([p for p in points if p["size"] <= n])
    here = chart([{"size": n, "text": "your rows"}])
    line: Json = {"color": ACCENT, "strokeWidth": 2.5}
    layers = [
        beyond.mark_area(color=SOFT).encode(x=x, y=quantity("low", **axis), y2="high:Q"),
        here.mark_rule(color=FAINT).encode(x=x),
        here.mark_text(align="right", dx=-6, y=8, baseline="middle").encode(x=x, text="text:N"),
        inside.mark_line(**line).encode(x=x, y=y),
        beyond.mark_line(strokeDash=[5, 4], **line).encode(x=x, y=y),
        *_checks(measured, x, y, axis),
        # Wide invisible points make the curve easy to hover over.
        chart(points).mark_point(size=300, opacity=0, filled=True).encode(x=x, y=y, tooltip=hover),
    ]
    return finish(alt.layer(*layers), height=300)


def _checks(measured: list[Json], x: Json, y: Json, axis: Json) -> list[alt.Chart]:
    if not measured:
        return []
    hover = tips(name=("", ""), **_interval(axis["title"], axis["format"]))
    drawn = chart(measured)
    bars = drawn.mark_rule(color=INK, strokeWidth=1.5)
    dots = drawn.mark_point(filled=True, color=INK, size=60, opacity=1)
    return [
        bars.encode(x=x, y=quantity("low", **axis), y2="high:Q", tooltip=hover),
        dots.encode(x=x, y=y, tooltip=hover),
    ]


def relevances(rows: list[Json]) -> Json:
    """Draw the relevance of each input; rows have feature and relevance."""
    title = "relative to the most relevant input"
    drawn = chart(rows).mark_bar(color=ACCENT, cornerRadius=2, height={"band": 0.6})
    encoded = drawn.encode(
        x=quantity("relevance", title, domain=[0, 1], tickCount=5, format=".0%"),
        y=nominal("feature", [row["feature"] for row in rows], ticks=False, domain=False),
        tooltip=tips(feature=("input", ""), relevance=("relevance", ".2~%")),
    )
    return finish(encoded, height=max(28 * len(rows), 60))
