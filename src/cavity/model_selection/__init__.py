"""Questions about a fit: learning curves, forecasts, labels that look wrong, comparisons."""

from cavity.model_selection.comparison import Comparison, compare_inference
from cavity.model_selection.curve import LearningCurve, Source
from cavity.model_selection.display import LearningCurveDisplay
from cavity.model_selection.forecast import Forecast, Trend
from cavity.model_selection.learning import learning_curve
from cavity.model_selection.simulation import simulate_learning_curve
from cavity.model_selection.suspects import Suspect, Suspects
from cavity.model_selection.theory import THEORIES, Door, Theoretical, theoretical_curve

__all__ = [
    "THEORIES",
    "Comparison",
    "Door",
    "Forecast",
    "LearningCurve",
    "LearningCurveDisplay",
    "Source",
    "Suspect",
    "Suspects",
    "Theoretical",
    "Trend",
    "compare_inference",
    "learning_curve",
    "simulate_learning_curve",
    "theoretical_curve",
]
