"""The former name of what is now in `cavity.resampling` and `cavity.model_selection`."""

import warnings
from typing import Any

from cavity import model_selection, resampling


def __getattr__(name: str) -> Any:
    for room in (resampling, model_selection):
        if name in room.__all__:
            warnings.warn(
                f"cavity.curves.{name} is now {room.__name__}.{name}",
                DeprecationWarning,
                stacklevel=2,
            )
            return getattr(room, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
