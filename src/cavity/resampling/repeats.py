"""Several draws of one example in one cavity, each with a site of its own as in inference."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from cavity.arrays import Array
from cavity.likelihoods import Likelihood
from cavity.sites import Marginals, Sites, expand, match

_ROUNDS = 40
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
        moments = self._likelihood.tilted(self._y, c)
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
        units of the cavity. Every entry ends by itself, so that none depends on its neighbours.
        """
        scale, found, done = np.sqrt(c.variance), None, np.zeros(site.tau.shape, dtype=bool)
        x = np.stack([site.tau * c.variance, site.nu * scale])
        last: tuple[Array, Array] | None = None
        for _ in range(_ROUNDS):
            site = Sites(x[0] / c.variance, x[1] / scale)
            image = self._image(c, s, site, excess)
            change = _together(c, image, s, excess)[0] - _together(c, site, s, excess)[0]
            found = image if found is None else Sites(*map(partial(np.where, done), found, image))
            done |= np.abs(change) * scale < self._tol
            if np.all(done):
                break
            f = np.stack([image.tau * c.variance, image.nu * scale]) - x
            step = 2.0 / (s + 1.0) * f if last is None else extrapolated(x, f, last)
            last = x, f
            x = x + step
            x[0] = np.maximum(x[0], _LEAST * last[0][0])
        return found or site

    def _image(self, c: Marginals, s: float, site: Sites, excess: Array | None) -> Sites:
        """Return the site of one draw among s − 1 others with the given one."""
        mean, G = c
        if excess is not None:
            mean = mean + excess * _together(c, site, s, excess)[0]
        slope, curvature = _together(Marginals(mean, G), site, s - 1.0)
        with_others = Marginals(mean + G * slope, G * (1.0 + G * curvature))
        return match(with_others, self._likelihood.tilted(self._y, with_others))


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
