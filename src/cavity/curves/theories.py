"""From what surrounds an example to what it adds on average: the two theories of resampling.

Both answer the same question. An example's cavity sees, from one training set to the next, a
Gaussian field h ~ N(R, V) and a posterior variance G without it. What precision u, source γ and
variance w of the source does the example itself contribute, averaged over how often it is drawn?
"""

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from cavity.arrays import Array
from cavity.curves.base import Order, Pool, Sources
from cavity.curves.laws import Occupancy
from cavity.likelihoods import Likelihood
from cavity.sites import Marginals, Moments, Sites, expand, match

__all__ = [
    "Theory",
    "average_over_fields",
    "cavity_theory",
    "copies",
    "curvature_moments",
    "variational_theory",
]

Theory = Callable[[Order], Sources]

# The slopes are smooth on the scale of the fields: twenty nodes leave six digits.
_NODES = 20
# The sites of s copies start from those of s − 1, and contract fast.
_ROUNDS = 4


def average_over_fields(
    f: Callable[[Array], tuple[Array, ...]], mean: Array, variance: Array, nodes: int = _NODES
) -> list[Array]:
    """Average functions of a Gaussian field, elementwise.

    Parameters
    ----------
    f : callable
        From fields of shape (nodes, n) to several arrays of that shape.
    mean, variance : arrays of shape (n,)
    nodes : int
    """
    x, weight = _gauss(nodes)
    h = mean + np.sqrt(variance) * x[:, None]
    return [weight @ values for values in f(h)]


@cache
def _gauss(nodes: int) -> tuple[Array, Array]:
    x, weight = np.polynomial.hermite_e.hermegauss(nodes)
    return x, weight / weight.sum()


def cavity_theory(pool: Pool, occupancy: Occupancy) -> Theory:
    """Return the cavity theory, for any likelihood and any law of resampling."""
    y, likelihood = pool.y, pool.likelihood

    def sources(c: Order) -> Sources:
        def slopes(h: Array) -> tuple[Array, Array, Array]:
            d1, square, d2 = np.zeros((3, *h.shape))
            found = copies(likelihood, y, Marginals(h, c.G), occupancy.s)
            for p, (slope, curvature) in zip(occupancy.probability, found, strict=True):
                d1 += p * slope
                square += p * slope**2
                d2 += p * curvature
            return d1, square, d2

        d1, square, d2 = average_over_fields(slopes, c.R, c.V)
        u, gamma = match(Marginals(c.R, c.G), Moments(d1, d1, d2))
        # What varies beyond the linear response to the field; the rest is the others' doing.
        own = np.maximum(square - d1**2 - c.V * d2**2, 0.0)
        return Sources(u, gamma, own / (1.0 + c.G * d2) ** 2)

    return sources


def curvature_moments(pool: Pool, occupancy: Occupancy, c: Order) -> tuple[Array, Array, Array]:
    """Return the first three moments, over draws and fields, of an example's precision −d2."""

    def powers(h: Array) -> tuple[Array, ...]:
        found = copies(pool.likelihood, pool.y, Marginals(h, c.G), occupancy.s)
        total = np.zeros((3, *h.shape))
        for p, (_, curvature) in zip(occupancy.probability, found, strict=True):
            for k in range(3):
                total[k] += p * (-curvature) ** (k + 1)
        return tuple(total)

    first, second, third = average_over_fields(powers, c.R, c.V)
    return first, second, third


def copies(
    likelihood: Likelihood, y: Array, c: Marginals, occupations: Array
) -> Iterator[tuple[Array, Array]]:
    """Yield slope and curvature of log Z for 1, 2, ... copies of an example in one cavity.

    Each copy has a site of its own, as in the inference from a training set that repeats a row.
    """
    if "sites" in likelihood.offers:
        slope, curvature, _ = likelihood.derivatives(y, c.mean)
        yield from (_together(c, expand(c.mean, slope, curvature), s) for s in occupations)
        return
    moments = likelihood.tilted(y, c)
    yield moments.d1, moments.d2
    site = match(c, moments)
    for s in occupations[1:]:
        site = _one_of(likelihood, y, c, s, site)
        yield _together(c, site, s)


def _one_of(likelihood: Likelihood, y: Array, c: Marginals, s: float, site: Sites) -> Sites:
    """Return the site of one of s copies, each of which sees the s − 1 others."""
    for _ in range(_ROUNDS):
        slope, curvature = _together(c, site, s - 1.0)
        seen = Marginals(c.mean + c.variance * slope, c.variance * (1.0 + c.variance * curvature))
        site = match(seen, likelihood.tilted(y, seen))
    return site


def _together(c: Marginals, site: Sites, s: float) -> tuple[Array, Array]:
    """Return slope and curvature, in the cavity's mean, of log Z under s equal sites."""
    scale = s / (1.0 + s * site.tau * c.variance)
    return scale * (site.nu - site.tau * c.mean), -scale * site.tau


def variational_theory(pool: Pool, draws: Array) -> Theory:
    """Return the variational replica theory of regression from samples with replacement.

    It replaces the Poisson law by its mean: u = λ/(σ² + G) with λ expected draws of the example,
    where G is the posterior variance with the example's own source, which makes it a quadratic
    equation given the cavity.
    """
    y, noise = pool.y, pool.likelihood.latent_noise

    def sources(c: Order) -> Sources:
        b = noise + c.G - draws * c.G
        root = np.sqrt(b**2 + 4.0 * noise * c.G * draws)
        # Of the two forms of the root the one that does not cancel.
        u = np.where(b > 0.0, 2.0 * draws / (b + root), (root - b) / (2.0 * noise * c.G))
        shrink = 1.0 / (1.0 + u * c.G)
        gain = u / (noise + shrink * c.G)
        error = shrink**2 * ((c.R - y) ** 2 + c.V)
        return Sources(u, u * y, gain * error / (1.0 - gain * (shrink * c.G) ** 2))

    return sources
