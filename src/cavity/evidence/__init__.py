"""The evidence of a kernel's hyperparameters, and its maximum."""

from cavity.evidence.classes import respond_classes
from cavity.evidence.evidence import Evaluation, Evidence
from cavity.evidence.hyperpriors import Hierarchy, Hyperprior, LogNormal, NormalPrior
from cavity.evidence.integrated import (
    MOST_DIRECTIONS,
    HyperPosterior,
    Tuned,
    integrate,
    posterior_at,
    spread_out,
    tied,
)
from cavity.evidence.ladder import climb
from cavity.evidence.objective import named_failure
from cavity.evidence.response import Response, respond
from cavity.evidence.tuning import (
    Optimum,
    Progress,
    maximise,
    starting_points,
    threads_of,
    tune,
)

__all__ = [
    "MOST_DIRECTIONS",
    "Evaluation",
    "Evidence",
    "Hierarchy",
    "HyperPosterior",
    "Hyperprior",
    "LogNormal",
    "NormalPrior",
    "Optimum",
    "Progress",
    "Response",
    "Tuned",
    "climb",
    "integrate",
    "maximise",
    "named_failure",
    "posterior_at",
    "respond",
    "respond_classes",
    "spread_out",
    "starting_points",
    "threads_of",
    "tied",
    "tune",
]
