"""Gaussian process classification and regression by the statistical physics of inference."""

from cavity._version import __version__
from cavity.displays import LearningCurveDisplay
from cavity.estimators import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    OnlineGaussianProcessClassifier,
    OnlineGaussianProcessRegressor,
    compare_inference,
    learning_curve,
    simulate_learning_curve,
)

__all__ = [
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "LearningCurveDisplay",
    "OnlineGaussianProcessClassifier",
    "OnlineGaussianProcessRegressor",
    "__version__",
    "compare_inference",
    "learning_curve",
    "simulate_learning_curve",
]
