"""Replica theory: averages over random training sets from one pool, without refitting."""

from cavity.curves.base import Order, Pool, Sources
from cavity.curves.curve import LearningCurve, Source
from cavity.curves.forecast import Forecast, Trend
from cavity.curves.known import (
    opper_vivarelli_bound,
    periodic_ornstein_uhlenbeck,
    periodic_squared_exponential,
    sollich_curve,
)
from cavity.curves.laws import LAWS
from cavity.curves.measures import Scorer, Target, TwoClasses, log_odds_against
from cavity.curves.several import Classes
from cavity.curves.suspects import Suspect, Suspects
from cavity.curves.theoretical import THEORIES, Door, Theoretical, theoretical_curve

__all__ = [
    "LAWS",
    "THEORIES",
    "Classes",
    "Door",
    "Forecast",
    "LearningCurve",
    "Order",
    "Pool",
    "Scorer",
    "Source",
    "Sources",
    "Suspect",
    "Suspects",
    "Target",
    "Theoretical",
    "Trend",
    "TwoClasses",
    "log_odds_against",
    "opper_vivarelli_bound",
    "periodic_ornstein_uhlenbeck",
    "periodic_squared_exponential",
    "sollich_curve",
    "theoretical_curve",
]
