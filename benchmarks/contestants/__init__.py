"""Who takes part: one file a library, each with `evaluate` and `fit`.

``evaluate(X, y, theta, **options)`` times one log evidence with its gradient from a cold start, for
the kernel exp(theta_0) · RBF(exp(theta_1), …). ``fit(X, y, deadline, **options)`` tunes that kernel
from ones. A library that has no such thing says so by None in the table below.
"""

from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

__all__ = ["CONTESTANTS", "PEERS", "Contestant"]


class Contestant(NamedTuple):
    """A library with the inference that it is to use."""

    library: str
    file: str
    options: dict[str, Any]
    method: str

    def load(self) -> ModuleType:
        """Import the file, and the library with it."""
        return import_module(f"benchmarks.contestants.{self.file}")


def _ours(inference: str, likelihood: str) -> Contestant:
    options = {"inference": inference, "likelihood": likelihood}
    return Contestant("cavity", "ours", options, f"{inference}, {likelihood}")


CONTESTANTS = {
    "cavity EP": _ours("ep", "probit"),
    "cavity Laplace": _ours("laplace", "probit"),
    "cavity Laplace logit": _ours("laplace", "logit"),
    "cavity naive": _ours("naive", "probit"),
    "scikit-learn": Contestant("sklearn", "scikit_learn", {}, "laplace, logit"),
    "GPBoost": Contestant("gpboost", "gp_boost", {}, "laplace, probit"),
    "GPy": Contestant("GPy", "g_py", {}, "ep, probit"),
    "GPyTorch": Contestant("gpytorch", "gpy_torch", {}, "variational, probit"),
}

PEERS = [name for name, contestant in CONTESTANTS.items() if contestant.library != "cavity"]
