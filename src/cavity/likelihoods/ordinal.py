"""Classes in an order, as intervals of a noisy latent value."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from cavity.arrays import Array, clip, namespace, same_kind, to_numpy
from cavity.arrays.special import ndtr
from cavity.likelihoods.base import Likelihood
from cavity.likelihoods.intervals import log_interval
from cavity.likelihoods.numerical import average
from cavity.likelihoods.targets import refuse
from cavity.sites import Marginals, Moments

_THREE_CLASSES = (-0.5, 0.5)


@dataclass(frozen=True)
class Ordinal(Likelihood, name="ordinal"):
    """p(y|f) = Φ(b_y − f) − Φ(b_{y−1} − f) for classes y = 0, 1, …, K − 1 in an order.

    f plus standard normal noise falls between two of the thresholds b_0 < … < b_{K−2}; below the
    first one is class 0, above the last one class K − 1. Tuning changes the first threshold and
    the logarithms of the gaps between them.

    Parameters
    ----------
    thresholds : sequence of float, optional
        The K − 1 thresholds in increasing order. If not given, `fitted_to` takes them from the
        shares of the classes; before that they are ∓½, which makes three classes.
    thresholds_bounds : pair of float or "fixed", default (0.001, 100.0)
        Limits of the gaps while they are tuned; the first threshold is within ± the larger one.
    """

    thresholds: tuple[float, ...] | None = None
    thresholds_bounds: tuple[float, float] | str = (1e-3, 1e2)

    support = "codes"

    def __post_init__(self) -> None:
        if self.thresholds is None:
            return
        b = np.asarray(self.thresholds, dtype=float)
        if b.ndim != 1 or not len(b) or not np.all(np.isfinite(b)) or np.any(np.diff(b) <= 0.0):
            raise ValueError(
                f"thresholds must be one or more finite numbers in increasing order, got "
                f"{self.thresholds!r}."
            )
        object.__setattr__(self, "thresholds", tuple(b.tolist()))

    @property
    def cuts(self) -> Array:
        """The thresholds."""
        return np.asarray(_THREE_CLASSES if self.thresholds is None else self.thresholds)

    @property
    def n_classes(self) -> int | None:
        """The number K of classes; None until there are thresholds."""
        return None if self.thresholds is None else len(self.thresholds) + 1

    @property
    def expects(self) -> str:
        """What the targets must be, in words."""
        if self.n_classes is None:
            return super().expects
        return f"whole numbers from 0 to {self.n_classes - 1}, one for each class in order"

    def check_targets(self, y: Array, first: int = 0) -> None:
        """Check the codes; there may be more than three classes until there are thresholds."""
        super().check_targets(y, first)
        if self.n_classes is not None:
            fine = to_numpy(y) < self.n_classes
            refuse(y, fine, type(self).__name__, self.expects, first)

    def fitted_to(self, y: Array, weight: Array | None = None) -> Likelihood:
        """Return the likelihood with thresholds, Φ⁻¹ of the shares of the classes below them.

        A class without rows counts as half a row.
        """
        if self.thresholds is not None:
            return self
        codes = to_numpy(y).astype(int)
        count = np.bincount(codes, None if weight is None else to_numpy(weight)).astype(float)
        if len(count) < 2:
            raise ValueError(f"{type(self).__name__} needs two or more classes, got only code 0.")
        share = np.cumsum(np.maximum(count, 0.5))
        return replace(self, thresholds=tuple(ndtri(share[:-1] / share[-1]).tolist()))

    @property
    def names(self) -> list[str]:
        """The first threshold and the gaps, unless they are fixed."""
        if self.thresholds_bounds == "fixed":
            return []
        gaps = [f"likelihood__gap_{k}" for k in range(1, len(self.cuts))]
        return ["likelihood__threshold_0", *gaps]

    @property
    def theta(self) -> Array:
        """The first threshold and the logarithms of the gaps."""
        if self.thresholds_bounds == "fixed":
            return np.empty(0)
        return np.append(self.cuts[:1], np.log(np.diff(self.cuts)))

    @property
    def bounds(self) -> Array:
        """Limits of these."""
        if isinstance(self.thresholds_bounds, str):
            return np.empty((0, 2))
        low, high = self.thresholds_bounds
        gaps = [(math.log(low), math.log(high))] * (len(self.cuts) - 1)
        return np.asarray([(-high, high), *gaps])

    def with_theta(self, theta: Array) -> Likelihood:
        """Return the same likelihood with other thresholds."""
        if not len(theta):
            return self
        cuts = np.cumsum(np.append(theta[:1], np.exp(theta[1:])))
        return replace(self, thresholds=tuple(cuts.tolist()))

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log[Φ(b_y − f) − Φ(b_{y−1} − f)]."""
        return self._log_interval(y, f, 1.0)[0]

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return the first three derivatives of log p in f."""
        _, d1, d2, d3, _ = self._log_interval(y, f, 1.0, order=4)
        return d1, d2, d3

    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Draw codes of classes."""
        noisy = to_numpy(f) + rng.standard_normal(f.shape)
        return same_kind(np.searchsorted(self.cuts, noisy).astype(float), f)

    def tilted(self, y: Array, c: Marginals) -> Moments:
        """Return log[Φ(z₁) − Φ(z₂)] with z = (b − m)/√(1 + v), and its derivatives in m."""
        return Moments(*self._log_interval(y, c.mean, _spread(c)))

    def expected(self, y: Array, q: Marginals) -> Moments:
        """Return the moments by quadrature, with what log p and its derivatives have in common."""
        return average(lambda f: self._log_interval(y, f, 1.0), q)

    def cumulants(self, y: Array, c: Marginals) -> tuple[Array, Array]:
        """Return v^l ∂^l log Z for l = 3 and 4."""
        *_, d3, d4 = self._log_interval(y, c.mean, _spread(c), order=4)
        return c.variance**3 * d3, c.variance**4 * d4

    def mean(self, f: Array) -> Array:
        """Return the mean of the codes."""
        return self.response(Marginals(f, 0.0 * f)).mean

    def variance(self, f: Array) -> Array:
        """Return the variance of the codes."""
        return self.response(Marginals(f, 0.0 * f)).variance

    def response(self, q: Marginals) -> Marginals:
        """Return the moments of the codes, from the probabilities of being above a threshold."""
        sd = _spread(q)
        above = [ndtr((q.mean - float(b)) / sd) for b in self.cuts]
        mean = sum(above, 0.0 * q.mean)
        square = sum(((2.0 * k + 1.0) * p for k, p in enumerate(above)), 0.0 * q.mean)
        return Marginals(mean, clip(square - mean**2, low=0.0))

    def cdf(self, y: Array, f: Array) -> Array:
        """Return P(Y ≤ y|f) = Φ(b_y − f)."""
        _, upper = self.ends(y, f)
        return ndtr(upper - f)

    def _log_interval(self, y: Array, m: Array, s: Array | float, order: int = 2) -> list[Array]:
        return log_interval(*self.ends(y, m), m, s, order)

    def ends(self, y: Array, like: Array) -> tuple[Array, Array]:
        """Return the thresholds below and above each class."""
        ends = np.concatenate([[-math.inf], self.cuts, [math.inf]])
        code = np.floor(to_numpy(y + 0.0 * like))
        k = np.clip(code, -1, len(self.cuts)).astype(int)
        return same_kind(ends[np.maximum(k, 0)], like), same_kind(ends[k + 1], like)


def _spread(q: Marginals) -> Array:
    return namespace(q.mean).sqrt(1.0 + q.variance)
