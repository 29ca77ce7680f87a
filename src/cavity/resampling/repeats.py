"""Several draws of one example in one cavity, each with a site of its own as in inference."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.likelihoods import Likelihood
from cavity.sites import Marginals, Sites, expand, match

_ROUNDS = 40
# Plain steps take longer.
_PLAIN_ROUNDS = 300
# Extrapolation beyond this many steps is not trusted.
_FARTHEST = 5.0
# A precision may fall to this share of itself in a round.
_LEAST = 0.1


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
        site, concave = Sites(0.0 * c.mean, 0.0 * c.mean), self._likelihood.concave
        if concave:
            moments = self._likelihood.tilted(self._y, c)
            site = match(c, moments)
        for s in self._occupations:
            if s == 1.0 and excess is None and concave:
                yield moments.d1, moments.d2
                continue
            # From the sites of the last call, or from those of fewer draws.
            last = self._sites.get(s, site) if concave else site
            start = last if last.tau.shape == site.tau.shape else site
            site = self._sites[s] = self._solve(c, s, start, excess)
            yield _together(c, site, s, excess)

    def _solve(self, c: Marginals, s: float, site: Sites, excess: Array | None) -> Sites:
        """Return the site of each of s draws, given that all have the same.

        All of them moving at once overshoot: each step is extrapolated from the last two, in
        units of the cavity. Every entry ends by itself, so that none depends on its neighbours;
        after a round half of them have, and are not visited again. The bound of a mixture may have
        several solutions: plain steps from empty sites lead to that which trusts the example least.
        Extrapolated ones jump between them, and then the averages do not converge.
        """
        here = RepeatedDraws(self._likelihood, self._y, c, s, excess)
        x, where = here.packed(site), None
        last: tuple[Array, Array] | None = None
        concave = self._likelihood.concave
        for _ in range(_ROUNDS if concave else _PLAIN_ROUNDS):
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
            step = f
            if concave:
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
        scale = np.sqrt(self.c.variance)
        site = Sites(x[0] / self.c.variance, x[1] / scale)
        slope, _ = _together(self.c, site, self.s, self.excess)
        image = self._matched(site, slope)
        return image, (_together(self.c, image, self.s, self.excess)[0] - slope) * scale

    def _matched(self, site: Sites, slope: Array) -> Sites:
        """Return the site that the others ask for: of a mixture, that which all ask for."""
        mean, G = self.c
        if self.excess is not None:
            mean = mean + self.excess * slope
        concave = self.likelihood.concave
        d1, d2 = _together(Marginals(mean, G), site, self.s - 1.0 if concave else self.s)
        q = Marginals(mean + G * d1, G * (1.0 + G * d2))
        if concave:
            return match(q, self.likelihood.tilted(self.y, q))
        _, pull, minus_tau = self.likelihood.mixture(self.y, q)
        return expand(q.mean, pull, minus_tau)


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
