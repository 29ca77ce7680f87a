"""The public contract checks: each raises an AssertionError that says what does not hold."""

from cavity.testing.curves import check_curve
from cavity.testing.inference import check_inference
from cavity.testing.kernels import check_kernel
from cavity.testing.likelihoods import check_likelihood
from cavity.testing.priors import check_prior
from cavity.testing.rows import check_rows
from cavity.testing.tools import targets

__all__ = [
    "check_curve",
    "check_inference",
    "check_kernel",
    "check_likelihood",
    "check_prior",
    "check_rows",
    "targets",
]
