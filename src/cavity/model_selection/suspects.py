"""Examples whose labels look wrong."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.model_selection.columns import columns

__all__ = ["Suspect", "Suspects", "most_doubtful", "rank"]

_HEADER = ("row", "label", "suggestion", "probability", "evidence")


@dataclass(frozen=True)
class Suspect:
    """One example and what speaks against its label.

    Attributes
    ----------
    index : int
        Row of the table.
    label : object
        As given.
    suggestion : object
        What the other examples predict.
    probability : float
        Of the label as given, or its density, held out and averaged over training sets.
    evidence : float
        Log odds against the label, or how many standard deviations the target is off.
    error : float
        Expected held-out error.
    """

    index: int
    label: Any
    suggestion: Any
    probability: float
    evidence: float
    error: float


@dataclass(frozen=True)
class Suspects:
    """Suspects, the strongest first; prints as a table."""

    rows: tuple[Suspect, ...]

    def __iter__(self) -> Any:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> Suspect:
        return self.rows[place]

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows]).set_index("index")

    def __repr__(self) -> str:
        lines = [
            [
                str(row.index),
                _short(row.label),
                _short(row.suggestion),
                f"{row.probability:.3g}",
                f"{row.evidence:.2f}",
            ]
            for row in self.rows
        ]
        return "\n".join(columns(_HEADER, lines))


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)[:12]


def most_doubtful(doubt: Array, k: int) -> list[int]:
    """Return the places of the k largest doubts, the largest first."""
    places: list[int] = np.argsort(-doubt, kind="stable")[:k].tolist()
    return places


def rank(
    k: int, y: Array, suggestion: Array, probability: Array, evidence: Array, error: Array
) -> Suspects:
    """Return the k examples with the most evidence against their labels."""
    if not 1 <= k <= len(y):
        raise ValueError(f"k must lie between 1 and the {len(y)} examples; got {k!r}.")
    return Suspects(
        tuple(
            Suspect(
                int(i),
                _plain(y[i]),
                _plain(suggestion[i]),
                float(probability[i]),
                float(evidence[i]),
                float(error[i]),
            )
            for i in most_doubtful(evidence, k)
        )
    )


def _plain(value: Any) -> Any:
    """Return a Python object rather than a NumPy scalar."""
    return value.item() if hasattr(value, "item") else value
