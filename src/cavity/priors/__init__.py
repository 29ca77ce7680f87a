"""Gaussian priors over the latent values, and the posteriors that go with them."""

from cavity.priors.base import PRIORS, Coupling, KernelRule, Posterior, Prior, RowsPosterior
from cavity.priors.class_inducing import AsDifferences, ClassInducingPosterior, ClassInducingPrior
from cavity.priors.classes import ClassPosterior, ClassPrior
from cavity.priors.dense import DensePosterior, DensePrior
from cavity.priors.gradients import mean_gradient, variance_gradient
from cavity.priors.inducing import InducingPosterior, InducingPrior
from cavity.priors.labels import ClassLabels
from cavity.priors.low_rank import InducingRows, low_rank_of
from cavity.priors.scores import ScorePosterior, ScorePrior
from cavity.priors.selection import Points, choose_points

__all__ = [
    "PRIORS",
    "AsDifferences",
    "ClassInducingPosterior",
    "ClassInducingPrior",
    "ClassLabels",
    "ClassPosterior",
    "ClassPrior",
    "Coupling",
    "DensePosterior",
    "DensePrior",
    "InducingPosterior",
    "InducingPrior",
    "InducingRows",
    "KernelRule",
    "Points",
    "Posterior",
    "Prior",
    "RowsPosterior",
    "ScorePosterior",
    "ScorePrior",
    "choose_points",
    "low_rank_of",
    "mean_gradient",
    "variance_gradient",
]
