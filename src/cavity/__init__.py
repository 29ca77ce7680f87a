"""Gaussian process classification and regression by the statistical physics of inference."""

from cavity._version import __version__
from cavity.estimators import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    compare_inference,
)

__all__ = [
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "__version__",
    "compare_inference",
]
