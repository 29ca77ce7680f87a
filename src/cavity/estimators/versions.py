"""Estimators that remember, in a pickle, which version of cavity has made them."""

import re
import warnings
from abc import ABC
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

from cavity._version import __version__

_KEY, _LOCK = "_cavity_version", "_lock"


class OtherVersionWarning(InconsistentVersionWarning):  # type: ignore[misc]
    """An estimator was pickled by an earlier version of cavity."""

    def __init__(self, name: str, version: str) -> None:
        super().__init__(
            estimator_name=name,
            current_sklearn_version=__version__,
            original_sklearn_version=version,
        )

    def __str__(self) -> str:
        return (
            f"This {self.estimator_name} was pickled by cavity {self.original_sklearn_version} and "
            f"is read by {self.current_sklearn_version}: it may not work, or give other numbers. "
            "Files of cavity.estimators.save are opened by every later version."
        )


class VersionedEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """An estimator whose pickles name their version; those of a newer one are refused."""

    def _keep(self, given: dict[str, Any]) -> None:
        """Make each argument of the constructor the attribute of its name."""
        self.__dict__.update({name: value for name, value in given.items() if name != "self"})

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop(_LOCK, None)
        return state | {_KEY: __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        version = str(state.pop(_KEY, "0.1.0 or before"))
        if _numbers(version) > _numbers(__version__):
            raise ValueError(
                f"This {type(self).__name__} was pickled by cavity {version}, and this is cavity "
                f"{__version__}: install version {version} or a later one."
            )
        if version != __version__:
            warnings.warn(OtherVersionWarning(type(self).__name__, version), stacklevel=2)
            # Parameters that the other version did not have.
            state = vars(type(self)()) | state
        super().__setstate__(state)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
