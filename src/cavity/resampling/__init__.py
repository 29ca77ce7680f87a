"""Replica theory: averages over random training sets from one pool, without refitting."""

from cavity.resampling.averaged import SizeSolution
from cavity.resampling.classes import BinaryScores, MulticlassScores
from cavity.resampling.known import (
    opper_vivarelli_bound,
    periodic_ornstein_uhlenbeck,
    periodic_squared_exponential,
    sollich_curve,
)
from cavity.resampling.laws import LAWS
from cavity.resampling.pool import Averages, EffectiveSites, Pool, mixtures
from cavity.resampling.scores import RegressionScores, Scores, log_odds_against
from cavity.resampling.sizes import THEORIES, solve_sizes
from cavity.resampling.tuning import TuningEffect

__all__ = [
    "LAWS",
    "THEORIES",
    "Averages",
    "BinaryScores",
    "EffectiveSites",
    "MulticlassScores",
    "Pool",
    "RegressionScores",
    "Scores",
    "SizeSolution",
    "TuningEffect",
    "log_odds_against",
    "mixtures",
    "opper_vivarelli_bound",
    "periodic_ornstein_uhlenbeck",
    "periodic_squared_exponential",
    "sollich_curve",
    "solve_sizes",
]
