"""What the theories of resampling are about: a pool, averages over training sets, their sites."""

from typing import NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.likelihoods import Likelihood
from cavity.priors import DensePrior
from cavity.sites import Marginals


class Averages(NamedTuple):
    """Averages over training sets, for each example.

    Attributes
    ----------
    G : array of shape (n,)
        Average posterior variance.
    R : array of shape (n,)
        Average prediction.
    V : array of shape (n,)
        Variance of the prediction from training set to training set.
    chi : array of shape (n,) or None
        How far the prediction moves with a unit source at the example; None where that is G.
    """

    G: Array
    R: Array
    V: Array
    chi: Array | None = None

    @property
    def response(self) -> Array:
        """χ, whether it is G or not."""
        return self.G if self.chi is None else self.chi

    @property
    def excess_response(self) -> Array | None:
        """χ − G: by how much the response exceeds the variance; None where there is no excess."""
        return None if self.chi is None else self.chi - self.G

    def fields(self, x: Array) -> Marginals:
        """Return marginals with the prediction x standard deviations off, of shape (len(x), n)."""
        return Marginals(self.R + np.sqrt(self.V) * x[:, None], self.G)


class Pool(NamedTuple):
    """The examples from which training sets are drawn.

    Attributes
    ----------
    prior : DensePrior
        The latent values of all examples.
    y : array of shape (n,)
        Labels ±1, or real targets.
    likelihood : Likelihood
    share : array of shape (n,)
        Each example's share of the population; they sum to one.
    loo : Averages or None
        Approximate leave-one-out cavities of all examples, where a fit has found them already.
    """

    prior: DensePrior
    y: Array
    likelihood: Likelihood
    share: Array
    loo: Averages | None = None


class EffectiveSites(NamedTuple):
    """What each example adds to the averages over training sets.

    Attributes
    ----------
    u : array of shape (n,)
        Precision.
    gamma : array of shape (n,)
        Mean of the source.
    w : array of shape (n,)
        Variance of the source.
    u_chi : array of shape (n,) or None
        Precision with which the example holds the prediction; None where that is u.
    """

    u: Array
    gamma: Array
    w: Array
    u_chi: Array | None = None

    @property
    def response(self) -> Array:
        """u_χ, whether it is u or not."""
        return self.u if self.u_chi is None else self.u_chi
