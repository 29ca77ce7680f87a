"""scikit-learn classes: validation and label coding, nothing numerical."""

from cavity.estimators.classifier import GaussianProcessClassifier
from cavity.estimators.comparison import Comparison, compare_inference
from cavity.estimators.learning import learning_curve
from cavity.estimators.online import (
    OnlineGaussianProcessClassifier,
    OnlineGaussianProcessRegressor,
)
from cavity.estimators.regressor import GaussianProcessRegressor
from cavity.estimators.simulation import simulate_learning_curve

__all__ = [
    "Comparison",
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "OnlineGaussianProcessClassifier",
    "OnlineGaussianProcessRegressor",
    "compare_inference",
    "learning_curve",
    "simulate_learning_curve",
]
