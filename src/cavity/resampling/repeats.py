"""Several draws of one example in one cavity, each with a site of its own as in inference."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.likelihoods import Likelihood
from cavity.sites import Marginals, Moments, Sites, expand, match

_ROUNDS = 40
# Extrapolation beyond this many steps is not trusted.
_FARTHEST = 5.0
# A precision may fall to this share of itself in a round.
_LEAST = 0.1
_BOUND_ROUNDS, _BOUND_TOL = 60, 1e-9


def site_moments(likelihood: Likelihood) -> Callable[[Array, Marginals], Moments]:
    """Return what gives an example's moments in its cavity: those that its site has in inference.

    They are tilted moments, and of a mixture those of the bound: the Gaussian of precision 1/v + τ
    whose own averages lead back to τ. Its variance is never above the cavity's.
    """
    return likelihood.tilted if likelihood.concave else partial(_bound_moments, likelihood)


def _bound_moments(likelihood: Likelihood, y: Array, c: Marginals) -> Moments:
    """Find where q(f) and the hidden variable agree, by steps extrapolated from the last two."""
    scale = np.sqrt(c.variance)
    x, last = np.zeros((2, *c.mean.shape)), None
    for _ in range(_BOUND_ROUNDS):
        d1, d2 = _together(c, Sites(x[0] / c.variance, x[1] / scale), 1.0)
        q = Marginals(c.mean + c.variance * d1, c.variance * (1.0 + c.variance * d2))
        log_z, slope, minus_tau = likelihood.mixture(y, q)
        new = expand(q.mean, slope, minus_tau)
        f = np.stack([new.tau * c.variance, new.nu * scale]) - x
        # In units of the posterior, which a strong site makes narrow.
        if np.max(np.abs(f) / (1.0 + np.abs(x))) < _BOUND_TOL:
            break
        step = f if last is None else extrapolated(x, f, last)
        last, x = (x, f), x + step
        x[0] = np.maximum(x[0], _LEAST * last[0][0])
    d1, d2 = _together(c, new, 1.0)
    return Moments(log_z, d1, d2)


class RepeatedSites:
    """Slopes and curvatures of log Z where each example was drawn 1, 2, ... times.

    The sites of s draws are one site s times, each in a cavity with the s − 1 others. They are not
    those of one example with the likelihood p^s: the posterior variance is not how the mean
    responds. Slopes are solved to the tolerance ``tol``, in units of the cavity.
    """

    def __init__(
        self, likelihood: Likelihood, y: Array, occupations: Array, tol: float = 1e-4
    ) -> None:
        self._likelihood, self._y, self._occupations, self._tol = likelihood, y, occupations, tol
        self._moments = site_moments(likelihood)
        self._sites: dict[float, Sites] = {}

    def __call__(self, c: Marginals, excess: Array | None = None) -> Iterator[tuple[Array, Array]]:
        """Yield slope and curvature, in the cavity's mean, for each number of draws.

        Cavities are without the example, of shape (..., n). ``excess`` is the response of the other
        examples minus the cavity's variance: a slope d moves the cavity's mean by excess × d.
        """
        if self._likelihood.quadratic:
            slope, curvature, _ = self._likelihood.derivatives(self._y, c.mean)
            site = expand(c.mean, slope, curvature)
            yield from (_together(c, site, s) for s in self._occupations)
            return
        moments = self._moments(self._y, c)
        site = match(c, moments)
        for s in self._occupations:
            if s == 1.0 and excess is None:
                yield moments.d1, moments.d2
                continue
            # From the sites of the last call, or from those of fewer draws.
            last = self._sites.get(s, site)
            start = last if last.tau.shape == site.tau.shape else site
            site = self._sites[s] = self._solve(c, s, start, excess)
            yield _together(c, site, s, excess)

    def _solve(self, c: Marginals, s: float, site: Sites, excess: Array | None) -> Sites:
        """Return the site of each of s draws, given that all have the same.

        All of them moving at once overshoot: each step is extrapolated from the last two, in
        units of the cavity. Every entry ends by itself, so that none depends on its neighbours;
        after a round half of them have, and are not visited again.
        """
        here = RepeatedDraws(self._likelihood, self._y, c, s, excess)
        x, where = here.packed(site), None
        last: tuple[Array, Array] | None = None
        for _ in range(_ROUNDS):
            image, change = here.round(x)
            if where is None:
                found = image
            else:
                found.tau[where], found.nu[where] = image
            rest = np.nonzero(np.abs(change) >= self._tol)
            if not len(rest[0]):
                break
            where = rest if where is None else tuple(w[rest] for w in where)
            f = here.packed(image) - x
            x, f = x[:, *rest], f[:, *rest]
            step = 2.0 / (s + 1.0) * f
            if last is not None:
                step = extrapolated(x, f, (last[0][:, *rest], last[1][:, *rest]))
            here, last = here.part(rest), (x, f)
            x = x + step
            x[0] = np.maximum(x[0], _LEAST * last[0][0])
        return found


class RepeatedDraws(NamedTuple):
    """Examples drawn s times, in cavities without them."""

    likelihood: Likelihood
    y: Array
    c: Marginals
    s: float
    excess: Array | None

    def packed(self, site: Sites) -> Array:
        """Return sites as an array without dimension."""
        v = self.c.variance
        return np.stack([site.tau * v, site.nu * np.sqrt(v)])

    def part(self, rest: tuple[Array, ...]) -> "RepeatedDraws":
        """Return some of the entries, in one dimension."""
        shape = np.shape(self.c.mean)
        y, mean, v = (np.broadcast_to(a, shape)[rest] for a in (self.y, *self.c))
        excess = None if self.excess is None else np.broadcast_to(self.excess, shape)[rest]
        likelihood = self.likelihood.subset(rest[-1])
        return RepeatedDraws(likelihood, y, Marginals(mean, v), self.s, excess)

    def round(self, x: Array) -> tuple[Sites, Array]:
        """Return the site of one draw among s − 1 others, and how the slope changes by it.

        The change is in units of the cavity.
        """
        (mean, G), s = self.c, self.s
        scale = np.sqrt(G)
        site = Sites(x[0] / G, x[1] / scale)
        slope, _ = _together(self.c, site, s, self.excess)
        if self.excess is not None:
            mean = mean + self.excess * slope
        others, curvature = _together(Marginals(mean, G), site, s - 1.0)
        c = Marginals(mean + G * others, G * (1.0 + G * curvature))
        image = match(c, site_moments(self.likelihood)(self.y, c))
        return image, (_together(self.c, image, s, self.excess)[0] - slope) * scale


def extrapolated(x: Array, f: Array, last: tuple[Array, Array]) -> Array:
    """Return the step to the end of the line through the last two, for each example by itself."""
    dx, df = x - last[0], f - last[1]
    tiny = np.finfo(float).tiny
    theta = np.sum(f * df, axis=0) / np.maximum(np.sum(df * df, axis=0), tiny)
    return f - np.clip(theta, -_FARTHEST, _FARTHEST) * (dx + df)


def _together(
    c: Marginals, site: Sites, s: float, excess: Array | None = None
) -> tuple[Array, Array]:
    """Return slope and curvature, in the cavity's mean, of log Z under s equal sites."""
    scale = s / (1.0 + s * site.tau * c.variance)
    slope = scale * (site.nu - site.tau * c.mean)
    if excess is not None:
        slope = slope / (1.0 + scale * site.tau * excess)
    return slope, -scale * site.tau
