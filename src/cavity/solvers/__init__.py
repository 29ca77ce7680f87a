"""Iterations that know nothing of what they solve: fixed points and linear systems."""

from cavity.solvers.conjugate_gradients import conjugate_gradients
from cavity.solvers.fixed_point import Solution, solve

__all__ = ["Solution", "conjugate_gradients", "solve"]
