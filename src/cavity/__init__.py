"""Gaussian process classification and regression by the statistical physics of inference."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cavity._version import __version__

if TYPE_CHECKING:
    from cavity.estimators import (
        GaussianProcessClassifier,
        GaussianProcessRegressor,
        OnlineGaussianProcessClassifier,
        OnlineGaussianProcessRegressor,
    )
    from cavity.model_selection import (
        LearningCurveDisplay,
        compare_inference,
        cross_val_tuned,
        feature_effect,
        feature_importance,
        find_suspects,
        learning_curve,
        plan,
        simulate_learning_curve,
        suggest,
    )

__all__ = [
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "LearningCurveDisplay",
    "OnlineGaussianProcessClassifier",
    "OnlineGaussianProcessRegressor",
    "__version__",
    "compare_inference",
    "cross_val_tuned",
    "feature_effect",
    "feature_importance",
    "find_suspects",
    "learning_curve",
    "plan",
    "simulate_learning_curve",
    "suggest",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for, once.

    The package itself is imported in no time: a command can be interrupted from its first moment,
    and say so in one line.
    """
    if name in __all__:
        room = "estimators" if name.endswith(("Classifier", "Regressor")) else "model_selection"
        found = getattr(import_module(f"cavity.{room}"), name)
        return globals().setdefault(name, found)
    if name.startswith("_") or find_spec(f"cavity.{name}") is None:
        raise AttributeError(f"module 'cavity' has no attribute {name!r}")
    return import_module(f"cavity.{name}")


def __dir__() -> list[str]:
    return __all__
