"""The evidence of a kernel's hyperparameters, and its maximum."""

from cavity.evidence.evidence import Evaluation, Evidence
from cavity.evidence.tuning import (
    Optimum,
    Progress,
    maximise,
    named_failure,
    starting_points,
    threads_of,
    tune,
)

__all__ = [
    "Evaluation",
    "Evidence",
    "Optimum",
    "Progress",
    "maximise",
    "named_failure",
    "starting_points",
    "threads_of",
    "tune",
]
