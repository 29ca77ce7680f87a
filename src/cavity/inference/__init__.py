"""The ways to find the Gaussian sites; importing a method's file here registers it."""

from typing import Any

from cavity.inference.base import METHODS, Method
from cavity.inference.correction import second_order_correction
from cavity.inference.ensemble import Ensemble, IndistinguishableError
from cavity.inference.ep import EP
from cavity.inference.exact import Exact
from cavity.inference.laplace import Laplace
from cavity.inference.mixture import Mixture
from cavity.inference.naive import Naive
from cavity.inference.problem import Fit, Problem, Report, WarmStart
from cavity.inference.sequential import MOST_COPIES, SINGLY, Sequential, presented
from cavity.inference.softmax import SoftmaxLaplace
from cavity.inference.variational import Variational

__all__ = [
    "EP",
    "METHODS",
    "MOST_COPIES",
    "SINGLY",
    "Ensemble",
    "Exact",
    "Fit",
    "IndistinguishableError",
    "Laplace",
    "Method",
    "Mixture",
    "Naive",
    "Problem",
    "Report",
    "Sequential",
    "SoftmaxLaplace",
    "Variational",
    "WarmStart",
    "method",
    "presented",
    "second_order_correction",
]


def method(name: str | Method, **options: Any) -> Method:
    """Return the inference method with this name, or the method itself.

    Parameters
    ----------
    name : str or Method
    **options
        Parameters of the method, such as ``tol``, ``sweeps`` or ``power``.
    """
    if isinstance(name, Method):
        return name
    if name not in METHODS:
        known = ", ".join(repr(known) for known in METHODS)
        raise ValueError(f"inference must be one of {known}; got {name!r}.")
    return METHODS[name](**options)
