"""What is said to a pickle of version 0.1, whose classes are no longer here."""

from collections.abc import Callable
from typing import Any

from cavity._version import __version__

_GONE = {
    *("TwoClasses", "OneVsRest", "OneVsOne", "LatentProcess", "Step"),
    *("State", "Options", "Rows", "OnlineGaussianProcessRegressor"),
}


def gone(module: str) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` that says how to open such a pickle."""

    def refuse(name: str) -> Any:
        if name not in _GONE:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise ValueError(
            f"This is a pickle of cavity 0.1, and cavity {__version__} has no {name}: open it with "
            "cavity.estimators.load_pickle."
        )

    return refuse
