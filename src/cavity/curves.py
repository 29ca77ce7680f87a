"""The former name of what is now in `cavity.resampling` and `cavity.model_selection`."""

import warnings
from typing import Any

from cavity import model_selection, resampling

__all__: list[str] = []

_RENAMED = {
    "Classes": "MulticlassScores",
    "Order": "Averages",
    "Scorer": "Scores",
    "Sources": "EffectiveSites",
    "Target": "RegressionScores",
    "Trend": "ErrorTrend",
    "TwoClasses": "BinaryScores",
}


def __getattr__(former: str) -> Any:
    name = _RENAMED.get(former, former)
    for room in (resampling, model_selection):
        if name in room.__all__:
            warnings.warn(
                f"cavity.curves.{former} is now {room.__name__}.{name}",
                DeprecationWarning,
                stacklevel=2,
            )
            return getattr(room, name)
    raise AttributeError(f"module {__name__!r} has no attribute {former!r}")
