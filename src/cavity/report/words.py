"""Numbers written for people."""

import math
from collections.abc import Sequence


def number(x: float | None, digits: int = 3) -> str:
    """Return a number with this many significant digits, or a dash if there is none.

    >>> number(0.46674), number(12345.6), number(None), number(2.0)
    ('0.467', '12,346', '–', '2.00')
    """
    if x is None or not math.isfinite(x):
        return "–"
    if x == 0.0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(x)))
    if places > 6:
        return f"{x:.{digits - 1}e}".replace("-", "−")
    return f"{x:,.{max(places, 0)}f}".replace("-", "−")


def percent(share: float | None, digits: int = 0) -> str:
    """Return a share in percent; a small one is "under 1 %" instead of 0 %.

    >>> percent(0.213), percent(0.0004), percent(0.9999)
    ('21 %', 'under 1 %', 'over 99 %')
    """
    if share is None:
        return "–"
    smallest = 10.0 ** (-2 - digits)
    if 0.0 < share < smallest / 2:
        return f"under {100 * smallest:.{digits}f} %"
    if 1.0 - smallest / 2 < share < 1.0:
        return f"over {100 * (1 - smallest):.{digits}f} %"
    return f"{100 * share:.{digits}f} %"


def in_hundred(share: float) -> str:
    """Return how often something happens in a hundred cases or, if it is rare, in a thousand.

    >>> in_hundred(0.213), in_hundred(0.013), in_hundred(0.0)
    ('21 times in 100', '13 times in 1,000', 'never')
    """
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


def count(n: float, one: str, many: str | None = None) -> str:
    """Return a number of things.

    >>> count(1, "row"), count(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,.0f} {one if n == 1 else many or one + 's'}"


def join(names: Sequence[str]) -> str:
    """Return names as a list for a sentence.

    >>> join(["a"]), join(["a", "b"]), join(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
