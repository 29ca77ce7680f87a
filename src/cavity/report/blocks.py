"""The parts of a page; templates/page.html.j2 draws each kind."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple


class Cell(NamedTuple):
    """Text, and the value to sort by; numbers are aligned to the right."""

    text: str
    value: float | str | None = None
    strong: bool = False

    @property
    def is_number(self) -> bool:
        """Whether this cell holds a number or is in place of a missing one."""
        return not isinstance(self.value, str)


@dataclass(frozen=True)
class HtmlTable:
    """A table that can be sorted by a click on a column's head."""

    kind: ClassVar[str] = "table"
    name: str
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]


class Figure(NamedTuple):
    """A chart: a Vega-Lite specification, a caption, and a text for screen readers.

    Its numbers are in a table behind it, unless another table of the section has them.
    """

    name: str
    spec: dict[str, Any]
    caption: str
    alt: str
    table: HtmlTable | None = None


@dataclass(frozen=True)
class Figures:
    """Charts, side by side where there is room."""

    kind: ClassVar[str] = "figures"
    figures: Sequence[Figure]


@dataclass(frozen=True)
class Counts:
    """Counts of true and predicted classes, shaded by each row's shares."""

    kind: ClassVar[str] = "counts"
    name: str
    caption: str
    labels: Sequence[str]
    counts: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Goal:
    """A box to type a goal into; the page's script answers from a tabulated curve.

    There is text before and after the box, and an initial number in it. The unit is the
    curve's value for a one in the box: 0.01 for percentages. Sizes increase.
    """

    kind: ClassVar[str] = "goal"
    name: str
    before: str
    after: str
    start: str
    unit: float
    n_rows: int
    sizes: Sequence[float]
    values: Sequence[float]


@dataclass(frozen=True)
class Decision:
    """A threshold to move and costs to type; the page's script counts what they lead to.

    Its numbers are ``thresholds`` of the analysis, which the page holds anyway. At first the
    class at the place ``start`` is chosen.
    """

    kind: ClassVar[str] = "decision"
    name: str
    classes: Sequence[str]
    start: int


@dataclass(frozen=True)
class Note:
    """A paragraph; quiet ones are smaller."""

    kind: ClassVar[str] = "note"
    text: str
    quiet: bool = False


@dataclass(frozen=True)
class Facts:
    """Terms and their values."""

    kind: ClassVar[str] = "facts"
    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Code:
    """A command to copy."""

    kind: ClassVar[str] = "code"
    text: str


@dataclass(frozen=True)
class Findings:
    """What checks have found: records of code, severity, title, text and meaning."""

    kind: ClassVar[str] = "findings"
    findings: Sequence[dict[str, str]]


class Section(NamedTuple):
    """A question, its answer in a sentence, and the details."""

    name: str
    title: str
    headline: str
    blocks: Sequence[Any] = ()
