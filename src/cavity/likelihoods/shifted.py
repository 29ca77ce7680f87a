"""A likelihood whose rows have latent values of f plus something known, or linear in the inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import Array, same_kind
from cavity.arrays.differences import slope
from cavity.likelihoods.base import STEP, Likelihood, forwarded, take
from cavity.sites import Marginals, Moments


class Trend(NamedTuple):
    """A mean function, linear in the inputs: h(x)·β with h = 1, (x_1 − c_1)/s_1, ..."""

    centre: Array
    spread: Array
    unit: float
    """The scale of the latent values, so that β is of order one."""
    beta: Array
    bound: float = 30.0

    @classmethod
    def of(cls, X: Array, unit: float = 1.0) -> Trend:
        """Return a trend of zero, in coordinates that suit these inputs."""
        spread = np.std(X, axis=0)
        spread = np.where(spread > 0.0, spread, 1.0)
        return cls(np.mean(X, axis=0), spread, unit, np.zeros(1 + X.shape[1]))

    def features(self, X: Array) -> Array:
        """Return h(x), of shape (n, 1 + d)."""
        return self.unit * np.column_stack([np.ones(len(X)), (X - self.centre) / self.spread])

    @property
    def slopes(self) -> Array:
        """The gradient of the trend in the inputs."""
        return self.unit * self.beta[1:] / self.spread

    @property
    def names(self) -> list[str]:
        """Names of β."""
        return ["mean__intercept", *(f"mean__slope[{j}]" for j in range(len(self.beta) - 1))]


@dataclass(frozen=True, eq=False)
class Shifted(Likelihood):
    """p(y | f + offset + trend): offsets of the rows, and perhaps a trend that is tuned.

    Parameters
    ----------
    base : Likelihood
    offset : float or array of shape (n,), default 0.0
        What is added to the latent value of each row.
    trend : Trend, optional
    h : array of shape (n, k), optional
        The trend's features of these rows.
    """

    base: Likelihood
    offset: Any = 0.0
    trend: Trend | None = None
    h: Any = None

    open_ends = forwarded("open_ends")
    support = forwarded("support")
    offers = forwarded("offers")
    quadratic = forwarded("quadratic")
    concave = forwarded("concave")
    noise_variance = forwarded("noise_variance")

    @classmethod
    def rows(
        cls, base: Likelihood, X: Any, offset: Any = 0.0, trend: Trend | None = None
    ) -> Likelihood:
        """Return the likelihood of rows with these inputs; itself where nothing is added."""
        if trend is not None:
            return cls(base, offset, trend, trend.features(X))
        return cls(base, offset) if np.any(offset) else base

    @property
    def bare(self) -> Likelihood:
        """The likelihood of latent values that include what is added."""
        return self.base

    @property
    def shift(self) -> Any:
        """What is added to each row."""
        return self.offset if self.trend is None else self.offset + self.h @ self.trend.beta

    def drift(self, X: Any) -> Any:
        """Return the trend at new inputs."""
        return 0.0 if self.trend is None else self.trend.features(X) @ self.trend.beta

    @property
    def drift_slopes(self) -> Any:
        """The trend's gradient in the inputs."""
        return 0.0 if self.trend is None else self.trend.slopes

    def _at(self, f: Array) -> Array:
        return f + same_kind(self.shift, f)

    def _moved(self, q: Marginals) -> Marginals:
        return Marginals(self._at(q.mean), q.variance)

    @property
    def names(self) -> list[str]:
        """The likelihood's parameters, then those of the trend."""
        return [*self.base.names, *(self.trend.names if self.trend else ())]

    @property
    def theta(self) -> Array:
        """Their values."""
        return np.concatenate([self.base.theta, self.trend.beta if self.trend else []])

    @property
    def bounds(self) -> Array:
        """Their limits."""
        count, reach = (len(self.trend.beta), self.trend.bound) if self.trend else (0, 0.0)
        return np.concatenate([self.base.bounds, np.tile([-reach, reach], (count, 1))])

    def with_theta(self, theta: Array) -> Likelihood:
        """Return the same rows under other parameters."""
        own = len(self.base.theta)
        base = self.base.with_theta(theta[:own])
        trend = self.trend._replace(beta=np.asarray(theta[own:])) if self.trend else None
        return replace(self, base=base, trend=trend)

    def in_theta(self, what: Callable[[Likelihood], Array]) -> list[Array]:
        """Return derivatives; those in β follow from that in the offset."""
        found = self.base.in_theta(lambda base: what(replace(self, base=base)))
        if self.trend is None:
            return found
        with_offset = slope(lambda s: what(replace(self, offset=self.offset + s)), STEP)
        return [*found, *(with_offset * same_kind(column, with_offset) for column in self.h.T)]

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log p(y | f + offset)."""
        return self.base.log_prob(y, self._at(f))

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return its first three derivatives in f."""
        return self.base.derivatives(y, self._at(f))

    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Draw one target for each latent value."""
        return self.base.sample(self._at(f), rng)

    def tilted(self, y: Array, c: Marginals) -> Moments:
        """Return log E p and its derivatives in the mean of f."""
        return self.base.tilted(y, self._moved(c))

    def expected(self, y: Array, q: Marginals) -> Moments:
        """Return E log p and its derivatives in the mean of f."""
        return self.base.expected(y, self._moved(q))

    def mixture(self, y: Array, q: Marginals) -> Moments:
        """Return the bound of E log p, its slope in the mean of f, and −τ."""
        return self.base.mixture(y, self._moved(q))

    def cumulants(self, y: Array, c: Marginals) -> tuple[Array, Array]:
        """Return the third and fourth cumulants of the tilted distributions."""
        return self.base.cumulants(y, self._moved(c))

    def power(self, eta: Array | float) -> Likelihood:
        """Return the power, shifted."""
        return replace(self, base=self.base.power(eta))

    def with_noise(self, variance: float) -> Likelihood | None:
        """Return the likelihood with noise on f, shifted."""
        noisy = self.base.with_noise(variance)
        return None if noisy is None else replace(self, base=noisy)

    def subset(self, rows: slice) -> Likelihood:
        """Return the likelihood of some of the rows."""
        h = None if self.h is None else self.h[rows]
        return replace(self, base=self.base.subset(rows), offset=take(self.offset, rows), h=h)
