"""What a page is made of; the template knows how to draw each kind."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

__all__ = [
    "Cell",
    "Code",
    "Counts",
    "Facts",
    "Figure",
    "Figures",
    "Goal",
    "Note",
    "Section",
    "Table",
]


@dataclass(frozen=True)
class Figure:
    """A chart: a Vega-Lite specification, what it shows, and the same for those who cannot see."""

    name: str
    spec: dict[str, Any]
    caption: str
    alt: str


@dataclass(frozen=True)
class Figures:
    """Charts side by side where there is room."""

    kind: ClassVar[str] = "figures"
    figures: Sequence[Figure]


@dataclass(frozen=True)
class Cell:
    """Text, and the value to sort by; numbers stand to the right."""

    text: str
    value: float | str | None = None
    strong: bool = False

    @property
    def is_number(self) -> bool:
        """Whether this cell holds a number, or stands where one is missing."""
        return not isinstance(self.value, str)


@dataclass(frozen=True)
class Table:
    """A table whose columns sort by a click on their heads."""

    kind: ClassVar[str] = "table"
    name: str
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Counts:
    """A table of true against predicted classes, shaded by each row's shares."""

    kind: ClassVar[str] = "counts"
    name: str
    caption: str
    labels: Sequence[str]
    counts: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Goal:
    """A box to type a target into; the page's script answers from a tabulated curve.

    Attributes
    ----------
    name : str
    before, after : str
        What stands around the box.
    start : str
        What stands in the box at first.
    unit : float
        What one unit of the box is worth in the curve's values: 0.01 for percentages.
    sizes, values : sequences of float
        The curve, by increasing size.
    """

    kind: ClassVar[str] = "goal"
    name: str
    before: str
    after: str
    start: str
    unit: float
    at_hand: int
    sizes: Sequence[float]
    values: Sequence[float]


@dataclass(frozen=True)
class Note:
    """A paragraph; quiet ones are smaller."""

    kind: ClassVar[str] = "note"
    text: str
    quiet: bool = False


@dataclass(frozen=True)
class Facts:
    """Terms and what they are here."""

    kind: ClassVar[str] = "facts"
    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Code:
    """Something to copy."""

    kind: ClassVar[str] = "code"
    text: str


@dataclass(frozen=True)
class Section:
    """A question, its answer in a sentence, and what the answer rests on."""

    name: str
    title: str
    headline: str
    blocks: Sequence[Any] = field(default_factory=tuple)
