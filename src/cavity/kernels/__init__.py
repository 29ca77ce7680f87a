"""Compute rules for scikit-learn's kernel objects: matrix, diagonal and contractions.

A rule wraps one kernel object. To add one, write a file with a registered subclass of ``Rule`` and
import it here: the import registers it. For a kernel without a rule of its own, such as a user's
subclass, ``Rule`` itself is used, which calls the kernel's ``__call__`` and ``eval_gradient``.
"""

from cavity.kernels import (  # noqa: F401  (imported to be registered)
    composition,
    linear,
    radial,
    simple,
    stationary,
)
from cavity.kernels.base import RULES, Rule, length_scales, register, rule
from cavity.kernels.linear import Linear
from cavity.kernels.precomputed import Precomputed

__all__ = ["RULES", "Linear", "Precomputed", "Rule", "length_scales", "register", "rule"]
