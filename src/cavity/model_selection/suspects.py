"""Examples whose labels look wrong."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from cavity.arrays import Array
from cavity.estimators.columns import RowTable


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
        Held-out probability (or density) of the label as given, averaged over training sets.
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


class Suspects(RowTable[Suspect]):
    """Suspects, the strongest first; prints as a table."""

    header = ("row", "label", "suggestion", "probability", "doubt")

    def cells(self, row: Suspect) -> list[Any]:
        """Return a row as it is printed, long labels cut short."""
        labels = [
            f"{value:.4g}" if isinstance(value, float) else str(value)[:12]
            for value in (row.label, row.suggestion)
        ]
        return [row.index, *labels, f"{row.probability:.3g}", f"{row.doubt:.2f}"]


def most_doubtful(doubt: Array, k: int) -> Array:
    """Return the positions of the k largest doubts, the largest first; NaN comes last."""
    return np.argsort(-doubt, kind="stable")[:k]
