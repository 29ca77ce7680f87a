"""Who takes part: one file a library, each with ``fit(X, y, m, **options) -> Fitted``."""

from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

__all__ = ["PEERS", "Peer"]


class Peer(NamedTuple):
    """A library and how it is to be used."""

    package: str
    """As pip knows it."""
    file: str
    options: dict[str, Any]
    setting: str

    def load(self) -> ModuleType:
        """Import the file, and the library with it."""
        return import_module(f"benchmarks.large.peers.{self.file}")


PEERS = {
    "cavity": Peer("cavity", "ours", {}, "EP, probit, RBF with a length scale for each input"),
    "GPBoost FITC": Peer(
        "gpboost", "boosted", {"ard": True}, "Laplace, probit, a length scale for each input"
    ),
    "GPBoost FITC, isotropic": Peer(
        "gpboost", "boosted", {"ard": False}, "Laplace, probit, one length scale"
    ),
    "GPyTorch SVGP": Peer(
        "gpytorch",
        "variational",
        {"natural": False},
        "minibatches of 1024, Adam at 0.01, 4 epochs as in its tutorial on SVGP",
    ),
    "GPyTorch SVGP, natural": Peer(
        "gpytorch",
        "variational",
        {"natural": True},
        "minibatches of 1024, natural gradients at 0.1 and Adam at 0.01, 4 epochs as in its "
        "tutorial on them",
    ),
    "GPyTorch SVGP, 20 epochs": Peer(
        "gpytorch",
        "variational",
        {"natural": False, "epochs": 20},
        "the first of the two with five times as many epochs",
    ),
    "Nystroem + logistic": Peer(
        "scikit-learn",
        "nystroem",
        {},
        "gamma and C from a grid of 3 x 3 by three-fold cross-validation on up to 20,000 rows",
    ),
    "LightGBM": Peer("lightgbm", "trees", {}, "defaults"),
}
