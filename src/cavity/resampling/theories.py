"""From cavities to effective sites: the two theories of resampling.

Both answer the same question. Without an example, the prediction there is, from one training set
to the next, a Gaussian field h ~ N(R, V) with posterior variance G. What precision u, source γ and
variance w of the source does the example itself add, averaged over how often it is drawn?
"""

from collections.abc import Callable, Iterable
from functools import cache

import numpy as np

from cavity.arrays import Array, matmul
from cavity.likelihoods import Likelihood
from cavity.resampling.laws import Occupancy
from cavity.resampling.pool import Averages, EffectiveSites, Pool, Targets
from cavity.resampling.repeats import RepeatedSites
from cavity.sites import Marginals, Moments, match

Theory = Callable[[Averages], EffectiveSites]

# The slopes are smooth on the scale of the fields: twelve nodes leave six digits ...
_NODES = 12
# ... and fewer do where fields vary less than the likelihood does, by these ratios of variances.
_RATIOS, _FEWER = (0.01, 0.03, 0.1, 0.2), np.array([4, 5, 6, 8, _NODES])
# A response needs fields that differ: at least by this share of the variance, ...
_LEAST_SPREAD = 1e-8
# ... and by this one, with sites to that tolerance, where even a single draw responds.
_LEAST_OF_BOUND, _TOL_OF_BOUND = 1e-4, 1e-8


def average_over_fields(
    f: Callable[[Array], tuple[Array, ...]], mean: Array, variance: Array, nodes: int = _NODES
) -> list[Array]:
    """Return averages of functions of n Gaussian fields.

    From fields of shape (nodes, n) ``f`` gives several arrays of that shape.
    """
    x, weight = _gauss(nodes)
    h = mean + np.sqrt(variance) * x[:, None]
    return [matmul(values.T, weight) for values in f(h)]


def nodes_enough(likelihood: Likelihood, c: Averages) -> Array:
    """Return how many nodes each example's average over fields takes."""
    if likelihood.quadratic:
        return np.full(len(c.G), _FEWER[0])
    return _FEWER[np.searchsorted(_RATIOS, c.V / (c.G + likelihood.noise_variance))]


@cache
def _gauss(nodes: int) -> tuple[Array, Array]:
    x, weight = np.polynomial.hermite_e.hermegauss(nodes)
    return x, weight / weight.sum()


def cavity_theory(
    pool: Targets, occupancy: Occupancy, tol: float = 1e-10, nodes: int = _NODES
) -> Theory:
    """Return the cavity theory, for any likelihood and any law of resampling.

    The sites of examples drawn several times are solved to the tolerance ``tol``, and averages
    over fields are sums over so many ``nodes``.
    """
    concave = pool.likelihood.concave
    responds = (len(occupancy.s) > 1 and not pool.likelihood.quadratic) or not concave
    least, tol = (_LEAST_SPREAD, tol) if concave else (_LEAST_OF_BOUND, min(tol, _TOL_OF_BOUND))
    repeats = RepeatedSites(pool.likelihood, pool.y, occupancy.s, tol)
    # The slope follows the target as it follows minus the field.
    scatter = np.broadcast_to(occupancy.scatter, occupancy.probability.shape)

    def sites(c: Averages) -> EffectiveSites:
        V = np.maximum(c.V, least * c.G) if responds else c.V
        c = c._replace(V=V, chi=c.response if responds else None)

        def slopes(h: Array) -> tuple[Array, ...]:
            found = repeats(Marginals(h, c.G), c.excess_response)
            d1, square, d2 = _over_draws(occupancy, scatter, found, np.zeros((3, *h.shape)))
            return d1, square, d2, d1 * (h - c.R)

        d1, square, d2, with_field = average_over_fields(slopes, c.R, c.V, nodes)
        # How d1 follows the field on average: its derivative, by Stein's lemma.
        d_chi = with_field / c.V if responds else d2
        # An outlier lets go of a prediction that moves off, and on the way any label may: it is
        # left to hold nothing.
        return _sites(c, d1, square, d2, np.minimum(d_chi, 0.0))

    return sites


def _over_draws(
    occupancy: Occupancy, scatter: Array, found: Iterable[tuple[Array, Array]], sums: Array
) -> Array:
    """Add up slopes, their squares and curvatures, over how often an example is drawn."""
    for p, v, (slope, curvature) in zip(occupancy.probability, scatter, found, strict=True):
        sums[0] += p * slope
        sums[1] += p * (slope**2 + curvature**2 * v)
        sums[2] += p * curvature
    return sums


def _sites(c: Averages, d1: Array, square: Array, d2: Array, d_chi: Array) -> EffectiveSites:
    """Return the sites of examples with average slope d1, curvature d2 and response d_chi."""
    u, _ = match(Marginals(c.R, c.G), Moments(d1, d1, d2))
    u_chi, gamma = match(Marginals(c.R, c.response), Moments(d1, d1, d_chi))
    # What varies beyond the linear response to the field comes from the example itself.
    variance = np.maximum(square - d1**2 - c.V * d_chi**2, 0.0)
    w = variance / (1.0 + c.response * d_chi) ** 2
    return EffectiveSites(u, gamma, w, None if c.chi is None else u_chi)


def curvature_moments(pool: Pool, occupancy: Occupancy, c: Averages) -> list[Array]:
    """Return the first three moments, over draws and fields, of an example's precision −d2."""
    repeats = RepeatedSites(pool.likelihood, pool.y, occupancy.s)

    def powers(h: Array) -> tuple[Array, ...]:
        precisions = [-curvature for _, curvature in repeats(Marginals(h, c.G))]
        each = list(zip(occupancy.probability, precisions, strict=True))
        return tuple(sum(p * kappa**k for p, kappa in each) for k in (1, 2, 3))

    return average_over_fields(powers, c.R, c.V)


def variational_theory(pool: Targets, draws: Array) -> Theory:
    """Return the variational replica theory of regression from samples with replacement.

    It replaces the Poisson law by its mean: u = λ/(σ² + G) with λ expected draws of the example,
    where G is the posterior variance with the example's own site, which makes it a quadratic
    equation given the cavity.
    """
    y, noise = pool.y - pool.likelihood.shift, pool.likelihood.noise_variance

    def sites(c: Averages) -> EffectiveSites:
        b = noise + c.G - draws * c.G
        root = np.sqrt(b**2 + 4.0 * noise * c.G * draws)
        # Of the two forms of the root the one that does not cancel.
        u = np.where(b > 0.0, 2.0 * draws / (b + root), (root - b) / (2.0 * noise * c.G))
        shrink = 1.0 / (1.0 + u * c.G)
        gain = u / (noise + shrink * c.G)
        error = shrink**2 * ((c.R - y) ** 2 + c.V)
        return EffectiveSites(u, u * y, gain * error / (1.0 - gain * (shrink * c.G) ** 2))

    return sites
