"""Examples whose labels look wrong."""

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.model_selection.columns import columns

_HEADER = ("row", "label", "suggestion", "probability", "doubt")


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
        What the other examples predict.
    probability : float
        Of the label as given, or its density, held out and averaged over training sets.
    doubt : float
        Log odds against the label, or how many standard deviations the target is off.
    error : float
        Expected held-out error.
    """

    index: int
    label: Any
    suggestion: Any
    probability: float
    doubt: float
    error: float

    @property
    def evidence(self) -> float:
        """The former name of ``doubt``."""
        warnings.warn("Suspect.evidence is now Suspect.doubt", DeprecationWarning, stacklevel=2)
        return self.doubt


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
                f"{row.doubt:.2f}",
            ]
            for row in self.rows
        ]
        return "\n".join(columns(_HEADER, lines))


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)[:12]


def most_doubtful(doubt: Array, k: int) -> Array:
    """Return the places of the k largest doubts, the largest first."""
    return np.argsort(-doubt, kind="stable")[:k]


def rank(
    k: int, y: Array, suggestion: Array, probability: Array, doubt: Array, error: Array
) -> Suspects:
    """Return the k examples whose labels are most in doubt.

    Parameters
    ----------
    k : int
    y, suggestion, probability, doubt, error : arrays of shape (n,)
        As the attributes of `Suspect`; where the doubt is NaN an example comes last.
    """
    if not 1 <= k <= len(y):
        raise ValueError(f"k must lie between 1 and the {len(y)} examples; got {k!r}.")
    order = most_doubtful(doubt, k)
    parts = (order, y[order], suggestion[order], probability[order], doubt[order], error[order])
    return Suspects(tuple(map(Suspect, *(part.tolist() for part in parts))))
