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

__all__ = [
    "agreement",
    "evidences",
    "histogram",
    "learning",
    "predicted_and_seen",
    "relevances",
    "residuals",
    "scores",
]

Json = dict[str, Any]
_ROW = 34


def scores(rows: list[Json], title: str, form: str, alt_text: str) -> Json:
    """Draw scores with their 95 % intervals, one line for each; name, value, low, high, ours."""
    names = [row["name"] for row in rows]
    y = nominal("name", names, labelLimit=130)
    drawn = chart(rows)
    hover = tips(name=("", ""), value=(title, form), low=("from", form), high=("to", form))
    color = alt.condition("datum.ours", alt.value(ACCENT), alt.value(MUTED))
    bars = drawn.mark_rule(strokeWidth=2).encode(
        x=quantity("low", title, zero=True, format=form, tickCount=5),
        x2="high:Q",
        y=y,
        color=color,
        tooltip=hover,
    )
    dots = drawn.mark_point(filled=True, size=90, opacity=1).encode(
        x=quantity("value", title, zero=True), y=y, color=color, tooltip=hover
    )
    return finish(bars + dots, alt_text, height=_ROW * len(rows) + 10)


def agreement(bins: list[Json], x_title: str, y_title: str, alt_text: str) -> Json:
    """Draw what was seen against what was predicted, beside the diagonal; shares of one."""
    shares = {"domain": [0, 1], "format": ".0%", "tickCount": 5}
    ends = chart([{"predicted": 0, "observed": 0}, {"predicted": 1, "observed": 1}])
    diagonal = ends.mark_line(color=FAINT, strokeDash=[4, 4], strokeWidth=1.5).encode(
        x=quantity("predicted", x_title, **shares), y=quantity("observed", y_title, **shares)
    )
    hover = tips(
        predicted=("predicted", ".0%"),
        observed=("seen", ".0%"),
        observed_low=("from", ".0%"),
        observed_high=("to", ".0%"),
        count=("rows", ",d"),
    )
    x, drawn = quantity("predicted", x_title, **shares), chart(bins)
    bars = drawn.mark_rule(color=ACCENT, strokeWidth=1.5).encode(
        x=x, y=quantity("observed_low", y_title, **shares), y2="observed_high:Q", tooltip=hover
    )
    dots = drawn.mark_point(filled=True, color=ACCENT, opacity=1).encode(
        x=x,
        y=quantity("observed", y_title, **shares),
        size=alt.Size("count:Q", legend=None, scale=alt.Scale(rangeMin=30, rangeMax=220)),
        tooltip=hover,
    )
    return finish(diagonal + bars + dots, alt_text, height=280)


def histogram(bars: list[Json], kinds: list[str], title: str, form: str, alt_text: str) -> Json:
    """Draw counts in bins, stacked by kind; lower, upper, kind, count, and from below to above."""
    color: Any = alt.value(ACCENT)
    if len(kinds) > 1:
        color = alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=[ACCENT, FAINT]))
    drawn = chart(bars).mark_rect(stroke="var(--paper)", strokeWidth=1)
    encoded = drawn.encode(
        x=quantity("lower", title, format=form, tickCount=6, grid=False, nice=False),
        x2="upper:Q",
        y=quantity("below", "rows", zero=True, tickCount=4),
        y2="above:Q",
        color=color,
        tooltip=tips(kind=("", ""), lower=("from", form), upper=("to", form), count=("rows", ",d")),
    )
    return finish(encoded, alt_text, height=220)


def predicted_and_seen(points: list[Json], target: str, alt_text: str) -> Json:
    """Draw the target against its leave-one-out prediction; row, prediction, label, std."""
    values = [p[key] for p in points for key in ("prediction", "label")]
    ends = [{"prediction": v, "label": v} for v in (min(values), max(values))]
    x = quantity("prediction", "predicted from the other rows", tickCount=6)
    y = quantity("label", f"{target}, as in the table", tickCount=6)
    line = chart(ends).mark_line(color=FAINT, strokeDash=[4, 4]).encode(x=x, y=y)
    dots = _dots(points).encode(x=x, y=y)
    return finish(line + dots, alt_text, height=320)


def residuals(points: list[Json], alt_text: str) -> Json:
    """Draw by how many standard deviations each row is off, against its prediction."""
    x = quantity("prediction", "predicted from the other rows", tickCount=6)
    y = quantity("z", "standard deviations off", tickCount=6)
    band = (
        chart([{"low": -1.96, "high": 1.96}])
        .mark_rect(color=SOFT, opacity=0.6)
        .encode(y=quantity("low", "standard deviations off"), y2="high:Q")
    )
    return finish(band + _dots(points).encode(x=x, y=y), alt_text, height=320)


def _dots(points: list[Json]) -> Any:
    hover = tips(
        row=("row", ",d"),
        label=("in the table", ",.4~g"),
        prediction=("predicted", ",.4~g"),
        std=("±", ",.3~g"),
    )
    return (
        chart(points)
        .mark_point(filled=True, size=28, opacity=0.55, color=ACCENT)
        .encode(tooltip=hover)
    )


def learning(
    points: list[Json], at_hand: int, measured: list[Json], title: str, form: str, alt_text: str
) -> Json:
    """Draw a learning curve: inside the data solid, beyond dashed, with the forecast's interval.

    Points have size, value, low, high and beyond; measured ones size, value, low, high and name.
    """
    first, last = points[0]["size"], points[-1]["size"]
    x = quantity(
        "size", "rows to learn from", log=True, domain=[first, last], tickCount=6, format="~s"
    )
    y = quantity("value", title, format=form, tickCount=5)
    hover = tips(size=("rows", ",.0f"), value=(title, form), low=("from", form), high=("to", form))
    beyond = [p for p in points if p["size"] >= at_hand]
    inside = [p for p in points if p["size"] <= at_hand]
    band = (
        chart(beyond)
        .mark_area(color=SOFT)
        .encode(x=x, y=quantity("low", title, format=form), y2="high:Q")
    )
    line = chart(inside).mark_line(color=ACCENT, strokeWidth=2.5).encode(x=x, y=y)
    ahead = (
        chart(beyond).mark_line(color=ACCENT, strokeWidth=2.5, strokeDash=[5, 4]).encode(x=x, y=y)
    )
    # Hovering should not need a steady hand: wide invisible points along the curve.
    near = (
        chart(points).mark_point(size=300, opacity=0, filled=True).encode(x=x, y=y, tooltip=hover)
    )
    return finish(
        alt.layer(
            band, _mark(at_hand, x), line, ahead, *_checks(measured, x, y, title, form), near
        ),
        alt_text,
        height=300,
    )


def _mark(at_hand: int, x: Json) -> Any:
    here = chart([{"size": at_hand, "text": "your rows"}])
    rule = here.mark_rule(color=FAINT).encode(x=x)
    text = here.mark_text(align="right", dx=-6, y=8, baseline="middle").encode(x=x, text="text:N")
    return rule + text


def _checks(measured: list[Json], x: Json, y: Json, title: str, form: str) -> list[alt.Chart]:
    if not measured:
        return []
    hover = tips(name=("", ""), value=(title, form), low=("from", form), high=("to", form))
    drawn = chart(measured)
    bars = drawn.mark_rule(color=INK, strokeWidth=1.5).encode(
        x=x, y=quantity("low", title, format=form), y2="high:Q", tooltip=hover
    )
    return [
        bars,
        drawn.mark_point(filled=True, color=INK, size=60, opacity=1).encode(
            x=x, y=y, tooltip=hover
        ),
    ]


def relevances(rows: list[Json], alt_text: str) -> Json:
    """Draw how much each input matters, the most relevant first; feature, relevance."""
    drawn = chart(rows).mark_bar(color=ACCENT, cornerRadius=2, height={"band": 0.6})
    encoded = drawn.encode(
        x=quantity(
            "relevance",
            "relative to the most relevant input",
            domain=[0, 1],
            tickCount=5,
            format=".0%",
        ),
        y=nominal("feature", [row["feature"] for row in rows], ticks=False, domain=False),
        tooltip=tips(feature=("input", ""), relevance=("relevance", ".2~%")),
    )
    return finish(encoded, alt_text, height=max(28 * len(rows), 60))


def evidences(rows: list[Json], alt_text: str) -> Json:
    """Draw each method's log evidence, with a bar to where the known correction would move it."""
    y = nominal("inference", [row["inference"] for row in rows])
    hover = tips(
        inference=("", ""),
        log_evidence=("log evidence", ",.3f"),
        loo_log_loss=("leave-one-out log loss", ".4f"),
        seconds=("seconds", ".2f"),
    )
    drawn = chart(rows)
    x = quantity("log_evidence", "log evidence (larger is better)", tickCount=5)
    color = alt.condition("datum.chosen", alt.value(ACCENT), alt.value(MUTED))
    bars = drawn.mark_rule(strokeWidth=2).encode(
        x=quantity("low", "log evidence (larger is better)", tickCount=5),
        x2="high:Q",
        y=y,
        color=color,
        tooltip=hover,
    )
    dots = drawn.mark_point(filled=True, size=90, opacity=1).encode(
        x=x, y=y, color=color, tooltip=hover
    )
    return finish(bars + dots, alt_text, height=_ROW * len(rows) + 10)
