"""Replica theory: averages over random training sets from one pool, without refitting."""

from cavity.resampling.known import (
    opper_vivarelli_bound,
    periodic_ornstein_uhlenbeck,
    periodic_squared_exponential,
    sollich_curve,
)
from cavity.resampling.laws import LAWS
from cavity.resampling.orders import Order, Pool, Sources
from cavity.resampling.scores import Scorer, Target, TwoClasses, log_odds_against
from cavity.resampling.several import Classes

__all__ = [
    "LAWS",
    "Classes",
    "Order",
    "Pool",
    "Scorer",
    "Sources",
    "Target",
    "TwoClasses",
    "log_odds_against",
    "opper_vivarelli_bound",
    "periodic_ornstein_uhlenbeck",
    "periodic_squared_exponential",
    "sollich_curve",
]
