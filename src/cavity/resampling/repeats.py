"""Several copies of one example in one cavity, each with a site of its own as inference has it."""

from collections.abc import Iterator

import numpy as np

from cavity.arrays import Array
from cavity.likelihoods import Likelihood
from cavity.sites import Marginals, Sites, expand, match

__all__ = ["Copies"]

_ROUNDS = 40
# Extrapolation beyond this many steps is not trusted.
_FARTHEST = 5.0
# A precision may fall to this share of itself in a round.
_LEAST = 0.1


class Copies:
    """Slopes and curvatures of log Z under 1, 2, ... copies of each example.

    The sites of s copies are one site s times, which sees the s − 1 others. They are not those of
    one example with the likelihood p^s: the posterior variance is not how the mean responds.

    Parameters
    ----------
    likelihood : Likelihood
    y : array of shape (n,)
    occupations : array of shape (k,)
        1, 2, ..., k.
    tol : float
        How well to settle a slope, in units of the cavity.
    """

    def __init__(
        self, likelihood: Likelihood, y: Array, occupations: Array, tol: float = 1e-4
    ) -> None:
        self._likelihood, self._y, self._occupations = likelihood, y, occupations
        self._tol = tol
        self._sites: dict[float, Sites] = {}

    def __call__(self, c: Marginals, lag: Array | None = None) -> Iterator[tuple[Array, Array]]:
        """Yield slope and curvature, in the cavity's mean, for each number of copies.

        Parameters
        ----------
        c : Marginals
            Cavities without any copy, of shape (..., n).
        lag : array of shape (n,), optional
            The others' reply to a unit slope, beyond what the cavities know: it moves the mean of
            the cavity that the copies see.
        """
        if "sites" in self._likelihood.offers:
            slope, curvature, _ = self._likelihood.derivatives(self._y, c.mean)
            site = expand(c.mean, slope, curvature)
            yield from (_together(c, site, s) for s in self._occupations)
            return
        moments = self._likelihood.tilted(self._y, c)
        site = match(c, moments)
        for s in self._occupations:
            if s == 1.0 and lag is None:
                yield moments.d1, moments.d2
                continue
            site = self._settle(c, s, self._start(s, site), lag)
            self._sites[s] = site
            yield _together(c, site, s, lag)

    def _start(self, s: float, fewer: Sites) -> Sites:
        """Return the sites of the last call, or those of fewer copies."""
        last = self._sites.get(s, fewer)
        return last if last.tau.shape == fewer.tau.shape else fewer

    def _settle(self, c: Marginals, s: float, site: Sites, lag: Array | None) -> Sites:
        """Return the site that each of s copies leaves to the others.

        All copies moving at once overshoot: each step is extrapolated from the last two, in
        units of the cavity.
        """
        scale = np.sqrt(c.variance)
        x = np.stack([site.tau * c.variance, site.nu * scale])
        last: tuple[Array, Array] | None = None
        for _ in range(_ROUNDS):
            site = Sites(x[0] / c.variance, x[1] / scale)
            image = self._image(c, s, site, lag)
            change = _together(c, image, s, lag)[0] - _together(c, site, s, lag)[0]
            if np.max(np.abs(change) * scale) < self._tol:
                return image
            f = np.stack([image.tau * c.variance, image.nu * scale]) - x
            step = 2.0 / (s + 1.0) * f if last is None else _extrapolate(x, f, last)
            last = x, f
            x = x + step
            x[0] = np.maximum(x[0], _LEAST * last[0][0])
        return site

    def _image(self, c: Marginals, s: float, site: Sites, lag: Array | None) -> Sites:
        """Return the site of one copy among s − 1 others with the given one."""
        mean, G = c
        if lag is not None:
            mean = mean + lag * _together(c, site, s, lag)[0]
        slope, curvature = _together(Marginals(mean, G), site, s - 1.0)
        seen = Marginals(mean + G * slope, G * (1.0 + G * curvature))
        return match(seen, self._likelihood.tilted(self._y, seen))


def _extrapolate(x: Array, f: Array, last: tuple[Array, Array]) -> Array:
    """Return the step to where the line through the last two would end, for each example alone."""
    dx, df = x - last[0], f - last[1]
    tiny = np.finfo(float).tiny
    theta = np.sum(f * df, axis=0) / np.maximum(np.sum(df * df, axis=0), tiny)
    return f - np.clip(theta, -_FARTHEST, _FARTHEST) * (dx + df)


def _together(c: Marginals, site: Sites, s: float, lag: Array | None = None) -> tuple[Array, Array]:
    """Return slope and curvature, in the cavity's mean, of log Z under s equal sites."""
    scale = s / (1.0 + s * site.tau * c.variance)
    slope = scale * (site.nu - site.tau * c.mean)
    if lag is not None:
        slope = slope / (1.0 + scale * site.tau * lag)
    return slope, -scale * site.tau
