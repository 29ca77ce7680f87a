"""scikit-learn classes: validation and label coding, nothing numerical."""

from cavity.estimators.classifier import GaussianProcessClassifier
from cavity.estimators.comparison import Comparison, compare_inference
from cavity.estimators.regressor import GaussianProcessRegressor

__all__ = [
    "Comparison",
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "compare_inference",
]
