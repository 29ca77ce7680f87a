"""The evidence of a kernel's hyperparameters, and its maximum."""

from cavity.evidence.evidence import Evidence, KernelRule
from cavity.evidence.tuning import Optimum, maximise

__all__ = ["Evidence", "KernelRule", "Optimum", "maximise"]
