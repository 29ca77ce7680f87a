"""Iterations that do not depend on what they solve: fixed points and linear systems."""

from cavity.solvers.conjugate_gradients import conjugate_gradients
from cavity.solvers.fixed_point import Iterate, Solution, contraction, solve

__all__ = ["Iterate", "Solution", "conjugate_gradients", "contraction", "solve"]
