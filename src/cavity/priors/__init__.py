"""What the covariance of the latent values is made of, and the posteriors that go with it."""

from cavity.priors.dense import DensePosterior, DensePrior
from cavity.priors.factor import Factor, Scratch
from cavity.priors.inducing import LowRankFactor, LowRankPrior, stand_in

__all__ = [
    "DensePosterior",
    "DensePrior",
    "Factor",
    "LowRankFactor",
    "LowRankPrior",
    "Scratch",
    "stand_in",
]
