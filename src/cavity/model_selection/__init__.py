"""Questions about a fit: learning curves, forecasts, wrong labels, inputs, comparisons."""

from cavity.model_selection.advice import Advice
from cavity.model_selection.audit import find_suspects
from cavity.model_selection.comparison import Comparison, compare_inference
from cavity.model_selection.criteria import Criterion
from cavity.model_selection.cross_validation import cross_val_tuned
from cavity.model_selection.curve import LearningCurve, Source
from cavity.model_selection.display import LearningCurveDisplay
from cavity.model_selection.distribution import ForecastDistribution
from cavity.model_selection.effect import FeatureEffect, feature_effect
from cavity.model_selection.forecast import ErrorTrend, Forecast
from cavity.model_selection.goals import StatedGoal
from cavity.model_selection.importance import (
    FeatureImportance,
    FeatureShare,
    feature_importance,
)
from cavity.model_selection.learning import learning_curve
from cavity.model_selection.leave_one_out import Verdict, inputs_help, loo_losses
from cavity.model_selection.planning import Plan, PlannedSize, plan
from cavity.model_selection.simulation import simulate_learning_curve
from cavity.model_selection.suggestions import Suggestion, Suggestions, suggest
from cavity.model_selection.suspects import Reason, Suspect, Suspects

__all__ = [
    "Advice",
    "Comparison",
    "Criterion",
    "ErrorTrend",
    "FeatureEffect",
    "FeatureImportance",
    "FeatureShare",
    "Forecast",
    "ForecastDistribution",
    "LearningCurve",
    "LearningCurveDisplay",
    "Plan",
    "PlannedSize",
    "Reason",
    "Source",
    "StatedGoal",
    "Suggestion",
    "Suggestions",
    "Suspect",
    "Suspects",
    "Verdict",
    "compare_inference",
    "cross_val_tuned",
    "feature_effect",
    "feature_importance",
    "find_suspects",
    "inputs_help",
    "learning_curve",
    "loo_losses",
    "plan",
    "simulate_learning_curve",
    "suggest",
]
