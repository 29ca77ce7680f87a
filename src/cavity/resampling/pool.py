"""What the theories of resampling work with: a pool, averages over training sets, their sites."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from cavity.arrays import Array
from cavity.likelihoods import Likelihood
from cavity.priors import DensePrior
from cavity.sites import Marginals


class Averages(NamedTuple):
    """Averages over training sets, one entry for each example."""

    G: Array
    """Average posterior variance."""
    R: Array
    """Average prediction."""
    V: Array
    """Variance of the prediction from training set to training set."""
    chi: Array | None = None
    """How far the prediction moves with a unit source at the example; None if that is G."""
    parts: "tuple[tuple[Array, Averages], ...]" = ()
    """Shares and averages of the parts, where these are averages of a mixture."""

    @property
    def response(self) -> Array:
        """χ, whether it is G or not."""
        return self.G if self.chi is None else self.chi

    @property
    def variance(self) -> Array:
        """G, for those who do not ask how many latent functions there are."""
        return self.G

    @property
    def excess_response(self) -> Array | None:
        """χ − G: by how much the response exceeds the variance; None if there is no excess."""
        return None if self.chi is None else self.chi - self.G

    @property
    def mixture(self) -> "tuple[tuple[Array, Averages], ...]":
        """Its parts with their shares; a part by itself if it is no mixture."""
        return self.parts or ((np.ones_like(self.G), self),)

    def fields(self, x: Array) -> Marginals:
        """Return marginals with the prediction x standard deviations off, of shape (len(x), n)."""
        return Marginals(self.R + np.sqrt(self.V) * x[:, None], self.G)


def mixed(parts: tuple[tuple[Array, Averages], ...]) -> Averages:
    """Return the averages of a mixture, which keep its parts."""
    total = sum(p for p, _ in parts)
    parts = tuple((p / total, c) for p, c in parts)
    G, R = (sum(p * c[k] for p, c in parts) for k in (0, 1))
    V = sum(p * (c.V + (c.R - R) ** 2) for p, c in parts)
    return Averages(G, R, V, parts=parts)


def mixtures(averages: Sequence[Averages]) -> Iterator[tuple[Array, list[Averages]]]:
    """Yield the parts of a mixture with their shares; only one latent function may be one."""
    if len(averages) > 1:
        yield np.ones_like(averages[0].G), list(averages)
        return
    for share, part in averages[0].mixture:
        yield share, [part]


class Targets(Protocol):
    """What the theories and the scores need to know about each example."""

    @property
    def y(self) -> Array:
        """Labels ±1, or real targets."""

    @property
    def likelihood(self) -> Likelihood:
        """What the targets say about the latent values."""


class Examples(NamedTuple):
    """Some examples, without a prior."""

    y: Array
    likelihood: Likelihood


class Pool(NamedTuple):
    """The examples from which training sets are drawn."""

    prior: DensePrior
    """Of the latent values of all examples."""
    y: Array
    """Labels ±1, or real targets."""
    likelihood: Likelihood
    share: Array
    """Each example's share of the population; they sum to one."""
    loo: Averages | None = None
    """Approximate leave-one-out cavities of all examples, if a fit has found them."""
    noise: float = 0.0
    """Variance of the kernel's own noise, which is not in the prior but in the likelihood."""
    tuning: Any = None
    """A `TuningEffect`: from held-out averages at a fixed kernel, and the share of the examples
    that is drawn, to those with the kernel tuned on each training set."""

    @property
    def unshifted(self) -> "Pool":
        """The same pool with what is added to latent values taken off Gaussian targets instead."""
        if not self.likelihood.quadratic:
            return self
        y = self.y - self.likelihood.shift
        return self._replace(y=y, likelihood=self.likelihood.bare)


class EffectiveSites(NamedTuple):
    """What each example adds to the averages over training sets."""

    u: Array
    """Precision."""
    gamma: Array
    """Mean of the source."""
    w: Array
    """Variance of the source."""
    u_chi: Array | None = None
    """Precision with which the example holds the prediction; None if that is u."""

    @property
    def response(self) -> Array:
        """u_χ, whether it is u or not."""
        return self.u if self.u_chi is None else self.u_chi
