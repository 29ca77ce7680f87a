"""What the rooms say to each other: marginals, sites, moments, and how one turns into another.

A *site* exp(ν f − τ f²/2) is the Gaussian stand-in for one likelihood term. A *cavity* is a
posterior marginal with one copy of its own site taken out. Everything here is elementwise.
"""

from typing import NamedTuple

from cavity.arrays import Array

__all__ = ["Local", "Marginals", "Moments", "Sites", "cavity", "expand", "match"]


class Marginals(NamedTuple):
    """One Gaussian N(mean, variance) per example."""

    mean: Array
    variance: Array


class Sites(NamedTuple):
    """Natural parameters of one Gaussian site per example; copies of an example are added up."""

    tau: Array
    nu: Array


class Moments(NamedTuple):
    """log E p(y|f) under a Gaussian and its first two derivatives in the mean.

    For ``expected`` the same three of E log p(y|f).
    """

    log_z: Array
    d1: Array
    d2: Array


class Local(NamedTuple):
    """All that a posterior tells about each example by itself.

    ``rest`` is 1 − τ Σ, the share of the marginal's precision that is not the example's own site;
    it comes along because it cannot be recovered from τ and Σ where the site dominates.
    """

    q: Marginals
    sites: Sites
    alpha: Array
    rest: Array


def cavity(local: Local, copies: Array | float = 1.0) -> Marginals:
    """Take one of each example's copies out of its marginal.

    1/v = 1/Σ − τ/w and m = v (μ/Σ − ν/w), in the form that does not cancel: v = Σ/(1 − τΣ/w),
    m = μ − v α/w, for w copies.
    """
    rest = (copies - 1.0 + local.rest) / copies
    v = local.q.variance / rest
    return Marginals(local.q.mean - v * local.alpha / copies, v)


def match(c: Marginals, moments: Moments, copies: Array | float = 1.0) -> Sites:
    """Sites that give each cavity the mean and variance of its tilted distribution."""
    scale = copies / (1.0 + moments.d2 * c.variance)
    return Sites(-moments.d2 * scale, (moments.d1 - c.mean * moments.d2) * scale)


def expand(f: Array, d1: Array, d2: Array, copies: Array | float = 1.0) -> Sites:
    """Sites with the slope and curvature (d1, d2) of a log likelihood at f."""
    return Sites(-d2 * copies, (d1 - d2 * f) * copies)
