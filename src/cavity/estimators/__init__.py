"""scikit-learn classes: validation and label coding, nothing numerical."""

import warnings
from importlib import import_module
from typing import Any

from cavity.estimators.classifier import GaussianProcessClassifier
from cavity.estimators.earlier import load_pickle
from cavity.estimators.online import OnlineGaussianProcessClassifier
from cavity.estimators.online_regressor import OnlineGaussianProcessRegressor
from cavity.estimators.regressor import GaussianProcessRegressor
from cavity.estimators.stored import load, save

__all__ = [
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "OnlineGaussianProcessClassifier",
    "OnlineGaussianProcessRegressor",
    "load",
    "load_pickle",
    "save",
]


def __getattr__(name: str) -> Any:
    """Return what has moved to `cavity.model_selection`."""
    if name not in {"Comparison", "compare_inference", "learning_curve", "simulate_learning_curve"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"{name} is now in cavity.model_selection", DeprecationWarning, stacklevel=2)
    return getattr(import_module("cavity.model_selection"), name)
