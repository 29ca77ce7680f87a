"""What is said to a pickle of version 0.1, whose classes are no longer here."""

from collections.abc import Callable
from typing import Any

from cavity._version import __version__

_GONE = {
    *("TwoClasses", "OneVsRest", "OneVsOne", "LatentProcess", "Step"),
    *("State", "Options", "Rows", "OnlineGaussianProcessRegressor"),
}


def gone(module: str) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` that says how to take over what is in such a pickle."""

    def refuse(name: str) -> Any:
        if name not in _GONE:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise ValueError(
            f"A pickle of cavity 0.1 cannot be opened by cavity {__version__}, which has no {name}:"
            " fit the model again, or, if it is of a stream, open it with cavity 0.1.0 and save it "
            "to a file there."
        )

    return refuse
