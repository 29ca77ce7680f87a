"""Numbers written for people."""

import math
from collections.abc import Sequence


def number(x: float | None, digits: int = 3) -> str:
    """Return a number with this many significant digits, or a dash if there is none."""
    if x is None or not math.isfinite(x):
        return "–"
    if x == 0.0:
        return "0"
    # The exponent after rounding: 0.9996 with two digits is 1.0, like 1.004.
    places = digits - 1 - int(f"{x:.{digits - 1}e}".split("e")[1])
    if places > 6:
        return f"{x:.{digits - 1}e}".replace("-", "−")
    return f"{x:,.{max(places, 0)}f}".replace("-", "−")


def percent(share: float | None, digits: int = 0) -> str:
    """Return a share in percent; a small one is "under 1 %" instead of 0 %."""
    if share is None:
        return "–"
    smallest = 10.0 ** (-2 - digits)
    if 0.0 < share < smallest / 2:
        return f"under {100 * smallest:.{digits}f} %"
    if 1.0 - smallest / 2 < share < 1.0:
        return f"over {100 * (1 - smallest):.{digits}f} %"
    return f"{100 * share:.{digits}f} %"


def in_hundred(share: float) -> str:
    """Return how often something happens in a hundred cases or, if it is rare, in a thousand."""
    if share == 0.0:
        return "never"
    per, whole = (1000, "1,000") if share < 0.095 else (100, "100")
    n = max(round(per * share), 1)
    return f"{n} time{'s' if n != 1 else ''} in {whole}"


def plus_minus(x: float | None, error: float | None, digits: int = 3) -> str:
    """Return a number and its standard error with the same number of decimals."""
    if x is None or error is None:
        return number(x, digits)
    places = min(max(digits - 1 - math.floor(math.log10(abs(x) or 1.0)), 0), 6)
    return f"{x:,.{places}f} ± {error:,.{places}f}".replace("-", "−")


def capitalised(text: str) -> str:
    """Return text with a large first letter; names inside it stay as they are."""
    return text[:1].upper() + text[1:]


def count(n: float, one: str, many: str | None = None) -> str:
    """Return a number of things."""
    return f"{n:,.0f} {one if n == 1 else many or one + 's'}"


def join(names: Sequence[str]) -> str:
    """Return names as a list for a sentence."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def taken_as(task: str) -> str:
    """Return what a target is taken as, in words."""
    words = {
        "counts": "as counts",
        "ordinal": "as classes in an order",
        "robust": "as a quantity with outliers",
    }
    return words.get(task, f"by {task}")


def representatives(points: int, left_over: float, gain: float | None, rows: int) -> str:
    """Return what inducing points are, and whether more of them would help, in plain words."""
    text = (
        f"The model summarises the {rows:,} rows by {count(points, 'representative point')} "
        f"(inducing points), which capture {percent(1.0 - left_over, 1)} of the variation that the "
        "kernel describes."
    )
    if gain is None:
        return text
    # In nats per row; less has no practical effect on predictions.
    enough = gain < 0.005 * rows
    more = (
        "so more of them would hardly help."
        if enough
        else f"so more may help: try --inducing {2 * points}."
    )
    return (
        f"{text} The last doubling, from {points // 2:,} to {points:,}, changed the log evidence "
        f"by {number(gain)}, which is {number(gain / rows, 2)} per row, {more}"
    )
