"""Replica theory: averages over random training sets from one pool, without refitting."""

from cavity.resampling.averaged import SizeSolution
from cavity.resampling.block_scores import (
    RowScores,
    Tally,
    apparent_tally,
    row_averages,
    row_scores,
    tally,
)
from cavity.resampling.block_sizes import BLOCK_THEORIES, BlockSolution, solve_on_blocks
from cavity.resampling.blocks import BlockPool
from cavity.resampling.classes import BinaryScores, MulticlassScores
from cavity.resampling.known import (
    opper_vivarelli_bound,
    periodic_ornstein_uhlenbeck,
    periodic_squared_exponential,
    sollich_curve,
)
from cavity.resampling.label_scores import JointScores
from cavity.resampling.label_sizes import ClassPool, ClassSolution, check_size, solve_class_sizes
from cavity.resampling.labels import ClassAverages
from cavity.resampling.laws import LAWS
from cavity.resampling.ordered_scores import OrderedScores
from cavity.resampling.pool import Averages, EffectiveSites, Pool, mixtures
from cavity.resampling.scores import Scores, log_odds_against
from cavity.resampling.sizes import THEORIES, solve_sizes
from cavity.resampling.target_scores import RegressionScores
from cavity.resampling.tuning import ClassTuning, TuningEffect

__all__ = [
    "BLOCK_THEORIES",
    "LAWS",
    "THEORIES",
    "Averages",
    "BinaryScores",
    "BlockPool",
    "BlockSolution",
    "ClassAverages",
    "ClassPool",
    "ClassSolution",
    "ClassTuning",
    "EffectiveSites",
    "JointScores",
    "MulticlassScores",
    "OrderedScores",
    "Pool",
    "RegressionScores",
    "RowScores",
    "Scores",
    "SizeSolution",
    "Tally",
    "TuningEffect",
    "apparent_tally",
    "check_size",
    "log_odds_against",
    "mixtures",
    "opper_vivarelli_bound",
    "periodic_ornstein_uhlenbeck",
    "periodic_squared_exponential",
    "row_averages",
    "row_scores",
    "sollich_curve",
    "solve_class_sizes",
    "solve_on_blocks",
    "solve_sizes",
    "tally",
]
