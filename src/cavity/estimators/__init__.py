"""scikit-learn classes: validation and label coding, nothing numerical."""

from cavity.estimators.classifier import GaussianProcessClassifier
from cavity.estimators.online import (
    OnlineGaussianProcessClassifier,
    OnlineGaussianProcessRegressor,
)
from cavity.estimators.regressor import GaussianProcessRegressor

__all__ = [
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "OnlineGaussianProcessClassifier",
    "OnlineGaussianProcessRegressor",
]
