"""Examples whose labels look wrong."""

import warnings
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.estimators.columns import RowTable, columns

_OPEN = 0.25
"""Share of the rows: with a wider interval their number is open."""


@dataclass(frozen=True)
class Reason:
    """A row that speaks against the label of another one.

    Attributes
    ----------
    index : int
        Row of the table.
    label : object
        Its own label.
    share : float
        Its share of all that speaks against, in the prediction without the suspect. Of a target
        that is a number, its share of the prediction.
    """

    index: int
    label: Any
    share: float


@dataclass(frozen=True)
class Suspect:
    """One example whose label the others contradict.

    Attributes
    ----------
    index : int
        Row of the table.
    label : object
        As given.
    suggestion : object
        What the other examples predict; where ``wrong`` is known, apart from the label itself.
    probability : float
        Held-out probability (or density) of the label as given, averaged over training sets.
    doubt : float
        Log odds against the label, or how many standard deviations the target is off.
    error : float
        Expected held-out error.
    wrong : float or None
        Probability that the label is wrong, where it is known.
    precision : float or None
        Expected share of wrong labels among this row and all that are as suspect or more.
    reasons : tuple of Reason
        The rows that speak most against the label, if they were asked for. Of a target that is a
        number, the rows from which most of its prediction comes.
    interval : tuple of float or None
        Of a target that is a number: where it should be, given the other rows.
    """

    index: int
    label: Any
    suggestion: Any
    probability: float
    doubt: float
    error: float
    wrong: float | None = None
    precision: float | None = None
    reasons: tuple[Reason, ...] = ()
    interval: tuple[float, float] | None = None

    @property
    def evidence(self) -> float:
        """The former name of ``doubt``."""
        warnings.warn("Suspect.evidence is now Suspect.doubt", DeprecationWarning, stacklevel=2)
        return self.doubt


@dataclass(frozen=True, repr=False)
class Suspects(RowTable[Suspect]):
    """Suspects, the strongest first; prints as a table.

    Attributes
    ----------
    rows : tuple of Suspect
    count : int or None
        How many labels of the whole table are wrong, where that was estimated: the median.
    count_interval : tuple of int or None
        The interval that contains the number with probability ``level``.
    level : float
    n_rows : int
        Number of rows that were judged.
    what : str
        What was counted: "Outliers" of targets that are numbers.
    """

    header = ("row", "label", "suggestion", "probability", "doubt")

    count: int | None = None
    count_interval: tuple[int, int] | None = None
    level: float = 0.9
    n_rows: int = 0
    what: str = "Wrong labels"

    def cells(self, row: Suspect) -> list[Any]:
        """Return a row as it is printed, long labels cut short."""
        front = [row.index, _short(row.label), _short(row.suggestion)]
        found = [*front, f"{row.probability:.3g}", f"{row.doubt:.2f}"]
        if row.wrong is not None:
            found += [f"{row.wrong:.3f}", ", ".join(str(reason.index) for reason in row.reasons)]
        return found

    def to_records(self) -> list[dict[str, Any]]:
        """Return a dictionary for each suspect, with a list of reasons."""
        return [_without_nothing(asdict(row)) for row in self.rows]

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame, with the rows' numbers as its index.

        The reasons are text: the rows that speak against the label, and the share of each.
        """
        import pandas as pd

        lines = [line | _in_words(line) for line in self.to_records()]
        names = [name for name in Suspect.__dataclass_fields__ if not lines or name in lines[0]]
        return pd.DataFrame(lines, columns=names).set_index("index")

    def __repr__(self) -> str:
        known = self.count is not None
        header = [*self.header, "wrong", "against it"] if known else list(self.header)
        table = columns(header, [self.cells(row) for row in self.rows])
        return "\n".join([self.about, *table] if known else table)

    @property
    def about(self) -> str:
        """How many labels are wrong, in a sentence."""
        if self.count is None or self.count_interval is None:
            raise ValueError("The number of wrong labels was not estimated: use find_suspects().")
        return f"{self.what}: {in_words(self.count, *self.count_interval, self.n_rows, self.level)}"


def is_open(low: int, high: int, rows: int) -> bool:
    """Whether an interval is so wide that its middle says nothing."""
    return high - low > _OPEN * rows


def in_words(count: int, low: int, high: int, rows: int, level: float) -> str:
    """Return how many of the rows, or that this is open."""
    if is_open(low, high, rows):
        return f"open how many of {rows:,} ({level:.0%} interval {low:,} to {high:,})"
    return f"about {count:,} of {rows:,} ({level:.0%} interval {low:,} to {high:,})"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)[:12]


def _without_nothing(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line without what is not known; there are reasons where there is a probability."""
    known = {name: value for name, value in line.items() if value is not None}
    if "wrong" not in known:
        del known["reasons"]
    return known


def _in_words(line: dict[str, Any]) -> dict[str, str]:
    if "reasons" not in line:
        return {}
    each = (f"{reason['index']} ({reason['share']:.0%})" for reason in line["reasons"])
    return {"reasons": ", ".join(each)}


def most_doubtful(doubt: Array, k: int) -> Array:
    """Return the positions of the k largest doubts, the largest first; NaN comes last."""
    return np.argsort(-doubt, kind="stable")[:k]


def chosen_places(wrong: Array, doubted: Array, precision: float | None, k: int | None) -> Array:
    """Return the places of the rows to take, among all in the order of their probabilities."""
    if k is not None and (not isinstance(k, Integral) or not 1 <= k <= len(wrong)):
        raise ValueError(f"k must lie between 1 and the {len(wrong)} examples; got {k!r}.")
    if precision is not None:
        return np.arange(cut_off(wrong, precision))[:k]
    return np.flatnonzero(doubted) if k is None else np.arange(k)


def check_positions(position: Array) -> None:
    """Refuse rows that were not trained on."""
    if np.any(position < 0):
        raise ValueError(
            "Rows of weight zero cannot be suspects, for their labels are not kept: fit without "
            "them."
        )


def cut_off(wrong: Array, precision: float) -> int:
    """Return how many rows, the likeliest first, have wrong labels in this share on average.

    Parameters
    ----------
    wrong : array of shape (n,)
        Probabilities that labels are wrong, the largest first.
    precision : float
        Least share of wrong labels among the rows that are chosen.
    """
    if not 0.0 < precision < 1.0:
        raise ValueError(f"precision must lie between 0 and 1; got {precision!r}.")
    enough = np.flatnonzero(running_mean(wrong) >= precision)
    return int(enough[-1]) + 1 if len(enough) else 0


def running_mean(wrong: Array) -> Array:
    """Return the mean of each entry and all before it."""
    return np.asarray(np.cumsum(wrong) / np.arange(1, len(wrong) + 1))
