"""The public contract checks: each raises an AssertionError that says what does not hold."""

from cavity.testing.kernels import check_kernel

__all__ = ["check_kernel"]
