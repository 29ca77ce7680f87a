"""What the theories of resampling talk about: a pool, its order parameters, their sources."""

from typing import NamedTuple

from cavity.arrays import Array
from cavity.likelihoods import Likelihood
from cavity.priors import DensePrior

__all__ = ["Order", "Pool", "Sources"]


class Pool(NamedTuple):
    """The examples at hand, from which training sets are drawn.

    Attributes
    ----------
    prior : DensePrior
        The latent values of all examples.
    y : array of shape (n,)
        Labels ±1, or real targets.
    likelihood : Likelihood
    share : array of shape (n,)
        Each example's share of the population; they sum to one.
    """

    prior: DensePrior
    y: Array
    likelihood: Likelihood
    share: Array


class Order(NamedTuple):
    """Three order parameters for each example, averages over training sets.

    Attributes
    ----------
    G : array of shape (n,)
        Average posterior variance.
    R : array of shape (n,)
        Average prediction.
    V : array of shape (n,)
        Variance of the prediction from training set to training set.
    """

    G: Array
    R: Array
    V: Array


class Sources(NamedTuple):
    """What each example adds to the averages over training sets.

    Attributes
    ----------
    u : array of shape (n,)
        Precision.
    gamma : array of shape (n,)
        Mean source.
    w : array of shape (n,)
        Variance of the source.
    """

    u: Array
    gamma: Array
    w: Array
