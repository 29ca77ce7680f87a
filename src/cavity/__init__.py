"""Gaussian process classification and regression by the statistical physics of inference."""

from cavity._version import __version__
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


def __dir__() -> list[str]:
    return __all__
